"""Mapping: a plan with every expression changed, or with other columns asked for; operators stay where they are."""

from dataclasses import fields, replace

from basestation.algebra.expression import Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import rebuild


def map_expressions(root, change):
    """The plan with `change` applied to each whole expression of each operator; the same object where nothing changed."""
    return rebuild(root, lambda node: _mapped(node, change))


def _mapped(node, change):
    new = {}
    for field in fields(node):
        old = getattr(node, field.name)
        changed = _value(old, change)
        if changed is not old:
            new[field.name] = changed
    return replace(node, **new) if new else node


def _value(value, change):
    """An expression, or a tuple (of tuples) that holds some."""
    if isinstance(value, Aggregate):  # its argument may change; it stays an aggregate
        argument = value.argument and change(value.argument)
        return value if argument is value.argument else value.with_parts((argument,))
    if isinstance(value, Expression):
        return change(value)
    if isinstance(value, tuple):
        changed = tuple(_value(inner, change) for inner in value)
        return changed if any(a is not b for a, b in zip(changed, value, strict=True)) else value
    return value
