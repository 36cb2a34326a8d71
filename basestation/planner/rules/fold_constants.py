"""Expressions without columns are computed once, now; AND and OR lose what is decided.

Unknown is kept apart from false: NOT unknown is unknown (SEMANTICS 5.1). An integer result outside 64 bits is left to
the run, where it is not specified either.
"""

from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.mapping import map_expressions

_NEVER = (ex.Attr, ex.Aggregate, ex.SubqueryExpression, ex.Literal, ex.Truth)


def fold_constants(root):
    return map_expressions(root, lambda e: ex.transform(e, _fold))


def _fold(e):
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
    if isinstance(e, ex.Arithmetic | ex.Negative) and e.type.whole and _may_overflow(e):
        return e
    return ex.Literal(outcome, None if e.type is None else e.type)


def _may_overflow(e):
    sizes = [abs(part.value or 0).bit_length() for part in e.parts]
    return (sum(sizes) if getattr(e, "op", "-") == "*" else max(sizes) + 1) > 62


def _decide(e):
    """AND without its trues, false if one is; OR the other way round."""
    winner = isinstance(e, ex.Or)
    if any(isinstance(t, ex.Truth) and t.outcome is winner for t in e.terms):
        return ex.Truth(winner)
    left = [t for t in e.terms if not (isinstance(t, ex.Truth) and t.outcome is (not winner))]
    if len(left) == len(e.terms):
        return e
    if not left:
        return ex.Truth(not winner)
    return e.with_parts(tuple(left))
