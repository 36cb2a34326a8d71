"""Fold: aggregate the tuples of each slice and group on the way, and send partials instead of readings.

A mote folds its own readings, merges what its children send, and hands on one partial for each slice and group.
"""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.acquire import find_acquires
from innet.operators.mote_expression import MoteExpression
from innet.operators.slices import SlicePattern


@dataclass(frozen=True, slots=True)
class Fold(MoteOperator):
    """`states` pairs the kind of a state (the name of an aggregate of `innet.aggregates`) with what is folded into it.

    `extent` is the one whose sampling the program belongs to: all of a join's are sampled at its ticks.
    """

    child: MoteOperator
    extent: str
    slices: SlicePattern
    keys: tuple[MoteExpression, ...]
    states: tuple[tuple[str, MoteExpression], ...]

    @property
    def children(self) -> tuple[MoteOperator, ...]:
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
        return find_acquires(self)[self.extent].interval

    def label(self) -> str:
        states = ", ".join(f"{kind} {value}" for kind, value in self.states) or "nothing"
        by = f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"fold {states}{by} in slices {self.slices.label()}"
