"""Binds an expression: names become columns and every part gets a type; errors have a place (semantics 2.2, 5, 10.4).

After an error an expression is UNKNOWN. Every expression over it is UNKNOWN too and reports no further error.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode
from basestation.language import syntax
from basestation.language.keywords import CONVERTERS, find_nearest, suggest_type
from basestation.language.node import SyntaxNode
from basestation.planner.diagnostic_report import Report
from basestation.planner.functions import AGGREGATES, FUNCTIONS, TYPES, Signature, find_elsewhere
from basestation.planner.scope import Scope
from basestation.planner.source_binder import Subquery
from gateway.source import did_you_mean

_ARITHMETIC = ("+", "-", "*", "/", "%")
_CONVERTERS = tuple(sorted(CONVERTERS))
_LEAST, _MOST = -(2**63), 2**63 - 1
UNKNOWN: Expression = ex.Literal(None, None)
"""Stands for an expression with an error. Compare by identity: NULL is an equal literal."""
BindSubquery: TypeAlias = Callable[[Subquery], PlanNode | None]
"""Binds a subquery outside FROM, or reports that none may stand there and returns None."""


@dataclass(frozen=True, slots=True)
class ExpressionBinder:
    """Binds the expressions of one clause.

    `grouped` are the columns that may stand outside aggregates (None: all). `aggregates` is the reason why no aggregate
    may stand here (None: it may). `unordered` says what to write in place of FIRST and LAST (None: FROM is one stream,
    so that they have an order).
    """

    scope: Scope
    report: Report
    subquery: BindSubquery
    grouped: frozenset[Column] | None = None
    aggregates: str | None = "only the SELECT list and HAVING of a window query aggregate"
    unordered: str | None = None

    # --- by required kind --------------------------------------------------------------------------------------------

    def value(self, written: syntax.Expr) -> Expression:
        """The bound expression, which must be a value."""
        found = self._bind(written)
        if found is not UNKNOWN and found.is_predicate:
            self.report.error(
                "SN303",
                "a value is needed here, this is a predicate",
                written,
                help="CASE WHEN … THEN 1 ELSE 0 END makes a value of it",
            )
            return UNKNOWN
        return found

    def predicate(self, written: syntax.Expr, clause: str = "WHERE") -> Expression:
        """The bound expression, which must be a predicate. NULL is a predicate too (14)."""
        found = self._bind(written)
        if found is not UNKNOWN and not found.is_predicate:
            self.report.error(
                "SN304",
                f"{clause} needs a predicate, this is a value",
                written,
                help="compare it: … > 0, … IS NOT NULL",
            )
            return UNKNOWN
        return found

    def number(self, written: syntax.Expr, what: str) -> Expression:
        """The bound expression, which must be a number or NULL. `what` names the operator in an error."""
        found = self.value(written)
        if found is not UNKNOWN and found.type is Type.STRING:
            self.report.error(
                "SN301",
                f"{what} needs numbers, this is a string",
                written,
                help="CAST(… AS float) reads a number from a string",
            )
            return UNKNOWN
        return found

    # --- node by node ------------------------------------------------------------------------------------------------

    def _bind(self, written: syntax.Expr) -> Expression:
        match written:
            case syntax.Number():
                return self._constant(written.value, written)
            case syntax.String():
                return ex.Literal(written.value, Type.STRING)
            case syntax.Null():
                return ex.Literal(None, None)
            case syntax.ColumnRef():
                return self._column(written)
            case syntax.Unary():
                return self._unary(written)
            case syntax.Binary():
                return self._binary(written)
            case syntax.IsNull():
                return self._is_null(written)
            case syntax.Between():
                return self._between(written)
            case syntax.InList():
                return self._in_list(written)
            case syntax.Like():
                return self._like(written)
            case syntax.Case():
                return self._case(written)
            case syntax.Cast():
                return self._cast(written)
            case syntax.Call():
                return self._call(written)
            case syntax.ScalarSubquery() | syntax.Exists() | syntax.InQuery():
                return self._subquery(written)
            case syntax.Bad():
                return UNKNOWN
        raise TypeError(f"no expression: {written!r}")

    def _constant(self, value: int | float, written: syntax.Expr) -> Expression:
        if isinstance(value, int):
            if not _LEAST <= value <= _MOST:
                self.report.error(
                    "SN308",
                    "an integer has 64 bits",
                    written,
                    help=f"the greatest is {_MOST}; write {value}.0 for a float"
                    if value > 0
                    else f"the least is {_LEAST}",
                )
                return UNKNOWN
            return ex.Literal(value, Type.INTEGER)
        if value in (float("inf"), float("-inf")):
            self.report.error("SN308", "a float reaches to about 1.8e308", written)
            return UNKNOWN
        return ex.Literal(value, Type.FLOAT)

    def _column(self, written: syntax.ColumnRef) -> Expression:
        column = self.scope.find(written, self.report)
        if column is None:
            return UNKNOWN
        if self.grouped is not None and column not in self.grouped:
            self.report.error(
                "SN406",
                f"`{column}` is neither grouped by nor inside an aggregate",
                written,
                help=f"add it to GROUP BY, or aggregate it, for example MAX({column})",
            )
            return UNKNOWN
        return ex.Attr(column)

    def _unary(self, written: syntax.Unary) -> Expression:
        if written.op == "NOT":
            term = self.predicate(written.operand, "NOT")
            return UNKNOWN if term is UNKNOWN else ex.Not(term)
        if isinstance(written.operand, syntax.Number):  # so that users can write the least integer
            return self._constant(-written.operand.value, written)
        operand = self.number(written.operand, "`-`")
        return UNKNOWN if operand is UNKNOWN else ex.Negative(operand)

    def _binary(self, written: syntax.Binary) -> Expression:
        if written.op in ("AND", "OR"):
            first, links = written.chain((written.op,))
            terms = [self.predicate(term, written.op) for term in (first, *(link.right for link in links))]
            if any_unknown(terms):
                return UNKNOWN
            return ex.conjunction(terms) if written.op == "AND" else ex.disjunction(terms)
        if written.op in _ARITHMETIC:
            return self._arithmetic(written)
        # The parser has reported a chain of comparisons or an operator of another language.
        if self.report.has_error_in(written.op_span):
            self._bind(written.left)
            self._bind(written.right)
            return UNKNOWN
        left, right = self.value(written.left), self.value(written.right)
        return ex.Compare(written.op, left, right) if self._comparable(left, right, written) else UNKNOWN

    def _arithmetic(self, written: syntax.Binary) -> Expression:
        """Without recursion: a chain `a + b + c + …` may be long."""
        first, links = written.chain(_ARITHMETIC)
        bound = self.number(first, f"`{links[0].op}`")
        for link in links:
            right = self.number(link.right, f"`{link.op}`")
            bound = UNKNOWN if any_unknown((bound, right)) else ex.Arithmetic(link.op, bound, right)
        return bound

    def _comparable(self, left: Expression, right: Expression, written: SyntaxNode) -> bool:
        if any_unknown((left, right)):
            return False
        kinds = {e.type is Type.STRING for e in (left, right) if e.type is not None}
        if len(kinds) == 2:
            self.report.error("SN302", "a string cannot be compared with a number", written, help="CAST one of them")
            return False
        return True

    def _is_null(self, written: syntax.IsNull) -> Expression:
        operand = self.value(written.operand)
        return UNKNOWN if operand is UNKNOWN else _negated(ex.IsNull(operand), written.negated)

    def _between(self, written: syntax.Between) -> Expression:
        operand, low, high = (self.value(e) for e in (written.operand, written.low, written.high))
        fits = [self._comparable(operand, end, written) for end in (low, high)]
        if not all(fits):
            return UNKNOWN
        if isinstance(operand, ex.Attr | ex.Literal):
            found: Expression = ex.conjunction((ex.Compare(">=", operand, low), ex.Compare("<=", operand, high)))
        else:
            found = ex.Between(operand, low, high)
        return _negated(found, written.negated)

    def _in_list(self, written: syntax.InList) -> Expression:
        operand = self.value(written.operand)
        items = [self.value(item) for item in written.items]
        fits = [self._comparable(operand, item, place) for item, place in zip(items, written.items, strict=True)]
        return _negated(ex.InItems(operand, tuple(items)), written.negated) if all(fits) else UNKNOWN

    def _like(self, written: syntax.Like) -> Expression:
        sides = [self.value(written.operand), self.value(written.pattern)]
        for side, place in zip(sides, (written.operand, written.pattern), strict=True):
            if side is not UNKNOWN and side.type not in (Type.STRING, None):
                self.report.error(
                    "SN305",
                    f"LIKE compares strings, this is of type {side.type}",
                    place,
                    help="CAST(… AS string) makes a string of it",
                )
                return UNKNOWN
        return UNKNOWN if any_unknown(sides) else _negated(ex.Like(sides[0], sides[1]), written.negated)

    def _case(self, written: syntax.Case) -> Expression:
        branches = [(self.predicate(when, "WHEN"), self.value(then)) for when, then in written.branches]
        otherwise = ex.Literal(None, None) if written.otherwise is None else self.value(written.otherwise)
        values = [then for _, then in branches] + [otherwise]
        if any_unknown([when for when, _ in branches] + values):
            return UNKNOWN
        if not self._one_kind(values, written, "the branches of CASE"):
            return UNKNOWN
        return ex.Case(tuple(branches), otherwise)

    def _one_kind(self, values: Sequence[Expression], place: SyntaxNode, what: str) -> bool:
        if len({v.type is Type.STRING for v in values if v.type is not None}) == 2:
            self.report.error(
                "SN305", f"{what} are strings and numbers", place, help="CAST some of them, so that all are of one kind"
            )
            return False
        return True

    def _cast(self, written: syntax.Cast) -> Expression:
        operand = self.value(written.operand)
        name = written.type.text.lower()
        if name not in TYPES:
            self.report.error(
                "SN206",
                f"there is no type `{written.type.text}`",
                written.type,
                expected=tuple(TYPES),
                help=suggest_type(name),
            )
            return UNKNOWN
        return UNKNOWN if operand is UNKNOWN else ex.Cast(operand, TYPES[name])

    def _call(self, written: syntax.Call) -> Expression:
        name = written.function
        if name in AGGREGATES:
            return self._aggregate(written, name)
        if name not in FUNCTIONS:
            known = (*FUNCTIONS, *AGGREGATES)
            converter = find_nearest(name, _CONVERTERS)
            help = f"{converter} stands around a whole query: {converter}(SELECT …)" if converter else None
            self.report.error(
                "SN205",
                f"there is no function `{written.name.text}`",
                written.name,
                help=help or find_elsewhere(name) or did_you_mean(name, known),
            )
            return self._check_arguments(written)
        if written.star:  # the parser reports it: only COUNT takes it
            return UNKNOWN
        if written.distinct:
            self.report.error(
                "SN307",
                f"DISTINCT is for COUNT, {name} is a function",
                written,
                help=f"usage: {FUNCTIONS[name].usage}",
            )
            return self._check_arguments(written)
        arguments = self._arguments(written, name, FUNCTIONS[name])
        if arguments is None:
            return UNKNOWN
        return ex.Function(name, arguments, FUNCTIONS[name].result_type([a.type for a in arguments]))

    def _arguments(self, written: syntax.Call, name: str, signature: Signature) -> tuple[Expression, ...] | None:
        """The bound arguments, with the number and types of the signature; None after an error."""
        count = len(written.arguments)
        if count < signature.min_arguments or (signature.max_arguments is not None and count > signature.max_arguments):
            self.report.error(
                "SN307",
                f"{name} does not take {count} argument{'s' * (count != 1)}",
                written,
                help=f"usage: {signature.usage}",
            )
            self._check_arguments(written)
            return None
        arguments = [self.value(a) for a in written.arguments]
        if any_unknown(arguments):
            return None
        if signature.accepts == "alike":
            return tuple(arguments) if self._one_kind(arguments, written, f"the arguments of {name}") else None
        wrong: dict[str, Callable[[Type | None], bool]] = {
            "number": lambda t: t is Type.STRING,
            "string": lambda t: t not in (Type.STRING, None),
            "any": lambda t: False,
        }
        for argument, place in zip(arguments, written.arguments, strict=True):
            if wrong[signature.accepts](argument.type):
                code = "SN301" if signature.accepts == "number" else "SN305"
                self.report.error(
                    code,
                    f"{name} takes a {signature.accepts}, this is {'a string' if argument.type is Type.STRING else f'of type {argument.type}'}",
                    place,
                    help=f"usage: {signature.usage}",
                )
                return None
        return tuple(arguments)

    def _check_arguments(self, written: syntax.Call) -> Expression:
        """Report the errors inside the arguments of a wrong call. Returns UNKNOWN."""
        for argument in written.arguments:
            replace(self, grouped=None, aggregates=None, unordered=None).value(argument)
        return UNKNOWN

    def _aggregate(self, written: syntax.Call, name: str) -> Expression:
        if self.aggregates is not None:
            self.report.error("SN405", f"no aggregate can stand here: {self.aggregates}", written)
            return self._check_arguments(written)
        if name in ("FIRST", "LAST") and self.unordered is not None:
            self.report.error(
                "SN422",
                f"{name} goes by the ticks of one stream; here is not exactly one stream in FROM",
                written,
                help=self.unordered,
            )
            return self._check_arguments(written)
        if written.star and name != "COUNT":  # the parser reports it
            return UNKNOWN
        if written.distinct and name != "COUNT":
            self.report.error(
                "SN307",
                f"only COUNT takes DISTINCT, not {name}",
                written,
                help=f"usage: {AGGREGATES[name].usage}",
            )
            return self._check_arguments(written)
        if written.star:
            return ex.Aggregate(name, None, Type.INTEGER)
        inner = replace(self, grouped=None, aggregates="it is inside another aggregate")
        arguments = inner._arguments(written, name, AGGREGATES[name])
        if arguments is None:
            return UNKNOWN
        share = None
        if name == "QUANTILE":
            q = arguments[1]
            if not isinstance(q, ex.Literal) or not isinstance(q.value, int | float) or not 0 <= q.value <= 1:
                self.report.error(
                    "SN423",
                    "the share of QUANTILE is a number from 0 to 1, written out",
                    written.arguments[1],
                    help="0.5 is the median",
                )
                return UNKNOWN
            share = float(q.value)
        return ex.Aggregate(
            name, arguments[0], AGGREGATES[name].result_type([arguments[0].type]), written.distinct, share
        )

    # --- subqueries (one-off queries only) ---------------------------------------------------------------------------

    def _subquery(self, written: Subquery) -> Expression:
        operand = self.value(written.operand) if isinstance(written, syntax.InQuery) else None
        node = self.subquery(written)
        if node is None:
            return UNKNOWN
        if isinstance(written, syntax.Exists):
            return ex.SubqueryExpression("EXISTS", node)
        if not isinstance(written, syntax.InQuery):
            one = self._one_column(node, written)
            return ex.SubqueryExpression("SCALAR", node, node.columns[0].type) if one else UNKNOWN
        if operand is None or operand is UNKNOWN or not self._one_column(node, written):
            return UNKNOWN
        if not self._comparable(operand, ex.Attr(node.columns[0]), written):
            return UNKNOWN
        return _negated(ex.SubqueryExpression("IN", node, operand=operand), written.negated)

    def _one_column(self, node: PlanNode, written: SyntaxNode) -> bool:
        if len(node.columns) == 1:
            return True
        self.report.error("SN309", f"a subquery here gives one column, this one gives {len(node.columns)}", written)
        return False


def any_unknown(bound: Iterable[Expression | None]) -> bool:
    """Whether one of the expressions had an error."""
    return any(e is UNKNOWN for e in bound)


def _negated(predicate: Expression, negated: bool) -> Expression:
    return ex.Not(predicate) if negated else predicate
