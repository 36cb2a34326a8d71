"""Signatures: what an expression computes, as a value that can be compared; expressions themselves are compared by identity."""

from dataclasses import fields

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import walk
from basestation.algebra.node import PlanNode


def signature(expression, columns=None):
    """Equal for two expressions that compute the same of the same columns; `columns` tells which stand for others."""
    return tuple(_part(part, columns or {}) for part in walk(expression))


def _part(part, columns):
    """A part without those below it."""
    told = [type(part).__name__, len(part.parts)]
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Column):
            told.append(columns.get(value, value).id)
        elif isinstance(value, PlanNode):  # of a subquery, which nobody shares
            told.append(("plan", id(value)))
        elif not isinstance(value, Expression | tuple):  # parts, alone or several
            told.append(repr(value))
    return tuple(told)
