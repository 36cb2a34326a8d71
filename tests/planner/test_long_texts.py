"""Texts that machines write: long chains and deep nesting are bound, rewritten and explained, or refused with a place."""

import pytest

from basestation.algebra.node import walk
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.explain import as_text, explained
from basestation.planner.catalog import read_schema
from tests.planner.asking import bound

CATALOG = read_schema("r: sensed (site:integer, v:integer) every 10 sec at sites 1, 2")


@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_a_sum_of_five_thousand_terms(op):
    text = f"SELECT {f' {op} '.join(['v'] * 5_000)} FROM r"
    assert "memory" in as_text(explained(bound(text, CATALOG)))


def test_an_aggregate_of_a_long_sum_is_found_twice():
    total = " + ".join(["v"] * 3_000)
    plan = bound(f"SELECT SUM({total}), SUM({total}) FROM r [NOW]", CATALOG)
    (node,) = [n for n in walk(plan.root) if isinstance(n, WindowAggregation)]
    assert len(node.aggregates) == 1


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_five_thousand_terms_of_a_condition(word):
    terms = f" {word} ".join(f"v <> {i}" for i in range(5_000))
    assert "memory" in as_text(explained(bound(f"SELECT v FROM r [NOW] WHERE {terms}", CATALOG)))


def test_ninety_nine_nested_queries():
    text = "SELECT v FROM r"
    for i in range(99):
        text = f"SELECT v FROM ({text} WHERE v <> {i})"
    told = explained(bound(text, CATALOG))
    assert told["algebra"].count("StreamSelect") == 99
    assert sum(o["operator"].startswith("StreamSelect") for o in told["physical"]) == 1
