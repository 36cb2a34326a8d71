"""The catalogue of errors as a page, each error with an example and what the command says of it."""

from errno import ENOENT
from os import strerror

from basestation.errors import CATALOGUE, KINDS, ROAD
from basestation.language.diagnostics import Diagnostic, DiagnosticError
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.deployed_catalog import read_deployed_catalog
from gateway.toml import ConfigError
from innet.deployment.toml_reader import parse_deployment


def diagnose_example(code):
    """The diagnostics that the example of an entry really causes."""
    entry = CATALOGUE[code]
    if entry.kind == "input":
        return ()  # caused by data, not by a text
    try:
        if entry.kind == "deployment":
            read_deployed_catalog(parse_deployment(entry.example, None, _nothing_beside))
        elif entry.schema:
            read_schema(entry.example)
        else:
            bind_text(entry.example, read_schema(ROAD))
    except DiagnosticError as refused:
        return refused.diagnostics
    except ConfigError as faulty:
        return tuple(Diagnostic.of(fault) for fault in faulty.faults)
    return ()


def _nothing_beside(name):
    raise FileNotFoundError(ENOENT, strerror(ENOENT), name)


def render_example(code):
    """What the command says of the example; the example itself where it is refused only when it is run or read."""
    return "\n\n".join(d.render() for d in diagnose_example(code)) or CATALOGUE[code].example


def render_page():
    """docs/errors.md."""
    out = [
        "# Errors\n",
        "Made by `moteloom errors -o markdown` from `basestation/errors/`; a test fails when it is stale.",
        "Every error has a code that keeps its meaning, a kind, a place in the text, what was expected there, and help where",
        "there is any. With `-o json` it is one line:\n",
        "```json",
        '{"type":"error","kind":"name","code":"SN202","line":1,"column":8,"length":4,"message":"…","expected":["…"],"help":"…"}',
        "```\n",
        "The examples are asked against this schema:\n",
        f"```\n{ROAD.rstrip()}\n```\n",
    ]
    for kind, meaning in KINDS.items():
        codes = [code for code, entry in CATALOGUE.items() if entry.kind == kind]
        if codes:
            out.append(f"## {kind}: {meaning}\n")
        for code in codes:
            out += [
                f"### {code}: {CATALOGUE[code].title}\n",
                f"{CATALOGUE[code].explanation}\n",
                f"```\n{render_example(code)}\n```\n",
            ]
    return "\n".join(out)
