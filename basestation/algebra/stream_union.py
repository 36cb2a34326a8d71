"""StreamUnion: several streams as one; ticks and arrivals stay, indexes are counted anew (SEMANTICS 10.6)."""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Column
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamUnion(StreamNode):
    """At the same arrival the tuples of an earlier part come first. Columns of the parts match by position."""

    parts: tuple[StreamNode, ...]
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]

    @property
    def children(self):
        return self.parts

    def with_children(self, children):
        return replace(self, parts=tuple(children))

    @property
    def columns(self):
        return self.attributes

    @property
    def tags(self):
        return self.tag_columns
