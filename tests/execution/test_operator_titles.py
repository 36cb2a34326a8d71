"""Titles of operators: EXPLAIN and errors call an operator the same, in words."""

import pytest

from basestation.execution.engine import Engine
from basestation.execution.graph import MEMBER, Operator
from basestation.planner.binder import bind_text
from tests.execution.test_snapshot_classes import CATALOG, QUERIES


def descendants(of):
    return {of, *(each for child in of.__subclasses__() for each in descendants(child))}


@pytest.fixture(scope="module")
def operators():
    """An operator of each class that runs for many kinds of queries."""
    engine = Engine(CATALOG)
    for number, text in enumerate(QUERIES):
        engine.add(number, bind_text(text, CATALOG)[0])
    return [each for each in engine._graph._operators.values() if each.kind != MEMBER]


def test_explain_calls_an_operator_by_its_title(operators):
    assert len({type(each) for each in operators}) >= 10
    names = {each.__name__ for each in descendants(Operator)}
    for operator in operators:
        assert operator.describe().name == operator.title and operator.title not in names, operator


def test_each_operator_that_stands_in_the_graph_has_a_title():
    bases = {of for each in descendants(Operator) for of in each.__bases__}
    leaves = descendants(Operator) - bases
    without = [each.__name__ for each in leaves if each.title is Operator.title]
    assert len(leaves) >= 12 and not without
