"""Thresholds: a comparison of something that rises or falls with one attribute is a comparison of the attribute itself.

`temp * 1.8 + 32 > 80`, where a mote knows whole hundredths of a degree: rounding is monotone, so what the base station
computes in doubles never falls while the multiple rises, and there is one multiple from which on the predicate holds.
It is found by asking the base station's own evaluation, so a mote that compares integers says exactly the same, without
computing. Nothing is assumed of functions that are monotone on paper only (SQRT, LN, …).
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
_STEADY = ("ROUND", "FLOOR", "CEIL")


class NoThresholdError(MoteloomError):
    """It cannot be said for sure; an answer, not an error."""


def threshold_column(compare: ex.Compare) -> Column | None:
    """The column that a comparison with a constant rises or falls with; None if it is no such comparison."""
    sides = [compare.left, compare.right]
    constant = [isinstance(side, _LITERAL) and side.value is not None for side in sides]
    if constant.count(True) != 1:
        return None
    return _monotone(sides[constant.index(False)])


def _monotone(e: Expression) -> Column | None:
    """The one column that an expression never stops rising, or falling, with."""
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
        case ex.Function(name=name, arguments=(argument,)) if name in _STEADY:
            return _monotone(argument)
    return None


def find_passing_range(compare: ex.Compare, column: Column, raw: Interval) -> Interval | None:
    """The values in `raw` (multiples, of a scaled column) that pass a comparison which is no `<>`; None where none does."""
    if _magnitude(compare.left, raw) >= 2**63 or _magnitude(compare.right, raw) >= 2**63:
        raise NoThresholdError("an integer on the way may leave 64 bits")
    if compare.op == "=":
        low = find_passing_range(ex.Compare(">=", compare.left, compare.right), column, raw)
        high = find_passing_range(ex.Compare("<=", compare.left, compare.right), column, raw)
        if low is None or high is None or max(low.low, high.low) > min(low.high, high.high):
            return None
        return Interval(max(low.low, high.low), min(low.high, high.high))
    first, last = _true_at(compare, column, raw.low), _true_at(compare, column, raw.high)
    if first == last:
        return raw if first else None
    low, high = raw.low, raw.high
    while high - low > 1:  # it holds at one of them and not at the other
        middle = (low + high) // 2
        if _true_at(compare, column, middle) == first:
            low = middle
        else:
            high = middle
    return Interval(raw.low, low) if first else Interval(high, raw.high)


def _true_at(compare: ex.Compare, column: Column, value: int) -> bool:
    """Whether a comparison is true of one value. What is known at both ends of a range is known within it."""
    truths = Evaluation({column.id: Vector(np.array([value], np.int64))}, 1).of(compare)
    if not truths.validity[0]:
        raise NoThresholdError(f"what is compared is no finite number where {column} is {value}")
    return bool(truths.values[0])


def _magnitude(e: Expression, raw: Interval) -> int:
    """No integer in an expression is larger; of floats, for which infinity is the end, what a cast lets through."""
    match e:
        case ex.Literal(value=value):
            return abs(int(value)) if e.type is not Type.FLOAT else 0
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
