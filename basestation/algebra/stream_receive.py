"""StreamReceive: the tuples of a pushed extent, in the order of arrival (section 6.1 of the paper)."""

from dataclasses import dataclass

from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode


@dataclass(frozen=True, slots=True)
class StreamReceive(StreamNode):
    """`attributes` are the columns that it reads, each with the name of the declared attribute."""

    extent: Extent
    attributes: tuple[Column, ...]
    tag_columns: tuple[Column, Column]

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.attributes

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.tag_columns
