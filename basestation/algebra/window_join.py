"""WindowJoin: a product whose pairs must agree on keys; created by a rewrite only.

Windows combine as in WindowCrossProduct. Within a combination only tuples that agree are joined, in the order of the
product.
"""

from dataclasses import dataclass

from basestation.algebra.expression import Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import ProductMixin


@dataclass(frozen=True, slots=True)
class WindowJoin(ProductMixin, WindowNode):
    """`keys` are equalities (a, b), each side over the columns of one input; `residual` is the rest of the condition."""

    inputs: tuple[WindowNode, ...]
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None = None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        sides = tuple(side for key in self.keys for side in key)
        return sides if self.residual is None else (*sides, self.residual)
