"""docs/errors.md: the catalogue of errors as a page, each error with its example and the output of the command."""

from errno import ENOENT
from os import strerror
from typing import NoReturn

from basestation.errors import CATALOGUE, KINDS, ROAD
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.deployed_catalog import read_deployed_catalog
from gateway.diagnostics import Diagnostic, DiagnosticError
from innet.deployment.toml_reader import parse_deployment


def diagnose_example(code: str) -> tuple[Diagnostic, ...]:
    """The diagnostics that the example of an error causes; none for errors in data."""
    entry = CATALOGUE[code]
    if entry.kind == "input":
        return ()
    try:
        if entry.kind == "deployment":
            read_deployed_catalog(parse_deployment(entry.example, None, _no_such_file))
        elif entry.schema:
            read_schema(entry.example)
        else:
            bind_text(entry.example, read_schema(ROAD))
    except DiagnosticError as error:
        return error.diagnostics
    return ()


def _no_such_file(name: str) -> NoReturn:
    raise FileNotFoundError(ENOENT, strerror(ENOENT), name)


def render_example(code: str) -> str:
    """The output for the example of an error; the example itself if only its execution or its data causes the error."""
    return "\n\n".join(d.render() for d in diagnose_example(code)) or CATALOGUE[code].example


def render_page() -> str:
    """The text of docs/errors.md."""
    out = [
        "# Errors\n",
        "This page is for users who got an error code and want to know what it means. To see one error, run",
        "`moteloom errors CODE`.\n",
        "Every error has a code with a fixed meaning, a kind, a place in the text, the expected words, and often help.",
        "With `-o json` it is one line:\n",
        "```json",
        '{"type":"error","kind":"name","code":"SN202","line":1,"column":8,"length":4,"message":"…","expected":["…"],"help":"…"}',
        "```\n",
        "The examples use this schema:\n",
        f"```\n{ROAD.rstrip()}\n```\n",
        "`moteloom errors -o markdown` generates this page from `basestation/errors/`; a test fails when it is stale.\n",
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
