"""SiteJoin: join the readings that one site takes of two extents at the same tick.

So no mote needs readings of another. For a Deliver above it, both readings of each pair are sent, and the base station
joins them again. For a Fold above it, partials of the pairs are sent.
"""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.mote_expression import TRUE, MoteExpression


@dataclass(frozen=True, slots=True)
class SiteJoin(MoteOperator):
    """The pairs of readings of one site and tick for which `predicate` is true."""

    left: MoteOperator
    right: MoteOperator
    predicate: MoteExpression

    @property
    def children(self) -> tuple[MoteOperator, ...]:
        return self.left, self.right

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.left.attributes + self.right.attributes

    def label(self) -> str:
        where = "" if self.predicate == TRUE else f" where {self.predicate}"
        return f"join at the same site and tick{where}"
