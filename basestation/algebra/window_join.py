"""WindowJoin: a product whose pairs must agree on keys; made by a rewrite only.

Windows combine as in WindowCrossProduct; within a combination only the tuples that agree are put together, in the
order the product would have them.
"""

from dataclasses import dataclass

from basestation.algebra.expression import Expression
from basestation.algebra.node import WindowNode
from basestation.algebra.operator_mixins import ProductMixin


@dataclass(frozen=True, slots=True)
class WindowJoin(ProductMixin, WindowNode):
    """`keys` are equalities (a, b), each side over the columns of one input; `residual` is what else must hold."""

    inputs: tuple[WindowNode, ...]
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None = None

    @property
    def expressions(self):
        sides = tuple(side for key in self.keys for side in key)
        return sides if self.residual is None else (*sides, self.residual)
