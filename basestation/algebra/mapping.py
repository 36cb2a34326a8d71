"""Mapping: a plan with every expression changed; the operators stay where they are."""

from collections.abc import Callable
from operator import is_not
from typing import Any

from basestation.algebra.expression import Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import PlanNode, copy_with, rebuild


def map_expressions(root: PlanNode, change: Callable[[Expression], Expression]) -> PlanNode:
    """The plan with `change` applied to each whole expression of each operator; the same object if nothing changed."""
    return rebuild(root, lambda node: _map_node(node, change))


def _map_node(node: PlanNode, change: Callable[[Expression], Expression]) -> PlanNode:
    new = {}
    for name in node.__dataclass_fields__:  # `fields` makes a tuple of them at each call
        old = getattr(node, name)
        changed = _map_value(old, change)
        if changed is not old:
            new[name] = changed
    return copy_with(node, **new) if new else node


def _map_value(value: Any, change: Callable[[Expression], Expression]) -> Any:
    """A field of a node; it may be an expression, or a tuple (of tuples) that holds some."""
    if isinstance(value, Aggregate):  # its argument may change; it stays an aggregate
        argument = value.argument and change(value.argument)
        return value if argument is None or argument is value.argument else value.with_parts((argument,))
    if isinstance(value, Expression):
        return change(value)
    if isinstance(value, tuple):
        changed = tuple([_map_value(inner, change) for inner in value])
        return changed if any(map(is_not, changed, value)) else value
    return value
