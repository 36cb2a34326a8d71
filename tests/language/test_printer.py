"""The printer: `parse(print(tree)) == tree` for every tree, and `print(parse(text))` is canonical."""

import pytest

from basestation.language.parser import parse
from basestation.language.printer import print_statement
from basestation.language.schema_parser import parse_schema
from gateway.source import Source
from tests.language.schema_printer import print_schema
from tests.language.texts import QUERIES, SCHEMAS
from tests.properties.syntax_trees import Trees

SHARDS = 8


def read(text):
    parsed = parse(Source(text))
    assert not parsed.diagnostics, f"{text}\n{parsed.diagnostics[0].render()}"
    return parsed.statements


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("shard", range(SHARDS))
def test_printed_tree_parses_to_the_same_tree(shard, rng, counts):
    trees = Trees(rng)
    for _ in range(counts(1_200, 20_000) // SHARDS):
        tree = trees.statement()
        text = print_statement(tree)
        assert read(text) == (tree,), text


@pytest.mark.promise("errors-point")
def test_printed_schema_parses_to_the_same_tree(rng, counts):
    trees = Trees(rng)
    for _ in range(counts(300, 3_000)):
        declared = trees.some(trees.extent)
        text = print_schema(declared)
        parsed = parse_schema(Source(text))
        assert not parsed.diagnostics, f"{text}\n{parsed.diagnostics[0].render()}"
        assert parsed.extents == declared, text


@pytest.mark.parametrize("text", QUERIES)
def test_printing_printed_text_changes_nothing(text):
    first = read(text)
    printed = "; ".join(map(print_statement, first))
    assert read(printed) == first
    assert "; ".join(map(print_statement, read(printed))) == printed


@pytest.mark.parametrize("text", SCHEMAS)
def test_printing_a_printed_schema_changes_nothing(text):
    first = parse_schema(Source(text)).extents
    assert parse_schema(Source(print_schema(first))).extents == first


@pytest.mark.parametrize(
    "text, printed",
    [
        ("select ((a))+(b*c) x from r", "SELECT a + b * c AS x FROM r"),
        ("SELECT (a + b) * c, a - (b - c), (a - b) - c FROM r", "SELECT (a + b) * c, a - (b - c), a - b - c FROM r"),
        ("SELECT - - a, -(a + b), -5 FROM r", "SELECT - -a, -(a + b), -5 FROM r"),
        ("SELECT a FROM r WHERE (a=1 and b=2) or not (c=3)", "SELECT a FROM r WHERE a = 1 AND b = 2 OR NOT c = 3"),
        ("SELECT a FROM r WHERE a=1 and (b=2 or c!=3)", "SELECT a FROM r WHERE a = 1 AND (b = 2 OR c <> 3)"),
        ("SELECT DISTINCT (-a), b FROM r", "SELECT DISTINCT (-a), b FROM r"),
        ("SELECT 1e3, 0.1, 1e30, 'it''s' FROM r", "SELECT 1000.0, 0.1, 1e+30, 'it''s' FROM r"),
        ("SELECT a FROM r [now] x for(;t==0;t=t-1){windowis(r,1,5);}",
         "SELECT a FROM r AS x [NOW] FOR (; t = 0; t--) { WindowIs(r, 1, 5); }"),
    ],
)  # fmt: skip
def test_text_has_its_canonical_form(text, printed):
    assert print_statement(read(text)[0]) == printed


@pytest.mark.parametrize("operator", ["AND", "+", "OR"])
def test_chain_of_ten_thousand_operators_prints(operator):
    text = "SELECT a FROM r WHERE a" + f" {operator} a" * 10_000
    assert print_statement(read(text)[0]) == text


def test_deepest_tree_prints():
    text = "SELECT a FROM r WHERE " + "a = (SELECT b FROM r WHERE " * 100 + "a = 1" + ")" * 100
    assert print_statement(read(text)[0]) == text
