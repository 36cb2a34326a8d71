"""StreamUnion: several streams as one; ticks and arrivals stay, indexes are counted anew (semantics 10.6)."""

from dataclasses import dataclass

from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode
from basestation.algebra.operator_mixins import UnionMixin


@dataclass(frozen=True, slots=True)
class StreamUnion(UnionMixin, StreamNode):
    """At the same arrival the tuples of an earlier part come first. Columns of the parts match by position."""

    parts: tuple[StreamNode, ...]
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.tag_columns


def count_parts(node: StreamNode) -> int:
    """Return how many parts of unions the tuples of a stream come from, at most, parts of parts included."""
    below = max((count_parts(child) for child in node.children if isinstance(child, StreamNode)), default=1)
    return below * len(node.parts) if isinstance(node, StreamUnion) else below
