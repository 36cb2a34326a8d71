"""Expressions as text in the notation of the paper: `road.temp<50 and road.vibration>20`."""

from collections.abc import Iterable

from basestation.algebra import expressions as ex
from basestation.algebra.expression import Expression

_RANK = {"or": 1, "and": 2, "not": 3, "compare": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "minus": 7, "atom": 8}


def format_expression(expression: Expression) -> str:
    """An expression on one line, with no more parentheses than it needs."""
    return _text(expression)[0]


def _text(e: Expression) -> tuple[str, int]:
    """The text, and the rank of its outermost operator: a higher rank binds more tightly."""
    match e:
        case ex.Literal(value=None):
            return "null", _RANK["atom"]
        case ex.Literal(value=str() as value):
            return "'" + value.replace("'", "''") + "'", _RANK["atom"]
        case ex.Literal(value=value):
            return str(value), _RANK["minus" if str(value).startswith("-") else "atom"]
        case ex.Truth(outcome=outcome):
            return {True: "true", False: "false", None: "unknown"}[outcome], _RANK["atom"]
        case ex.Attr(column=column):
            return str(column), _RANK["atom"]
        case ex.Negative(operand=operand):
            return f"-{_within(operand, 'minus', strictly=True)}", _RANK["minus"]
        case ex.Arithmetic():
            return _chain(e), _RANK[e.op]
        case ex.Compare(op=op, left=left, right=right):
            return f"{_within(left, 'compare', True)}{op}{_within(right, 'compare', True)}", _RANK["compare"]
        case ex.And(terms=terms):
            return " and ".join(_within(term, "and", True) for term in terms), _RANK["and"]
        case ex.Or(terms=terms):
            return " or ".join(_within(term, "or", True) for term in terms), _RANK["or"]
        case ex.Not(term=ex.IsNull(operand=operand)):
            return f"{_within(operand, 'compare', True)} is not null", _RANK["compare"]
        case ex.Not(term=term):
            return f"not {_within(term, 'not')}", _RANK["not"]
        case ex.IsNull(operand=operand):
            return f"{_within(operand, 'compare', True)} is null", _RANK["compare"]
        case ex.InItems(operand=operand, items=items):
            return f"{_within(operand, 'compare', True)} in ({_list(items)})", _RANK["compare"]
        case ex.Between(operand=operand, low=low, high=high):
            ends = " and ".join(_within(end, "compare", True) for end in (low, high))
            return f"{_within(operand, 'compare', True)} between {ends}", _RANK["compare"]
        case ex.Like(operand=operand, pattern=pattern):
            return f"{_within(operand, 'compare', True)} like {_within(pattern, 'compare', True)}", _RANK["compare"]
        case ex.Case(branches=branches, otherwise=otherwise):
            whens = " ".join(
                f"when {format_expression(when)} then {format_expression(then)}" for when, then in branches
            )
            return f"case {whens} else {format_expression(otherwise)} end", _RANK["atom"]
        case ex.Cast(operand=operand, to=to):
            return f"cast({format_expression(operand)} as {to})", _RANK["atom"]
        case ex.Function(name=name, arguments=arguments):
            return f"{name}({_list(arguments)})", _RANK["atom"]
        case ex.Aggregate():
            return _aggregate(e), _RANK["atom"]
        case ex.SubqueryExpression(how="IN", operand=Expression() as operand):
            return f"{_within(operand, 'compare', True)} in (subquery)", _RANK["compare"]
        case ex.SubqueryExpression(how=how):
            return f"{how}(subquery)", _RANK["atom"]
    raise TypeError(f"no text for {e!r}")


def _within(e: Expression, place: str, strictly: bool = False) -> str:
    """The text as an operand at `place`, in parentheses if its rank is lower (or, if `strictly`, equal)."""
    text, rank = _text(e)
    return f"({text})" if rank < _RANK[place] + strictly else text


def _chain(chain: ex.Arithmetic) -> str:
    """A left-deep chain of operators of one rank, without recursion: it may be long."""
    rank, pieces = _RANK[chain.op], []
    e: Expression = chain
    while isinstance(e, ex.Arithmetic) and _RANK[e.op] == rank:
        right, right_rank = _text(e.right)
        pieces.append(f"{e.op}({right})" if right_rank <= rank or right.startswith("-") else f"{e.op}{right}")
        e = e.left
    first, first_rank = _text(e)
    pieces.append(f"({first})" if first_rank < rank else first)
    return "".join(reversed(pieces))


def _list(items: Iterable[Expression]) -> str:
    return ", ".join(format_expression(item) for item in items)


def _aggregate(e: ex.Aggregate) -> str:
    inner = "*" if e.argument is None else format_expression(e.argument)
    share = "" if e.share is None else f", {e.share}"
    return f"{e.name}({'distinct ' if e.distinct else ''}{inner}{share})"
