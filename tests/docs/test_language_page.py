"""docs/language.md is true: its examples are accepted, its refusals refused, its answers right, and nothing is left out."""

import ast
import csv
import json

import pytest

from acquisition.extent import ExtentKind, LatePolicy
from acquisition.schema import Type
from acquisition.units import UNIT_WORDS
from basestation.language import keywords, schema_parser
from basestation.language.lexer import NAME, tokenize
from basestation.language.parser import parse
from basestation.language.printer import print_statement
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.functions import AGGREGATES, FUNCTIONS, TYPES
from gateway.diagnostics import DiagnosticError
from gateway.source import Source
from tests.docs.commands import said
from tests.docs.pages import DOCS, ROOT, blocks, refusals, rows_of
from tests.oracles.recompute import run

PAGE = DOCS / "language.md"
SCHEMA = "\n".join(block.text for block in blocks(PAGE, "schema"))
QUERIES = blocks(PAGE, "sneeql")


@pytest.fixture(scope="module")
def catalog():
    return read_schema(SCHEMA)


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("block", QUERIES, ids=lambda b: b.id)
def test_an_example_is_accepted(block, catalog):
    assert bind_text(block.text, catalog)


@pytest.mark.parametrize("block", QUERIES, ids=lambda b: b.id)
def test_an_example_is_the_same_after_it_was_printed(block):
    for statement in parse(Source(block.text)).statements:
        printed = print_statement(statement)
        assert parse(Source(printed)).statements == (statement,), printed


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize(("text", "codes", "line"), list(refusals(PAGE, "sneeql-error")))
def test_what_is_wrong_is_refused(text, codes, line, catalog):
    with pytest.raises(DiagnosticError) as refused:
        bind_text(text, catalog)
    assert_refused_with(codes, refused.value)


@pytest.mark.parametrize(("text", "codes", "line"), list(refusals(PAGE, "schema-error")))
def test_a_wrong_schema_is_refused(text, codes, line):
    with pytest.raises(DiagnosticError) as refused:
        read_schema(text)
    assert_refused_with(codes, refused.value)


def assert_refused_with(codes, refused):
    """The error is reported; errors that follow from it may be reported as well."""
    assert set(codes) <= {d.code for d in refused.diagnostics}


# --- answers -----------------------------------------------------------------------------------------------------------


def answers():
    """(query, inputs, expected) of every block `answer`: the query above it, over the newest inputs above that."""
    inputs, query = {}, None
    for block in blocks(PAGE):
        if block.language == "input":
            inputs = inputs | {block.about: rows_of(block.text)}
        elif block.language == "sneeql":
            query = block
        elif block.language == "answer":
            yield pytest.param(query, inputs, block.text, id=block.id)


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize(("query", "inputs", "expected"), list(answers()))
def test_an_answer_is_right(query, inputs, expected):
    [schema] = [block.text for block in blocks(PAGE, "schema") if block.about == "answers"]
    [answer] = run(schema, inputs, [query.text]).answers
    assert answer.error is None
    updates = answer.windows if answer.kind == "window" else answer.tuples
    assert "".join(f"{_shown(u)}\n" for u in updates) == expected


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize(("query", "inputs", "expected"), list(answers()))
def test_a_replay_says_the_same(query, inputs, expected, tmp_path):
    """Unless it says that it cannot yet."""
    [schema] = [block.text for block in blocks(PAGE, "schema") if block.about == "answers"]
    (tmp_path / "schema").write_text(schema)
    (tmp_path / "query").write_text(query.text)
    given = [f"--input {name}={_recorded(tmp_path / name, rows)}" for name, rows in inputs.items()]
    lines = said(
        f"moteloom replay --schema {tmp_path}/schema {' '.join(given)} -f {tmp_path}/query -o json"
    ).splitlines()
    told = [json.loads(line) for line in lines if line.startswith("{")]
    if told[0].get("code") == "SN601":
        return
    shown = [_shown_json(each) for each in told if each["type"] in ("window", "tuple")]
    assert "".join(f"{line}\n" for line in shown) == expected


def _recorded(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def _shown_json(told):
    if told["type"] == "tuple":
        return _tuple_line(told["tick"], told["index"], told["weight"], told["row"])
    added, removed = told.get("rows", told.get("added", [])), told.get("removed", [])
    return _window_line(told["tick"], told.get("t"), told["revision"], told["coverage"] or {}, added, removed)


def _shown(update):
    if hasattr(update, "row"):
        return _tuple_line(update.tick, update.index, update.weight, update.row)
    return _window_line(update.tick, update.t, update.revision, update.coverage, update.added, update.removed)


def _tuple_line(tick, index, weight, row):
    return f"tick={tick} index={index} {'+' if weight == 1 else '-'}{_row(row)}"


def _window_line(tick, t, revision, coverage, added, removed):
    words = [f"tick={tick}"]
    words += [] if t is None else [f"t={t}"]
    words += [f"revision={revision}"] if revision else []
    words += [f"coverage={c[0]}/{c[1]}" for c in coverage.values() if c is not None]
    return " ".join([*words, *(f"+{_row(r)}" for r in added), *(f"-{_row(r)}" for r in removed)])


def _row(row):
    return "(" + ", ".join("null" if value is None else repr(value) for value in row) + ")"


# --- nothing is left out -----------------------------------------------------------------------------------------------


def words_on_the_page(language):
    """Every word of the accepted examples, in capitals; words in strings and comments do not count."""
    found = set()
    for block in blocks(PAGE, language):
        tokens, _ = tokenize(Source(block.text))
        found.update(token.text.upper() for token in tokens if token.kind is NAME)
    return found


def keywords_the_parser_asks_for():
    """The words that the sources of the language expect or take somewhere."""
    found = set()
    for module in (ROOT / "basestation/language").glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("accept", "expect") and node.args:
                word = node.args[0]
                if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.isalpha():
                    found.add(word.value)
    return found


@pytest.mark.promise("pages-are-true")
def test_every_keyword_of_queries_stands_in_an_example():
    known = (
        keywords_the_parser_asks_for()
        | keywords.RESERVED
        | keywords.CONVERTERS
        | keywords.JOINS
        | keywords.NEVER_ALIASES
    )
    known |= set(keywords.QUERY_CLAUSES) | set(keywords.STATEMENTS) | set(keywords.STATEMENT_CLAUSES)
    known |= {
        "NOW",
        "UNBOUNDED",
        "SCAN",
        "RESCAN",
        "SLIDE",
        "NULL",
        "CASE",
        "IS",
        "IN",
        "LIKE",
        "BETWEEN",
        "CAST",
        "HISTORY",
    }
    assert len(known) > 60
    assert known - {"SITES"} - words_on_the_page("sneeql") == set()


def test_every_word_of_schemas_stands_in_an_example():
    known = set(schema_parser._CLAUSES) | set(schema_parser._PROPERTIES) | {"SITES", "ALL", "BY"}
    known |= {str(each).upper() for each in (*ExtentKind, *LatePolicy, *Type)}
    assert known - words_on_the_page("schema") == set()


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("name", sorted([*FUNCTIONS, *AGGREGATES]))
def test_every_function_and_aggregate_stands_in_an_example(name):
    assert name in words_on_the_page("sneeql")


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("word", UNIT_WORDS)
def test_every_spelling_of_a_unit_stands_in_an_example(word):
    assert word.upper() in words_on_the_page("sneeql")


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_type_can_be_cast_to(name):
    assert name.upper() in words_on_the_page("sneeql")
