"""WindowCrossProduct: every combination of the most recent windows of all inputs, tuple by tuple (figure 7, section 4)."""

from dataclasses import dataclass, replace

from basestation.algebra.node import WindowNode


@dataclass(frozen=True, slots=True)
class WindowCrossProduct(WindowNode):
    """Inputs in the order of FROM: the first varies slowest (4.4)."""

    inputs: tuple[WindowNode, ...]

    @property
    def children(self):
        return self.inputs

    def with_children(self, children):
        return replace(self, inputs=tuple(children))

    @property
    def columns(self):
        return tuple(column for child in self.inputs for column in child.columns)
