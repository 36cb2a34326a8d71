"""Factors: a predicate taken apart into ranges of single columns, and what is left of it.

Every comparison of a column with a constant is a range of the values that the column is held in: from a least one on, up
to one that is outside. A strict bound is that of the next value, whatever the type: integers, doubles and strings all
have one. So whoever looks values up in ranges has one case, and compares nothing but values of one type.
"""

import math
from dataclasses import dataclass

from acquisition.schema import Type
from basestation.algebra.expressions import Attr, Between, Compare, Literal, conjuncts

_LEAST, _BEYOND = -(2**63), 2**63  # what an integer may be, and the first that is none
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values from `begin` on, without it from the least; up to `behind`, which is outside.

    A `point` is asked for by one value; of one column, two of them are equal or have nothing in common.
    """

    begin: int | float | str | None = None
    stop: int | float | str | None = None
    is_point: bool = False

    @property
    def empty(self):
        return self.begin is not None and self.stop is not None and not self.begin < self.stop

    def intersect(self, other):
        """What lies in both."""
        begins = [each.begin for each in (self, other) if each.begin is not None]
        ends = [each.stop for each in (self, other) if each.stop is not None]
        return ValueRange(max(begins, default=None), min(ends, default=None), self.is_point or other.is_point)


EMPTY_RANGE = ValueRange(0, 0)
"""Where no number lies, within whatever it is put."""


def extract_ranges(predicate):
    """({column: its Range}, the other conjuncts). A null lies in no range, as no comparison with it is true."""
    ranges, others = {}, []
    for term in conjuncts(predicate):
        found = _ranges_of(term)
        if found is None:
            others.append(term)
            continue
        column, range_ = found
        ranges[column] = ranges[column].intersect(range_) if column in ranges else range_
    return ranges, others


def _ranges_of(term):
    """(column, Range) of a comparison with a constant; None of anything else."""
    match term:
        case Compare(op=op, left=Attr(column=column), right=Literal(value=value)) if op in _TURNED:
            return _compared(column, op, value)
        case Compare(op=op, left=Literal(value=value), right=Attr(column=column)) if op in _TURNED:
            return _compared(column, _TURNED[op], value)
        case Between(operand=Attr(column=column), low=Literal(value=low), high=Literal(value=high)):
            above, below = _compared(column, ">=", low), _compared(column, "<=", high)
            return None if above is None or below is None else (column, above[1].intersect(below[1]))
    return None


def _compared(column, op, value):
    if value is None:
        return None
    begin = None if op in ("<", "<=") else (_above if op == ">" else _from)(column, value)
    stop = None if op in (">", ">=") else (_from if op == "<" else _above)(column, value)
    if type(begin) is int and begin == _BEYOND:
        return column, EMPTY_RANGE
    if type(stop) is int and stop == _BEYOND:
        stop = None
    return column, ValueRange(begin, stop, op == "=")


def _from(column, value):
    """The least value of a column that is not less than a constant."""
    if column.type is Type.STRING:
        return value
    if column.type is Type.FLOAT and column.scale is None:
        near = _double(value)
        return math.nextafter(near, math.inf) if near < value else near
    return _least(column.scale, lambda held: held >= value)


def _above(column, value):
    """The least value of a column that is greater than a constant."""
    if column.type is Type.STRING:
        return value + "\0"
    if column.type is Type.FLOAT and column.scale is None:
        near = _double(value)
        return math.nextafter(near, math.inf) if near <= value else near
    return _least(column.scale, lambda held: held > value)


def _double(value):
    """A double as near to a number as there is one."""
    try:
        return float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _least(scale, holds):
    """The least integer for which a condition holds that holds for all greater ones, too; one too large if there is none.

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
