"""RStream, IStream, DStream: from windows back to a stream (figure 8): one concept, three differences.

RStream gives all tuples of each window, IStream those that were not in the window before, DStream those of the window
before that are gone. Tick and arrival are those of the window being processed (SEMANTICS 6).
"""

from dataclasses import dataclass

from basestation.algebra.expression import Column
from basestation.algebra.node import StreamNode, WindowNode
from basestation.algebra.operator_mixins import UnaryOperator


@dataclass(frozen=True, slots=True)
class Converter(UnaryOperator, StreamNode):
    child: WindowNode
    tag_columns: tuple[Column, Column]

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
