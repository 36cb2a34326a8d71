"""StreamProject: new attributes for each tuple of a stream; tick, index and arrival stay (figure 3)."""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import StreamNode
from basestation.algebra.operator_mixins import ProjectMixin


@dataclass(frozen=True, slots=True)
class StreamProject(ProjectMixin, StreamNode):
    outputs: tuple[tuple[Column, Expression], ...]
    child: StreamNode

    @property
    def tags(self) -> tuple[Column, Column]:
        return self.child.tags
