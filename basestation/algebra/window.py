"""Windows over a stream: TimeWindow and RowWindow (figures 4 and 6), the landmark window, and the for-loop's.

Each is a sequence of (instant, left, right). The tuples from left to right, both inside, form a bag.
"""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import StreamNode, WindowNode
from basestation.algebra.operator_mixins import UnaryOperator


@dataclass(frozen=True, slots=True)
class StreamWindow(UnaryOperator, WindowNode):
    """The base: a window keeps the attributes of its tuples and loses tick and index (semantics 1.7)."""

    child: StreamNode

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns


@dataclass(frozen=True, slots=True)
class TimeWindow(StreamWindow):
    """At w = 0, slide, 2 slide, …: the tuples with w+begin <= tick <= w+end. Offsets in ticks, never positive."""

    begin: int
    end: int
    slide: int


@dataclass(frozen=True, slots=True)
class RowWindow(StreamWindow):
    """At row k = slide, 2 slide, …: rows k+begin to k+end of its stream (semantics 3.7)."""

    begin: int
    end: int
    slide: int


@dataclass(frozen=True, slots=True)
class LandmarkWindow(StreamWindow):
    """Every slide, all tuples since the query's start (semantics 10.3); `slide` counts ticks, or rows if `rows`."""

    slide: int
    rows: bool = False


@dataclass(frozen=True, slots=True)
class LoopRange:
    """One for-loop of TelegraphCQ (semantics 10.8): how t moves. Expressions are over `t` and `ST`, which are columns."""

    t: Column
    start: Column
    first: Expression
    condition: Expression
    change: Expression
    rows: bool


@dataclass(frozen=True, slots=True)
class LoopEnds:
    """The ends of the windows of one stream in a loop, for each t."""

    loop: LoopRange
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class LoopWindow(StreamWindow):
    """For each t of the loop the tuples with left <= tick (or row) <= right."""

    loop: LoopRange
    left: Expression
    right: Expression

    @property
    def ends(self) -> LoopEnds:
        """The ends of its windows."""
        return LoopEnds(self.loop, self.left, self.right)
