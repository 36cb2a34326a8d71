"""Signatures: values that are equal when two expressions compute the same."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TypeAlias

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import walk
from basestation.algebra.node import PlanNode

Signature: TypeAlias = tuple[tuple[object, ...], ...]


def signature(expression: Expression, columns: Mapping[Column, Column] | None = None) -> Signature:
    """Equal for two expressions that compute the same over the same columns; `columns` maps a column to its substitute."""
    return tuple(_part(part, columns or {}) for part in walk(expression))


def _part(part: Expression, columns: Mapping[Column, Column]) -> tuple[object, ...]:
    """The signature of one node of the tree, without the nodes below it."""
    found: list[object] = [type(part).__name__, len(part.parts)]
    for field in fields(part):
        value = getattr(part, field.name)
        if isinstance(value, Column):
            found.append(columns.get(value, value).id)
        elif isinstance(value, PlanNode):  # a subquery; plans of subqueries are never shared
            found.append(("plan", id(value)))
        elif not isinstance(value, Expression | tuple):  # parts have signatures of their own
            found.append(repr(value))
    return tuple(found)
