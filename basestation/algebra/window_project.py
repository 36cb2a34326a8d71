"""WindowProject: new attributes for each tuple of each window; duplicates stay (semantics 5.4)."""

from dataclasses import dataclass

from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import ProjectMixin


@dataclass(frozen=True, slots=True)
class WindowProject(ProjectMixin, WindowNode):
    outputs: tuple[tuple[Column, Expression], ...]
    child: WindowNode
