"""SliceAggregation: WindowAggregation over a window of time, computed from slices; created by a rewrite only.

The stream is cut at the edges of the windows. Each slice keeps one partial state per group. A window merges the slices
in its range.
"""

from dataclasses import dataclass
from typing import NamedTuple

from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Aggregate
from basestation.algebra.node import PlanNode, StreamNode, WindowNode
from basestation.algebra.operator_mixins import AggregateMixin
from basestation.algebra.window import LoopEnds, LoopWindow


class TickRange(NamedTuple):
    """The range of a window of time as offsets in ticks, never positive: the window at w has ticks w+begin to w+end."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class SliceAggregation(AggregateMixin, WindowNode):
    """`begin` and `end` are offsets in ticks as in TimeWindow; begin is None for a landmark window.

    The windows of a for-loop have their ends in `loop`; begin is None, and `slide` says after how many ticks the ends repeat.
    """

    groups: tuple[tuple[Column, Expression], ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    begin: int | None
    end: int
    slide: int
    child: StreamNode
    grouped: bool
    loop: LoopEnds | None = None

    @property
    def edges(self) -> int:
        """The number of slices per slide. Both ends of a window are edges; a closed range ends one tick later."""
        aligned = self.begin is None or (self.end + 1 - self.begin) % self.slide == 0
        return 1 if aligned else 2


def find_loop_ends(node: PlanNode) -> LoopEnds | None:
    """Return the ends of the windows that a for-loop makes in an operator; None where it has no loop."""
    match node:
        case LoopWindow():
            return node.ends
        case SliceAggregation(loop=ends):
            return ends
    return None
