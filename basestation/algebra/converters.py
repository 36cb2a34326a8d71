"""RStream, IStream, DStream: from windows back to a stream (figure 8): one concept, three differences.

RStream gives all tuples of each window, IStream those that were not in the window before, DStream those of the window
before that are gone. Tick and arrival are those of the window being processed (SEMANTICS 6).
"""

from dataclasses import dataclass, replace

from basestation.algebra.expressions import Column
from basestation.algebra.node import StreamNode, WindowNode


@dataclass(frozen=True, slots=True)
class Converter(StreamNode):
    child: WindowNode
    tag_columns: tuple[Column, Column]

    @property
    def children(self):
        return (self.child,)

    def with_children(self, children):
        return replace(self, child=children[0])

    @property
    def columns(self):
        return self.child.columns

    @property
    def tags(self):
        return self.tag_columns


@dataclass(frozen=True, slots=True)
class RStream(Converter):
    pass


@dataclass(frozen=True, slots=True)
class IStream(Converter):
    pass


@dataclass(frozen=True, slots=True)
class DStream(Converter):
    pass
