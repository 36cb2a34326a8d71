"""Asking: subqueries outside FROM (SEMANTICS 10.6). None correlates, so each is a block of its own, evaluated once.

What it gave takes its place in the expressions: one value, a truth, or the values among which IN looks.
"""

from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import multiples_to_doubles
from basestation.algebra.mapping import map_expressions
from basestation.algebra.vector import Vector
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.query_failure import QueryFailedError


def find_subqueries(node):
    """The FromQuery expressions of a tree over tables, those of subqueries not among them."""
    found = []

    def note(expression):
        found.extend(e for e in ex.walk(expression) if isinstance(e, ex.SubqueryExpression))
        return expression

    map_expressions(node, note)
    return found


class Subqueries:
    """The subqueries of one block: pairs of a plan and the block that carries it out."""

    def __init__(self, asked):
        self._asked = asked

    @property
    def blocks(self):
        return [block for _, block in self._asked]

    @property
    def watermark(self):
        """Nobody waits for them when they have been answered."""
        return NEVER if self.answered else min(block.watermark for _, block in self._asked)

    def step(self, clock):
        for _, block in self._asked:
            block.step(clock)

    @property
    def answered(self):
        return all(len(block.answered) for _, block in self._asked)

    def substitute_into(self, node):
        """The tree with what the subqueries gave; null and unknown before they gave anything. Halted where one cannot."""
        return map_expressions(node, lambda e: ex.transform(e, self._settle))

    def _settle(self, e):
        if not isinstance(e, ex.SubqueryExpression):
            return e
        block = next(block for plan, block in self._asked if plan is e.plan)
        if not self.answered:
            return ex.Truth(None) if e.is_predicate else ex.Literal(None, e.type)
        frame = block.frame_of(block.answered.all())
        if e.how == "EXISTS":
            return ex.Truth(len(frame) > 0)
        column = e.plan.columns[0]
        vector = frame.columns[column.id]
        if column.scale is not None:
            vector = Vector(multiples_to_doubles(vector.values, column.scale), vector.valid)
        if e.how == "IN":
            return ex.InValues(e.operand, vector)
        if len(vector) > 1:
            raise QueryFailedError("SN511", f"a subquery gives {len(vector)} rows where one value is needed")
        return ex.Literal(vector.to_list()[0] if len(vector) else None, e.type)
