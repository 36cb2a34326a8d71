"""Expressions without columns are computed once, at planning time; AND and OR lose their decided terms.

Unknown and false stay distinct: NOT unknown is unknown (semantics 5.1).
"""

from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Expression
from basestation.algebra.mapping import map_expressions
from basestation.algebra.node import PlanNode

_NEVER = (ex.Attr, ex.Aggregate, ex.SubqueryExpression, ex.Literal, ex.Truth)


def fold_constants(root: PlanNode) -> PlanNode:
    return map_expressions(root, lambda e: ex.transform(e, _fold))


def _fold(e: Expression) -> Expression:
    if isinstance(e, _NEVER):
        return e
    if isinstance(e, ex.And | ex.Or):
        return _decide(e)
    if isinstance(e, ex.Not) and isinstance(e.term, ex.Truth):
        return ex.Truth(None if e.term.outcome is None else not e.term.outcome)
    if not all(isinstance(part, ex.Literal | ex.Truth) for part in e.parts):
        return e
    outcome = Evaluation({}, 1).of(e).to_list()[0]
    if e.is_predicate:
        return ex.Truth(outcome)
    return ex.Literal(outcome, e.type)


def _decide(e: ex.And | ex.Or) -> Expression:
    """AND without its true terms, or false if one term is false; OR with the roles swapped."""
    winner = isinstance(e, ex.Or)
    if any(isinstance(t, ex.Truth) and t.outcome is winner for t in e.terms):
        return ex.Truth(winner)
    left = [t for t in e.terms if not (isinstance(t, ex.Truth) and t.outcome is (not winner))]
    if len(left) == len(e.terms):
        return e
    if not left:
        return ex.Truth(not winner)
    return e.with_parts(tuple(left))
