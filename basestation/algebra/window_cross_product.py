"""WindowCrossProduct: every combination of the most recent windows of all inputs, tuple by tuple (figure 7, semantics 4)."""

from dataclasses import dataclass

from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import ProductMixin


@dataclass(frozen=True, slots=True)
class WindowCrossProduct(ProductMixin, WindowNode):
    """Inputs in the order of FROM: the first varies slowest (semantics 4.4)."""

    inputs: tuple[WindowNode, ...]
