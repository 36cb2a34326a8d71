"""Thresholds: a comparison of a monotone expression over one attribute becomes a comparison of the attribute itself.

Take `temp * 1.8 + 32 > 80` on a mote that measures hundredths of a degree. Rounding is monotone, so the double that the base
station computes never falls while the multiple rises. Hence there is one multiple from which on the predicate holds. A
binary search with the base station's own evaluation finds it, so a mote decides exactly the same by comparing integers.
Functions that are monotone only in exact arithmetic (SQRT, LN, …) are left out.
"""

import numpy as np

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.vector import Vector
from gateway.errors import MoteloomError
from innet.operators.value_ranges import Interval

_LITERAL = ex.Literal
_MONOTONE = ("ROUND", "FLOOR", "CEIL")


class NoThresholdError(MoteloomError):
    """No threshold is certain; the caller leaves the comparison at the base station."""


def threshold_column(compare: ex.Compare) -> Column | None:
    """The column in which a comparison with a constant is monotone; None for any other comparison."""
    sides = [compare.left, compare.right]
    constant = [isinstance(side, _LITERAL) and side.value is not None for side in sides]
    if constant.count(True) != 1:
        return None
    return _monotone(sides[constant.index(False)])


def _monotone(e: Expression) -> Column | None:
    """The one column in which an expression is monotone; None if there is none."""
    match e:
        case ex.Attr(column=column):
            return column if column.type is not Type.STRING else None
        case ex.Negative(operand=operand):
            return _monotone(operand)
        case ex.Arithmetic(op="+" | "-", left=left, right=_LITERAL(value=value)) if value is not None:
            return _monotone(left)
        case ex.Arithmetic(op="+" | "-", left=_LITERAL(value=value), right=right) if value is not None:
            return _monotone(right)
        case ex.Arithmetic(op="*" | "/", left=left, right=_LITERAL(value=value)) if value:
            return _monotone(left)
        case ex.Arithmetic(op="*", left=_LITERAL(value=value), right=right) if value:
            return _monotone(right)
        case ex.Cast(operand=operand, to=Type.FLOAT | Type.INTEGER) if operand.type is not Type.STRING:
            return _monotone(operand)
        case ex.Function(name=name, arguments=(argument,)) if name in _MONOTONE:
            return _monotone(argument)
    return None


def find_passing_range(compare: ex.Compare, column: Column, raw: Interval) -> Interval | None:
    """The interval within `raw` whose values pass a comparison other than `<>`; None if no value passes.

    Values of a scaled column are raw multiples. Raises NoThresholdError.
    """
    if _magnitude(compare.left, raw) >= 2**63 or _magnitude(compare.right, raw) >= 2**63:
        raise NoThresholdError("an intermediate integer may leave 64 bits")
    if compare.op == "=":
        above = find_passing_range(ex.Compare(">=", compare.left, compare.right), column, raw)
        below = find_passing_range(ex.Compare("<=", compare.left, compare.right), column, raw)
        if above is None or below is None or max(above.low, below.low) > min(above.high, below.high):
            return None
        return Interval(max(above.low, below.low), min(above.high, below.high))
    first, last = _true_at(compare, column, raw.low), _true_at(compare, column, raw.high)
    if first == last:
        return raw if first else None
    low, high = raw.low, raw.high
    while high - low > 1:  # the predicate holds at exactly one of the two
        middle = (low + high) // 2
        if _true_at(compare, column, middle) == first:
            low = middle
        else:
            high = middle
    return Interval(raw.low, low) if first else Interval(high, raw.high)


def _true_at(compare: ex.Compare, column: Column, value: int) -> bool:
    """Whether a comparison is true of one value. Raises NoThresholdError if it is unknown."""
    truths = Evaluation({column.id: Vector(np.array([value], np.int64))}, 1).of(compare)
    if not truths.validity[0]:
        raise NoThresholdError(f"the compared value is no finite number where {column} is {value}")
    return bool(truths.values[0])


def _magnitude(e: Expression, raw: Interval) -> int:
    """A bound on the integers in an expression. Floats have no bound but a cast to integer has one."""
    match e:
        case ex.Literal(value=value):
            return abs(int(value or 0)) if e.type is not Type.FLOAT else 0
        case ex.Attr(column=column):
            return max(abs(raw.low), abs(raw.high)) if column.scale is None else 0
        case ex.Cast(operand=operand, to=Type.INTEGER) if operand.type is Type.FLOAT:
            return 2**62 if _magnitude(operand, raw) < 2**63 else 2**63
    below = [_magnitude(part, raw) for part in e.parts]
    if e.type is Type.FLOAT:
        return max(below, default=0)
    match e:
        case ex.Arithmetic(op="+" | "-"):
            return sum(below)
        case ex.Arithmetic(op="*"):
            return below[0] * below[1]
    return max(below, default=0)
