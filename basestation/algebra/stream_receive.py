"""StreamReceive: the tuples of a pushed extent, as they come (section 6.1 of the paper)."""

from dataclasses import dataclass

from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamReceive(StreamNode):
    extent: Extent
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]

    @property
    def columns(self):
        return self.attributes

    @property
    def tags(self):
        return self.tag_columns
