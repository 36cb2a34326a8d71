"""Fold: aggregate the tuples of each slice and group on the way, and send partials instead of readings.

A mote folds its own readings, merges what its children send, and hands on one partial for each slice and group.
"""

from dataclasses import dataclass

from innet.operators import Operator
from innet.operators.acquire import acquired
from innet.operators.mote_expression import Expression
from innet.operators.slices import Slices


@dataclass(frozen=True, slots=True)
class Fold(Operator):
    """`states` pairs the kind of a state (the name of an aggregate of `innet.aggregates`) with what is folded into it.

    `extent` is the one whose sampling the program belongs to: all of a join's are sampled at its ticks.
    """

    child: Operator
    extent: str
    slices: Slices
    keys: tuple[Expression, ...]
    states: tuple[tuple[str, Expression], ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return ()

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(kind for kind, _ in self.states)

    @property
    def interval(self) -> int:
        """Ticks between the readings that it takes."""
        return acquired(self)[self.extent].interval

    def label(self) -> str:
        states = ", ".join(f"{kind} {value}" for kind, value in self.states) or "nothing"
        by = f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"fold {states}{by} in slices {self.slices.label()}"
