"""RStream, IStream, DStream: from windows back to a stream (figure 8, semantics 6).

RStream gives all tuples of each window, IStream those that the window before does not have, DStream those of the window
before that this one does not have. A tuple gets the tick and arrival of the window being processed.
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
    def columns(self) -> tuple[Column, ...]:
        return self.child.columns

    @property
    def tags(self) -> tuple[Column, Column]:
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
