"""Fold: aggregate the tuples of each slice and group in the network, and send partials instead of readings.

A mote folds its own readings, merges the partials of its children, and forwards one partial per slice and group.
"""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.acquire import find_acquires
from innet.operators.mote_expression import MoteExpression
from innet.operators.slices import SlicePattern


@dataclass(frozen=True, slots=True)
class Fold(MoteOperator):
    """Aggregate the tuples of `child` by slice and by `keys`.

    `states` has (kind, value): the name of an aggregate of `innet.aggregates`, and the expression that it aggregates.
    `extent` is the extent whose sampling runs the program; the other extents of a join are sampled at its ticks.
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
        """The aggregates of its states."""
        return tuple(kind for kind, _ in self.states)

    @property
    def interval(self) -> int:
        """Ticks between the readings that it folds."""
        return find_acquires(self)[self.extent].interval

    def label(self) -> str:
        states = ", ".join(f"{kind} {value}" for kind, value in self.states) or "nothing"
        by = f" by {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"fold {states}{by} in slices {self.slices.label()}"
