"""Subqueries outside FROM (semantics 10.6). None is correlated, so each is a block of its own, evaluated once.

Its result takes its place in the expressions: one value, a truth value, or the values that IN searches.
"""

from typing import Any, Protocol

from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.expression import Expression
from basestation.algebra.mapping import map_expressions
from basestation.algebra.node import PlanNode
from basestation.algebra.vector import Vector
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import AnsweredWindows, WindowCombinations
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.query_failure import QueryFailedError


class SubqueryBlock(Protocol):
    """A block as its enclosing block evaluates it."""

    @property
    def all(self) -> list[Any]:
        """The blocks of its own subqueries, and this one."""

    @property
    def watermark(self) -> int:
        """The last tick up to which the block answers."""

    @property
    def answered(self) -> AnsweredWindows:
        """The windows that the block answered and still keeps."""

    def frame_of(self, windows: WindowCombinations) -> WindowContents:
        """Return the rows of windows."""

    def step(self, clock: int) -> None:
        """Bring the block up to clock tick `clock`."""

    def describe(self) -> OperatorDescription:
        """Return what EXPLAIN prints."""


def find_subqueries(node: PlanNode) -> list[ex.SubqueryExpression]:
    """The subquery expressions of a tree over tables, without those inside of subqueries."""
    found: list[ex.SubqueryExpression] = []

    def note(expression: Expression) -> Expression:
        found.extend(e for e in ex.walk(expression) if isinstance(e, ex.SubqueryExpression))
        return expression

    map_expressions(node, note)
    return found


class Subqueries:
    """The subqueries of one block, each as its plan and the block that runs it."""

    def __init__(self, blocks: list[tuple[object, SubqueryBlock]]) -> None:
        """`blocks` has pairs of the plan of a subquery expression and its block."""
        self._blocks = blocks

    @property
    def blocks(self) -> list[SubqueryBlock]:
        """The blocks, in the order of the expressions."""
        return [block for _, block in self._blocks]

    @property
    def watermark(self) -> int:
        """The last tick up to which all can answer; NEVER once they are answered."""
        return NEVER if self.answered else min(block.watermark for block in self.blocks)

    def step(self, clock: int) -> None:
        """One step of all blocks."""
        for block in self.blocks:
            block.step(clock)

    @property
    def answered(self) -> bool:
        """Whether all subqueries have a result."""
        return all(len(block.answered) for block in self.blocks)

    def substitute_into(self, node: PlanNode) -> PlanNode:
        """The tree with results instead of subqueries; with null and unknown before there are any.

        Raises QueryFailedError where a subquery gives more than one value.
        """
        return map_expressions(node, lambda e: ex.transform(e, self._replace))

    def _replace(self, e: Expression) -> Expression:
        if not isinstance(e, ex.SubqueryExpression):
            return e
        block = next(block for plan, block in self._blocks if plan is e.plan)
        if not self.answered:
            return ex.Truth(None) if e.is_predicate else ex.Literal(None, e.type)
        frame = block.frame_of(block.answered.all())
        if e.how == "EXISTS":
            return ex.Truth(len(frame) > 0)
        column = e.plan.columns[0]
        vector = frame.columns[column.id]
        if column.scale is not None:
            vector = Vector(multiples_to_doubles(vector.values, column.scale), vector.valid)
        if e.operand is not None:  # IN
            return ex.InValues(e.operand, vector)
        if len(vector) > 1:
            raise QueryFailedError("SN511", f"a subquery gives {len(vector)} rows where one value is needed")
        return ex.Literal(vector.to_list()[0] if len(vector) else None, e.type)
