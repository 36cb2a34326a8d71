"""Factors: a predicate split into ranges of single columns and a residual (the boolean factors of CACQ).

Every comparison of a column with a constant is a half-open range of the column's values. Integers, doubles and strings
all have a next value, so a strict bound is the next value, inclusive. An index of ranges therefore has one case to
handle, and compares only values of one type.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from acquisition.schema import Type
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Attr, Between, Compare, Literal, conjuncts

Bound: TypeAlias = Any
"""An int, float or str; the bounds of one column have one type."""

_LEAST, _BEYOND = -(2**63), 2**63  # the least integer, and the first that is too large
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values from `begin` (None: the least) to `stop`, exclusive (None: no end).

    `is_point` marks the range of an equality. Two points of one column are equal or disjoint.
    """

    begin: Bound = None
    stop: Bound = None
    is_point: bool = False

    @property
    def is_empty(self) -> bool:
        return self.begin is not None and self.stop is not None and not self.begin < self.stop

    def intersect(self, other: "ValueRange") -> "ValueRange":
        """The values in both ranges."""
        begins = [each.begin for each in (self, other) if each.begin is not None]
        stops = [each.stop for each in (self, other) if each.stop is not None]
        return ValueRange(max(begins, default=None), min(stops, default=None), self.is_point or other.is_point)


EMPTY_RANGE = ValueRange(0, 0)
"""Holds no number; its intersection with any range is empty too."""


def extract_ranges(predicate: Expression) -> tuple[dict[Column, ValueRange], list[Expression]]:
    """({column: its range}, the other conjuncts). A null lies in no range, as no comparison with it is true."""
    ranges: dict[Column, ValueRange] = {}
    residual = []
    for term in conjuncts(predicate):
        found = _range_of(term)
        if found is None:
            residual.append(term)
            continue
        column, range_ = found
        ranges[column] = ranges[column].intersect(range_) if column in ranges else range_
    return ranges, residual


def _range_of(term: Expression) -> tuple[Column, ValueRange] | None:
    """(column, range) of a comparison with a constant; None for any other term."""
    match term:
        case Compare(op=op, left=Attr(column=column), right=Literal(value=value)) if op in _MIRRORED:
            return _compared(column, op, value)
        case Compare(op=op, left=Literal(value=value), right=Attr(column=column)) if op in _MIRRORED:
            return _compared(column, _MIRRORED[op], value)
        case Between(operand=Attr(column=column), low=Literal(value=low), high=Literal(value=high)):
            above, below = _compared(column, ">=", low), _compared(column, "<=", high)
            return None if above is None or below is None else (column, above[1].intersect(below[1]))
    return None


def _compared(column: Column, op: str, value: Bound) -> tuple[Column, ValueRange] | None:
    if value is None:
        return None
    begin = None if op in ("<", "<=") else (_above if op == ">" else _from)(column, value)
    stop = None if op in (">", ">=") else (_from if op == "<" else _above)(column, value)
    if type(begin) is int and begin == _BEYOND:
        return column, EMPTY_RANGE
    if type(stop) is int and stop == _BEYOND:
        stop = None
    return column, ValueRange(begin, stop, op == "=")


def _from(column: Column, value: Bound) -> Bound:
    """The least value of a column that is not less than a constant."""
    if column.type is Type.STRING:
        return value
    if column.type is Type.FLOAT and column.scale is None:
        near = _double(value)
        return math.nextafter(near, math.inf) if near < value else near
    return _least(column.scale, lambda candidate: candidate >= value)


def _above(column: Column, value: Bound) -> Bound:
    """The least value of a column that is greater than a constant."""
    if column.type is Type.STRING:
        return value + "\0"
    if column.type is Type.FLOAT and column.scale is None:
        near = _double(value)
        return math.nextafter(near, math.inf) if near <= value else near
    return _least(column.scale, lambda candidate: candidate > value)


def _double(value: float) -> float:
    """The double nearest to a number; infinity beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _least(scale: int | None, holds: Callable[[float], bool]) -> int:
    """The least integer for which a monotone condition holds; 2^63 if it holds for none.

    Multiples of a scale are compared as the doubles that they stand for. Python divides integers of any size correctly.
    """
    low, high = _LEAST, _BEYOND
    while low < high:
        middle = (low + high) // 2
        if holds(middle if scale is None else middle / 10**scale):
            high = middle
        else:
            low = middle + 1
    return low
