"""Expressions of for-loops over t and ST: their values as 64-bit integers, and in which direction they move with t."""

from collections.abc import Callable, Mapping, Sequence

from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.window import LoopRange
from basestation.execution.query_failure import QueryFailedError


def evaluate_integer(e: Expression, values: Mapping[int, int]) -> int:
    """The value of an expression; `values` has t and ST by column id. Raises QueryFailedError where there is none."""
    return ex.fold_expression(e, lambda part, below: _evaluate_part(part, below, values))


def _evaluate_part(e: Expression, below: Sequence[int], values: Mapping[int, int]) -> int:
    match e:
        case ex.Literal(value=None):  # the binder computed a constant that has no value
            raise QueryFailedError("SN512", "division by zero")
        case ex.Literal(value=int() as value):
            return value
        case ex.Attr(column=column):
            return values[column.id]
        case ex.Negative():
            result = -below[0]
        case ex.Arithmetic(op=op):
            result = _OPERATIONS[op](below[0], below[1])
        case _:
            raise TypeError(f"expected an expression of a loop, found {type(e).__name__}")
    if not -(2**63) <= result < 2**63:
        raise QueryFailedError("SN512", f"{result} does not fit into 64 bits")
    return result


def _divide(a: int, b: int) -> int:
    """The quotient, cut toward zero."""
    if b == 0:
        raise QueryFailedError("SN512", "division by zero")
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divide,
}  # fmt: skip
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def evaluate_condition(e: Expression, values: Mapping[int, int]) -> bool:
    """Whether a condition is true. Every term is computed, so a division by zero is always found."""
    match e:
        case ex.Compare(op=op, left=left, right=right):
            return _COMPARISONS[op](evaluate_integer(left, values), evaluate_integer(right, values))
        case ex.Not(term=term):
            return not evaluate_condition(term, values)
        case ex.And(terms=terms):
            return all([evaluate_condition(term, values) for term in terms])
        case ex.Or(terms=terms):
            return any([evaluate_condition(term, values) for term in terms])
    raise TypeError(f"expected a condition of a loop, found {type(e).__name__}")


def is_rising(loop: LoopRange) -> bool:
    """Whether every value of t is above the one before."""
    match loop.change:
        case ex.Arithmetic(op="+", left=ex.Attr(column=loop.t), right=ex.Literal(value=int() as step)):
            return step > 0
    return False


def find_slope(e: Expression, t: Column) -> int | None:
    """1 where an expression never falls as t rises, -1 where it never rises, 0 for a constant; None where unknown."""
    return ex.fold_expression(e, lambda part, below: _slope_of(part, below, t))


def _slope_of(e: Expression, below: Sequence[int | None], t: Column) -> int | None:
    match e:
        case ex.Literal():
            return 0
        case ex.Attr(column=column):
            return int(column == t)
        case ex.Negative():
            return _times_sign(below[0], -1)
        case ex.Arithmetic(op="+" | "-" as op):
            sides = {below[0], _times_sign(below[1], 1 if op == "+" else -1)} - {0}
            return None if len(sides) > 1 else sides.pop() if sides else 0
        case ex.Arithmetic(op="*" | "/", right=ex.Literal(value=int() as factor)):  # cutting keeps the order
            return _times_sign(below[0], (factor > 0) - (factor < 0))
        case ex.Arithmetic(op="*", left=ex.Literal(value=int() as factor)):
            return _times_sign(below[1], (factor > 0) - (factor < 0))
    return None


def _times_sign(slope: int | None, sign: int) -> int | None:
    return None if slope is None else slope * sign
