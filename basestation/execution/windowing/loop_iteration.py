"""One evaluation of a for-loop (semantics 10.8)."""

from dataclasses import dataclass

Ends = tuple[int, int]
"""The left and the right end of one window: ticks or rows."""


@dataclass(frozen=True, slots=True)
class LoopIteration:
    """One value of t: the ends of its windows, by input position. It is the n-th at its tick."""

    tick: int
    n: int
    t: int
    ends: dict[int, Ends]
