"""Join: what one site measured of two extents at the same tick, where a predicate over both is true.

No mote ever needs another's readings for it. Whoever wants the pairs is sent both readings of each, and joins them
again; whoever wants partials of the pairs gets those.
"""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.mote_expression import TRUE, MoteExpression


@dataclass(frozen=True, slots=True)
class SiteJoin(MoteOperator):
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
