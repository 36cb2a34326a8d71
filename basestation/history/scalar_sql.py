"""Scalar SQL: expressions of the algebra as text of Spark SQL, exact where the engine is (semantics 5.1 to 5.3, 10.4).

A scaled attribute is a BIGINT of whole multiples, as in the engine; an expression reads it as the nearest double. The
session runs without ANSI mode, so a division by zero is null. Integers outside 64 bits are null by Spark's `try_` functions. Spark
keeps infinities, where the engine has null: a float that may be infinite is wrapped where something else than + - * reads it.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expression import Column, Expression
from basestation.algebra.node import PlanNode
from basestation.history.refusal import SparkRefusedError

SQL_TYPES = {Type.INTEGER: "BIGINT", Type.TIME: "BIGINT", Type.FLOAT: "DOUBLE", Type.STRING: "STRING"}
EXACT = 2**53
"""Every integer up to here is a double."""
_NUMBER = r"^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?\\z"
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_INEXACT = {"EXP": "exp", "LN": "ln", "POWER": "power"}
"""Functions whose last bit differs between Spark's library and the engine's."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """The text of a value. It may be infinite, or differ from the engine's in the last digits (not `is_exact`)."""

    text: str
    may_overflow: bool = False
    is_exact: bool = True

    @property
    def finite(self) -> str:
        """The text, null where the value is not finite."""
        if not self.may_overflow:
            return self.text
        return f"CASE WHEN abs({self.text}) <= 1.7976931348623157E308D THEN {self.text} END"


@dataclass(slots=True)
class ScalarCompiler:
    """Expressions over columns that have the names of `name_of`.

    `inexact` has the columns whose values may differ in the last digits; a predicate over them is refused. `largest` has the greatest absolute
    values of columns of whole numbers, where that is known. `subquery` gives the text of a subquery of a one-off query.
    """

    subquery: Callable[[PlanNode], str]
    tags: dict[Column, str] = field(default_factory=dict)
    inexact: set[Column] = field(default_factory=set)
    largest: dict[Column, int] = field(default_factory=dict)

    def value(self, e: Expression, type_: Type | None = None) -> str:
        """A value as a type, or its own; null where it is not finite."""
        return self.scalar(e, type_).finite

    def scalar(self, e: Expression, type_: Type | None = None) -> Scalar:
        """A value as a type, or its own."""
        made = ex.fold_expression(e, self._combine)
        return _as_type(made, e.type, type_ or e.type or Type.INTEGER)

    def predicate(self, e: Expression) -> str:
        """A predicate: true, false or null. SparkRefusedError where it reads an inexact value."""
        made = ex.fold_expression(e, self._combine)
        if not made.is_exact:
            raise SparkRefusedError(
                "a predicate reads a float sum, mean or power that Spark rounds otherwise than the live engine"
            )
        return made.text

    def plain(self, column: Column) -> str:
        """The name of a column, with whole multiples if it is scaled."""
        return self.tags.get(column, name_of(column))

    def _combine(self, e: Expression, parts: list[Scalar]) -> Scalar:
        made = self._build(e, parts)
        if e.is_predicate and not made.is_exact:
            raise SparkRefusedError(
                "a predicate reads a float sum, mean or power that Spark rounds otherwise than the live engine"
            )
        return made

    def _build(self, e: Expression, parts: list[Scalar]) -> Scalar:
        exact = all(part.is_exact for part in parts)
        texts = [part.finite for part in parts]
        match e:
            case ex.Literal(value=value):
                return Scalar(literal(value, e.type))
            case ex.Truth(outcome=outcome):
                return Scalar("CAST(NULL AS BOOLEAN)" if outcome is None else str(outcome).upper())
            case ex.Attr(column=column):
                text = self.plain(column)
                text = text if column.scale is None else unscale(text, column.scale)
                return Scalar(text, is_exact=column not in self.inexact)
            case ex.Negative():
                operand = _as_type(parts[0], e.operand.type, e.type)
                if e.type is not Type.FLOAT:
                    return Scalar(f"try_subtract(0L, {operand.text})", is_exact=exact)
                return Scalar(f"(-{operand.text})", operand.may_overflow, exact)
            case ex.Arithmetic():
                return _arithmetic(e, *parts)
            case ex.Compare(op=op, left=left, right=right):
                return Scalar(compare(op, texts[0], left.type, texts[1], right.type), is_exact=exact)
            case ex.And():
                return Scalar(f"({' AND '.join(texts)})", is_exact=exact)
            case ex.Or():
                return Scalar(f"({' OR '.join(texts)})", is_exact=exact)
            case ex.Not():
                return Scalar(f"(NOT {texts[0]})", is_exact=exact)
            case ex.IsNull():
                return Scalar(f"({texts[0]} IS NULL)", is_exact=exact)
            case ex.InItems(operand=operand, items=items):
                equal = [
                    compare("=", texts[0], operand.type, text, item.type)
                    for item, text in zip(items, texts[1:], strict=True)
                ]
                return Scalar(f"({' OR '.join(equal)})", is_exact=exact)
            case ex.Between(operand=operand, low=low, high=high):
                above = compare(">=", texts[0], operand.type, texts[1], low.type)
                below = compare("<=", texts[0], operand.type, texts[2], high.type)
                return Scalar(f"({above} AND {below})", is_exact=exact)
            case ex.Like(pattern=pattern):
                return Scalar(_like(texts[0], pattern), is_exact=exact)
            case ex.Case():
                return _case(e, parts, exact)
            case ex.Cast(operand=operand, to=to):
                if not exact and to is not Type.FLOAT:
                    raise SparkRefusedError(f"CAST AS {to} of a value that Spark rounds otherwise than the live engine")
                return Scalar(cast(texts[0], operand.type, to), is_exact=exact)
            case ex.Function():
                return _function(e, parts, exact)
            case ex.SubqueryExpression():
                return self._subquery(e, texts)
        raise SparkRefusedError(f"{type(e).__name__} has no form in Spark")

    def _subquery(self, e: ex.SubqueryExpression, texts: list[str]) -> Scalar:
        if e.how == "EXISTS":
            return Scalar(f"EXISTS ({self.subquery(e.plan)})")
        column = e.plan.columns[0]
        if column in self.inexact:
            raise SparkRefusedError("a subquery gives a value that Spark rounds otherwise than the live engine")
        inner = self.subquery(e.plan)
        name = name_of(column)
        read = name if column.scale is None else unscale(name, column.scale)
        if e.how == "SCALAR":
            return Scalar(f"(SELECT {read} FROM ({inner}))")
        if e.operand is None or e.operand.type is None:
            raise SparkRefusedError("NULL IN (subquery) has no form in Spark")
        if {e.operand.type, column.type} >= {Type.FLOAT, Type.INTEGER}:
            raise SparkRefusedError("IN compares integers with floats, which Spark rounds")
        return Scalar(f"({texts[0]} IN (SELECT {read} FROM ({inner})))")


def name_of(column: Column) -> str:
    """The name of a column in SQL; ids are unique in a plan."""
    return f"c{column.id}"


def literal(value: object, type_: Type | None) -> str:
    """A constant."""
    if value is None:
        return f"CAST(NULL AS {SQL_TYPES[type_ or Type.INTEGER]})"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return f"({value!r}D)"
    return f"({value}L)" if isinstance(value, int) and abs(value) < 2**63 else f"CAST('{value}' AS BIGINT)"


def quote(text: str) -> str:
    """A string constant."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def unscale(text: str, scale: int) -> str:
    """Whole multiples of 10^-scale as the nearest doubles."""
    if not scale:
        return f"CAST({text} AS DOUBLE)"
    near = f"CAST({text} AS DOUBLE) / 1E{scale}D"
    far = f"CAST(CAST({text} AS DECIMAL(19,0)) * CAST('1E-{scale}' AS DECIMAL({scale},{scale})) AS DOUBLE)"
    return f"(CASE WHEN abs({text}) < {EXACT}L THEN {near} ELSE {far} END)"


def _as_type(made: Scalar, from_type: Type | None, to: Type | None) -> Scalar:
    if from_type is None and to is not None and made.text.startswith("CAST(NULL AS"):
        return Scalar(literal(None, to))
    if to is Type.FLOAT and from_type is not None and from_type.whole:
        return Scalar(f"CAST({made.text} AS DOUBLE)", is_exact=made.is_exact)
    return made


def _arithmetic(e: ex.Arithmetic, left: Scalar, right: Scalar) -> Scalar:
    left, right = _as_type(left, e.left.type, e.type), _as_type(right, e.right.type, e.type)
    exact = left.is_exact and right.is_exact
    if e.type is not Type.FLOAT:
        return Scalar(_integers(e, left.text, right.text), is_exact=exact)
    divisor = right.finite if e.op in "/%" else right.text  # x / infinity is 0, and no longer shows that it is null
    return Scalar(f"({left.text} {e.op} {divisor})", True, exact)


_CHECKED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}


def _integers(e: ex.Arithmetic, left: str, right: str) -> str:
    """One operator over integers; null outside 64 bits."""
    if e.op in _CHECKED:
        return f"{_CHECKED[e.op]}({left}, {right})"
    if e.op == "%":
        return f"({left} % {right})"
    if isinstance(e.right, ex.Literal) and e.right.value != -1:
        return f"({left} div {right})"
    return f"(CASE WHEN {right} = -1L THEN try_subtract(0L, {left}) ELSE {left} div {right} END)"


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


def compare(op: str, left: str, left_type: Type | None, right: str, right_type: Type | None) -> str:
    """A comparison by value, exact also between integers and floats."""
    if left_type is None or right_type is None:
        return "CAST(NULL AS BOOLEAN)"
    if left_type.whole and right_type is Type.FLOAT:
        return _compare_mixed(op, left, right)
    if left_type is Type.FLOAT and right_type.whole:
        return _compare_mixed(_TURNED[op], right, left)
    return f"({left} {op} {right})"


def _compare_mixed(op: str, whole: str, real: str) -> str:
    """An integer with a float: with the next integer below or above, since a large integer is no double."""
    less = f"({real} >= 9.223372036854775807E18D OR {whole} < CAST(ceil({real}) AS BIGINT))"
    at_most = f"({real} >= -9.223372036854775808E18D AND {whole} <= CAST(floor({real}) AS BIGINT) OR {real} >= 9.223372036854775807E18D)"
    match op:
        case "<":
            return less
        case "<=":
            return at_most
        case ">":
            return f"(NOT {at_most})"
        case ">=":
            return f"(NOT {less})"
        case "=":
            return f"({at_most} AND NOT {less})"
    return f"(NOT {at_most} OR {less})"


def _like(text: str, pattern: Expression) -> str:
    if not isinstance(pattern, ex.Literal) or not isinstance(pattern.value, str | None):
        raise SparkRefusedError("a LIKE whose pattern is no constant has no form in Spark")
    if pattern.value is None:
        return "CAST(NULL AS BOOLEAN)"
    found, i = "(?s)^", 0
    while i < len(pattern.value):
        c = pattern.value[i]
        if c == "\\" and i + 1 < len(pattern.value):
            i += 1
            found += re.escape(pattern.value[i])
        else:
            found += {"%": ".*", "_": "."}.get(c) or re.escape(c)
        i += 1
    return f"({text} RLIKE {quote(found + chr(92) + 'z')})"


def _case(e: ex.Case, parts: list[Scalar], exact: bool) -> Scalar:
    type_ = e.type or Type.INTEGER
    values = [value for _, value in e.branches]
    made = [_as_type(part, value.type, type_) for part, value in zip(parts[1:-1:2], values, strict=True)]
    otherwise = _as_type(parts[-1], e.otherwise.type, type_)
    branches = "".join(f" WHEN {when.text} THEN {then.finite}" for when, then in zip(parts[0:-1:2], made, strict=True))
    return Scalar(f"(CASE{branches} ELSE {otherwise.finite} END)", is_exact=exact)


def cast(text: str, from_type: Type | None, to: Type) -> str:
    """CAST: a float is truncated, text that is no number gives null."""
    if from_type is None:
        return literal(None, to)
    if from_type is Type.STRING and to is not Type.STRING:
        near = f"CAST({text} AS DOUBLE)"
        is_number = f"{text} RLIKE '{_NUMBER}'"
        if to is Type.FLOAT:
            return f"(CASE WHEN {is_number} AND abs({near}) <= 1.7976931348623157E308D THEN {near} END)"
        cut = (
            f"CAST(concat('0', regexp_extract({text}, '^[+-]?([0-9]*)', 1)) AS BIGINT) * if({text} LIKE '-%', -1L, 1L)"
        )
        has_power = f"{text} RLIKE '[eE]'"
        return (
            f"(CASE WHEN NOT {is_number} THEN NULL WHEN {has_power} THEN CASE WHEN abs({near}) < 9.2E18D THEN CAST({near} AS BIGINT) END "
            f"ELSE {cut} END)"
        )
    if to is Type.STRING and from_type is not Type.STRING:
        if from_type is Type.FLOAT:
            raise SparkRefusedError("CAST of a float to a string: Spark writes floats otherwise")
        return f"CAST({text} AS STRING)"
    if to is Type.FLOAT:
        return f"CAST({text} AS DOUBLE)"
    if from_type is Type.FLOAT:
        return f"(CASE WHEN {text} >= -9.223372036854775808E18D AND {text} < 9.223372036854775808E18D THEN CAST({text} AS BIGINT) END)"
    return text


def _function(e: ex.Function, parts: list[Scalar], exact: bool) -> Scalar:
    types = [a.type for a in e.arguments]
    name, result = e.name, e.type or Type.INTEGER
    if name == "NULLIF":
        if types[0] is None:
            return Scalar(literal(None, result))
        if not exact:
            raise SparkRefusedError("NULLIF compares a value that Spark rounds otherwise than the live engine")
        equal = compare("=", parts[0].finite, types[0], parts[1].finite, types[1])
        return Scalar(f"(CASE WHEN {equal} THEN NULL ELSE {parts[0].finite} END)")
    if name in ("COALESCE", "LEAST", "GREATEST"):
        alike = [_as_type(part, t, result).finite for part, t in zip(parts, types, strict=True)]
        return Scalar(alike[0] if len(alike) == 1 else f"{name.lower()}({', '.join(alike)})", is_exact=exact)
    if name in ("ABS", "ROUND", "FLOOR", "CEIL"):
        [text] = [_as_type(part, t, result).finite for part, t in zip(parts, types, strict=True)]
        if name == "ABS":
            text = text if result is Type.FLOAT else f"nullif({text}, {literal(-(2**63), result)})"
            return Scalar(f"abs({text})", is_exact=exact)
        if result is not Type.FLOAT:
            return Scalar(text, is_exact=exact)
        if not exact:
            raise SparkRefusedError(f"{name} of a value that Spark rounds otherwise than the live engine")
        whole = {
            "FLOOR": f"CAST(floor({text}) AS DOUBLE)",
            "CEIL": f"CAST(ceil({text}) AS DOUBLE)",
            "ROUND": f"(CASE WHEN abs({text} - CAST(CAST({text} AS BIGINT) AS DOUBLE)) >= 0.5D "
            f"THEN CAST(CAST({text} AS BIGINT) AS DOUBLE) + signum({text}) ELSE CAST(CAST({text} AS BIGINT) AS DOUBLE) END)",
        }[name]
        return Scalar(f"(CASE WHEN abs({text}) >= {EXACT}.0D THEN {text} ELSE {whole} END)")
    if name in ("LOWER", "UPPER"):
        small = (_LETTERS, _LETTERS.lower()) if name == "LOWER" else (_LETTERS.lower(), _LETTERS)
        return Scalar(f"translate({parts[0].text}, '{small[0]}', '{small[1]}')")
    if name == "LENGTH":
        return Scalar(f"CAST(char_length({parts[0].text}) AS BIGINT)")
    floats = [_as_type(part, t, Type.FLOAT).finite for part, t in zip(parts, types, strict=True)]
    if name == "SQRT":
        return Scalar(f"(CASE WHEN {floats[0]} >= 0D THEN sqrt({floats[0]}) END)", is_exact=exact)
    if name == "DIST":
        x1, y1, x2, y2 = floats
        return Scalar(f"sqrt(({x1} - {x2}) * ({x1} - {x2}) + ({y1} - {y2}) * ({y1} - {y2}))", True, exact)
    return Scalar(f"{_INEXACT[name]}({', '.join(floats)})", True, False)


def columns_text(columns: Iterable[Column], names: Mapping[Column, str] | None = None) -> str:
    """A list of columns with a leading comma each, or nothing."""
    return "".join(f", {(names or {}).get(c, name_of(c))}" for c in columns)
