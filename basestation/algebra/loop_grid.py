"""Loop grid: where the windows of a for-loop begin and end, where t and the ends move by fixed steps (semantics 10.8).

All begins are then equal modulo one number of ticks, and so are all ends: between them the stream can be cut into slices.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.window import LoopEnds


@dataclass(frozen=True, slots=True)
class Linear:
    """The value by_t · t + by_start · ST + constant."""

    by_t: int
    by_start: int
    constant: int

    def plus(self, other: "Linear", times: int = 1) -> "Linear":
        """Return the sum of this and a multiple of another."""
        return Linear(
            self.by_t + times * other.by_t,
            self.by_start + times * other.by_start,
            self.constant + times * other.constant,
        )

    def times(self, factor: int) -> "Linear":
        """Return a multiple."""
        return _ZERO.plus(self, factor)

    def at(self, t: int, start: int) -> int:
        """Return the value for a `t` and an ST."""
        return self.by_t * t + self.by_start * start + self.constant


_ZERO = Linear(0, 0, 0)


@dataclass(frozen=True, slots=True)
class LoopGrid:
    """Every begin is that of the first window plus a multiple of `slide` ticks, and every end is that plus another multiple."""

    slide: int
    fixed: bool
    """Whether all windows begin at one tick: a landmark loop."""
    _first: Linear
    _left: Linear
    _right: Linear

    def ends(self, start: int) -> tuple[int, int]:
        """Return the ends of the first window of a query that starts at a tick."""
        t = self._first.at(0, start)
        return self._left.at(t, start), self._right.at(t, start)


def find_loop_grid(ends: LoopEnds) -> LoopGrid | None:
    """Return the grid of a loop over ticks; None where its windows lie on none, or where all of them are the same."""
    loop = ends.loop
    first, change, left, right = (
        find_linear(e, loop.t, loop.start) for e in (loop.first, loop.change, ends.left, ends.right)
    )
    if loop.rows or first is None or change is None or left is None or right is None:
        return None
    if (change.by_t, change.by_start) != (1, 0):
        return None
    slide = gcd(left.by_t * change.constant, right.by_t * change.constant)
    return LoopGrid(slide, left.by_t == 0, first, left, right) if slide else None


def find_linear(e: Expression, t: Column, start: Column) -> Linear | None:
    """Return an expression of a loop as a linear one of t and ST; None where it is none, or divides."""
    return ex.fold_expression(e, lambda part, below: _linear(part, below, t, start))


def _linear(e: Expression, below: Sequence[Linear | None], t: Column, start: Column) -> Linear | None:
    if any(part is None for part in below):
        return None
    parts = [part for part in below if part is not None]
    match e:
        case ex.Literal(value=int() as value):
            return Linear(0, 0, value)
        case ex.Attr(column=column):
            return Linear(int(column == t), int(column == start), 0)
        case ex.Negative():
            return parts[0].times(-1)
        case ex.Arithmetic(op="+" | "-" as op):
            return parts[0].plus(parts[1], 1 if op == "+" else -1)
        case ex.Arithmetic(op="*", right=ex.Literal()):
            return parts[0].times(parts[1].constant)
        case ex.Arithmetic(op="*", left=ex.Literal()):
            return parts[1].times(parts[0].constant)
    return None
