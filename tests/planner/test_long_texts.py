"""Generated texts: long chains and deep nesting bind, rewrite and explain, or give an error with a place."""

import pytest

from basestation.algebra.node import walk
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.explain import explain_statement, render_statement
from basestation.language.printer import print_statement
from basestation.planner.catalog import read_schema
from tests.planner.binder_helpers import bound

CATALOG = read_schema("r: sensed (site:integer, v:integer) every 10 sec at sites 1, 2")


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("op", ["+", "-", "*"])
def test_sum_of_5000_terms(op):
    text = f"SELECT {f' {op} '.join(['v'] * 5_000)} FROM r"
    assert "memory" in render_statement(explain_statement(bound(text, CATALOG)))


def test_equal_aggregates_of_long_sum_are_computed_once():
    total = " + ".join(["v"] * 3_000)
    plan = bound(f"SELECT SUM({total}), SUM({total}) FROM r [NOW]", CATALOG)
    (node,) = [n for n in walk(plan.root) if isinstance(n, WindowAggregation)]
    assert len(node.aggregates) == 1


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_condition_of_5000_terms(word):
    terms = f" {word} ".join(f"v <> {i}" for i in range(5_000))
    assert "memory" in render_statement(explain_statement(bound(f"SELECT v FROM r [NOW] WHERE {terms}", CATALOG)))


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("place", ["t = ST{}; t < 5; t++", "; t < 5{}; t++", "; t < 5; t = t{}"])
def test_loop_header_of_5000_terms(place):
    header = place.format(" + 1" * 5_000)
    text = f"SELECT v FROM r FOR ({header}) {{ WindowIs(r, t{' - 1' * 5_000}, t); }}"
    assert "memory" in render_statement(explain_statement(bound(text, CATALOG)))


def test_loop_condition_of_5000_terms():
    condition = " AND ".join(f"t <> {i}" for i in range(5_000))
    text = f"SELECT v FROM r FOR (; {condition}; t++) {{ WindowIs(r, t, t); }}"
    assert "memory" in render_statement(explain_statement(bound(text, CATALOG)))


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_chain_of_300_joins(kind):
    joins = "".join(f" {kind} k AS a{i} ON a{i - 1}.n = a{i}.n" for i in range(1, 301))
    plan = bound(f"SELECT a0.n, a300.s FROM k AS a0{joins}", read_schema("k: stored (n:integer, s:string)"))
    assert print_statement(plan.statement).endswith(joins)
    assert "memory" in render_statement(explain_statement(plan))


@pytest.mark.promise("errors-point")
def test_99_nested_queries():
    text = "SELECT v FROM r"
    for i in range(99):
        text = f"SELECT v FROM ({text} WHERE v <> {i})"
    explained = explain_statement(bound(text, CATALOG))
    assert explained["algebra"].count("StreamSelect") == 99
    assert explained["refused"] is None and len(explained["physical"]) < 10  # one selection is left
