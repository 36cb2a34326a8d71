"""StreamMerged: the tuples of a stream, which motes fold on the way: instead of them partials come; made at deployment only.

It stands below the SliceAggregation that the partials are for, over the stream that the motes fold.
"""

from dataclasses import dataclass

from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamMerged(StreamNode):
    """`number` is that of the fold. `sources` has for each aggregate above where the fold keeps its state; None where it
    is the number of readings, which every partial has."""

    number: int
    sources: tuple[int | None, ...]
    child: StreamNode

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        (child,) = children
        return StreamMerged(self.number, self.sources, child)

    @property
    def columns(self):
        return self.child.columns

    @property
    def tags(self):
        return self.child.tags
