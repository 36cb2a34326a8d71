"""Evaluation: expressions computed over columns, many tuples at a time (semantics 5.1 to 5.3, 10.4).

`Evaluation(columns, length)` gets the Vectors of the columns by their ids. A scaled attribute comes as whole multiples;
expressions compute with the doubles that the multiples stand for. An operation without a result (division by zero, a
float that is not finite, an integer outside 64 bits) gives null.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray
from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.comparison import compare, is_member
from basestation.algebra.expression import Expression
from basestation.algebra.integer_arithmetic import (
    Bounds,
    calculate_integers,
    magnitude_of_integers,
    negate_integers,
)
from basestation.algebra.vector import Vector, both_valid, constant_vector, dtype_of, null_vector

_Compute: TypeAlias = Callable[..., AnyArray]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Expressions over one batch of `length` tuples; `columns` has its Vectors by the id of the column.

    Subqueries are evaluated and substituted before.
    """

    columns: Mapping[int, Vector]
    length: int

    def of(self, e: Expression) -> Vector:
        """The Vector of a value, or of the outcomes of a predicate."""
        evaluate: Callable[[Expression], Vector] = getattr(self, f"_{type(e).__name__.lower()}")
        return evaluate(e)

    def as_type(self, e: Expression, type_: Type | None) -> Vector:
        """A value as a Vector of a type: integers become floats if that is FLOAT; the bare NULL gets any type."""
        if e.type is None:
            return null_vector(self.length, type_ or Type.INTEGER)
        return _convert_type(self.of(e), type_)

    # --- leaves and arithmetic ---------------------------------------------------------------------------------------

    def _literal(self, e: ex.Literal) -> Vector:
        return constant_vector(e.value, e.type, self.length)

    def _truth(self, e: ex.Truth) -> Vector:
        values = np.full(self.length, bool(e.outcome))
        return Vector(values, np.zeros(self.length, bool) if e.outcome is None else None)

    def _attr(self, e: ex.Attr) -> Vector:
        found, scale = self.columns[e.column.id], e.column.scale
        return found if scale is None else Vector(multiples_to_doubles(found.values, scale), found.valid)

    def _negative(self, e: ex.Negative) -> Vector:
        operand = self.as_type(e.operand, e.type)
        return Vector(-operand.values, operand.valid) if e.type is Type.FLOAT else negate_integers(operand)

    def _arithmetic(self, e: ex.Arithmetic) -> Vector:
        """A chain of operators from its innermost on, without recursion: it may be longer than Python's stack."""
        chain = [e]
        while isinstance(inner := chain[-1].left, ex.Arithmetic):
            chain.append(inner)
        left = self.as_type(chain[-1].left, chain[-1].type)
        bounds: Bounds | None = None
        for step in reversed(chain):
            right = self.as_type(step.right, step.type)
            if step.type is Type.FLOAT:
                left = _calculate_floats(step.op, _convert_type(left, step.type), right)
            else:
                left, bounds = calculate_integers(step.op, left, right, bounds)
        return left

    # --- predicates --------------------------------------------------------------------------------------------------

    def _operand(self, e: Expression) -> Vector | None:
        """An operand of a comparison, computed once; None for the bare NULL."""
        return None if e.type is None else self.of(e)

    def _compared(self, op: str, left: Vector | None, right: Vector | None) -> Vector:
        if left is None or right is None:
            return Vector(np.zeros(self.length, bool), np.zeros(self.length, bool))
        return compare(op, left, right)

    def _compare(self, e: ex.Compare) -> Vector:
        return self._compared(e.op, self._operand(e.left), self._operand(e.right))

    def _and(self, e: ex.And) -> Vector:
        return reduce(_conjoin, (self.of(term) for term in e.terms))

    def _or(self, e: ex.Or) -> Vector:
        return reduce(_disjoin, (self.of(term) for term in e.terms))

    def _not(self, e: ex.Not) -> Vector:
        term = self.of(e.term)
        return Vector(~term.values, term.valid)

    def _isnull(self, e: ex.IsNull) -> Vector:
        if e.operand.type is None:
            return Vector(np.ones(self.length, bool))
        return Vector(~self.of(e.operand).validity)

    def _initems(self, e: ex.InItems) -> Vector:
        operand = self._operand(e.operand)
        return reduce(_disjoin, (self._compared("=", operand, self._operand(item)) for item in e.items))

    def _between(self, e: ex.Between) -> Vector:
        operand = self._operand(e.operand)
        low, high = self._operand(e.low), self._operand(e.high)
        return _conjoin(self._compared(">=", operand, low), self._compared("<=", operand, high))

    def _like(self, e: ex.Like) -> Vector:
        operand, pattern = self.as_type(e.operand, Type.STRING), self.as_type(e.pattern, Type.STRING)
        matches = (
            compile_like_pattern(p).fullmatch(s) is not None
            for s, p in zip(operand.values.tolist(), pattern.values.tolist(), strict=True)
        )
        return Vector(np.fromiter(matches, bool, self.length), both_valid(operand, pattern))

    def _invalues(self, e: ex.InValues) -> Vector:
        """The disjunction of the equalities with the members; false without members."""
        operand, members = self._operand(e.operand), e.members
        if operand is None or not len(members):
            return Vector(np.zeros(self.length, bool), np.full(self.length, not len(members)))
        found = is_member(members, operand)
        return Vector(found, operand.validity & (found | bool(members.validity.all())))

    # --- choices -----------------------------------------------------------------------------------------------------

    def _case(self, e: ex.Case) -> Vector:
        type_ = e.type or Type.INTEGER
        out = self.as_type(e.otherwise, type_)
        values, valid = out.values.copy(), out.validity.copy()
        for when, then in reversed(e.branches):
            chosen, branch = self.of(when).is_true, self.as_type(then, type_)
            values[chosen] = branch.values[chosen]
            valid[chosen] = branch.validity[chosen]
        return Vector(values, valid)

    def _cast(self, e: ex.Cast) -> Vector:
        if e.operand.type is None:
            return null_vector(self.length, e.to)
        return cast_vector(self.of(e.operand), e.operand.type, e.to)

    def _function(self, e: ex.Function) -> Vector:
        evaluate: Callable[[ex.Function], Vector] = getattr(self, f"_f_{e.name.lower()}")
        return evaluate(e)

    def _f_coalesce(self, e: ex.Function) -> Vector:
        parts = [self.as_type(a, e.type) for a in e.arguments]
        values, valid = parts[-1].values.copy(), parts[-1].validity.copy()
        for part in reversed(parts[:-1]):
            values[part.validity] = part.values[part.validity]
            valid |= part.validity
        return Vector(values, valid)

    def _f_nullif(self, e: ex.Function) -> Vector:
        first, second = (self._operand(a) for a in e.arguments)
        if first is None:
            return null_vector(self.length, e.type)
        return first.where(~self._compared("=", first, second).is_true)

    def _f_least(self, e: ex.Function) -> Vector:
        return self._extreme(e, "<")

    def _f_greatest(self, e: ex.Function) -> Vector:
        return self._extreme(e, ">")

    def _extreme(self, e: ex.Function, op: str) -> Vector:
        parts = [self.as_type(a, e.type) for a in e.arguments]
        values, valid = parts[0].values.copy(), parts[0].validity.copy()
        for part in parts[1:]:  # nulls are skipped
            better = part.validity & (~valid | _DIRECTION[op](part.values, values))
            values[better] = part.values[better]
            valid |= part.validity
        return Vector(values, valid)

    # --- functions of numbers and strings ----------------------------------------------------------------------------

    def _f_abs(self, e: ex.Function) -> Vector:
        argument = self.as_type(e.arguments[0], e.type)
        if e.type is Type.FLOAT:
            return Vector(np.abs(argument.values), argument.valid)
        return magnitude_of_integers(argument)

    def _f_floor(self, e: ex.Function) -> Vector:
        return self._of_number(e, np.floor)

    def _f_ceil(self, e: ex.Function) -> Vector:
        return self._of_number(e, np.ceil)

    def _f_round(self, e: ex.Function) -> Vector:
        return self._of_number(e, round_half_away)

    def _of_number(self, e: ex.Function, function: _Compute) -> Vector:
        """A function that keeps the type of its argument, and integers as they are."""
        argument = self.as_type(e.arguments[0], e.type)
        if e.type is not Type.FLOAT:
            return argument
        return Vector(function(argument.values), argument.valid)

    def _f_sqrt(self, e: ex.Function) -> Vector:
        return self._of_floats(e, np.sqrt)

    def _f_ln(self, e: ex.Function) -> Vector:
        return self._of_floats(e, np.log)

    def _f_exp(self, e: ex.Function) -> Vector:
        return self._of_floats(e, np.exp)

    def _f_power(self, e: ex.Function) -> Vector:
        return self._of_floats(e, np.power)

    def _f_dist(self, e: ex.Function) -> Vector:
        return self._of_floats(e, lambda x1, y1, x2, y2: np.sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2))

    def _of_floats(self, e: ex.Function, function: _Compute) -> Vector:
        arguments = [self.as_type(a, Type.FLOAT) for a in e.arguments]
        valid: BoolArray | None = None
        for argument in arguments:
            if argument.valid is not None:
                valid = argument.valid if valid is None else valid & argument.valid
        with np.errstate(all="ignore"):
            return _finite(Vector(function(*(a.values for a in arguments)), valid))

    def _f_lower(self, e: ex.Function) -> Vector:
        return self._of_string(e, _fold(str.lower), object)

    def _f_upper(self, e: ex.Function) -> Vector:
        return self._of_string(e, _fold(str.upper), object)

    def _f_length(self, e: ex.Function) -> Vector:
        return self._of_string(e, len, np.int64)

    def _of_string(self, e: ex.Function, function: Callable[[str], str | int], dtype: type) -> Vector:
        argument = self.as_type(e.arguments[0], Type.STRING)
        values: AnyArray = np.empty(self.length, dtype)
        values[:] = [function(s) for s in argument.values.tolist()]
        return Vector(values, argument.valid)


def multiples_to_doubles(multiples: IntArray, scale: int) -> FloatArray:
    """Whole multiples of 10^-scale as the nearest doubles (semantics 13)."""
    out: FloatArray = multiples / 10.0**scale  # both exact up to 2^53, so the quotient is the nearest
    for i in np.flatnonzero(np.abs(multiples, dtype=np.float64) >= 2**53).tolist():
        out[i] = int(multiples[i]) / 10**scale  # Python divides integers of any size correctly
    return out


_DIRECTION = {"<": np.less, ">": np.greater}


def _convert_type(vector: Vector, type_: Type | None) -> Vector:
    """Integers become floats if the type is FLOAT; otherwise unchanged."""
    if type_ is Type.FLOAT and vector.values.dtype != np.float64:
        return Vector(vector.values.astype(np.float64), vector.valid)
    return vector


def _calculate_floats(op: str, left: Vector, right: Vector) -> Vector:
    """One operator over floats; division by zero gives null (semantics 5.3), as does a result that is not finite."""
    a, b, valid = left.values, right.values, both_valid(left, right)
    if op in "/%":
        nonzero = b != 0
        if not nonzero.all():
            valid = nonzero if valid is None else valid & nonzero
            b = np.where(nonzero, b, 1)
    with np.errstate(all="ignore"):
        return _finite(Vector(_FLOAT_OPERATORS[op](a, b), valid))


_FLOAT_OPERATORS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "%": np.fmod}


def _conjoin(a: Vector, b: Vector) -> Vector:
    """AND: false wins over unknown, unknown over true."""
    if a.valid is None and b.valid is None:
        return Vector(a.values & b.values)
    false = (a.validity & ~a.values) | (b.validity & ~b.values)
    return Vector(a.is_true & b.is_true, (a.validity & b.validity) | false)


def _disjoin(a: Vector, b: Vector) -> Vector:
    """OR: true wins over unknown, unknown over false."""
    if a.valid is None and b.valid is None:
        return Vector(a.values | b.values)
    true = a.is_true | b.is_true
    return Vector(true, (a.validity & b.validity) | true)


def _finite(vector: Vector) -> Vector:
    """The vector with null for every number that is not finite (semantics 10.4)."""
    finite = np.isfinite(vector.values)
    if finite.all():
        return vector
    return Vector(np.where(finite, vector.values, 0.0), finite if vector.valid is None else vector.valid & finite)


def round_half_away(values: FloatArray) -> FloatArray:
    """Whole numbers, halves rounded away from zero. (Adding 0.5 and cutting would round 0.49999999999999994 up.)"""
    whole: FloatArray = np.trunc(values)
    return whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0)


def _fold(change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of case for the letters A to Z only."""
    return lambda s: "".join(change(c) if c.isascii() else c for c in s)


@lru_cache(maxsize=256)
def compile_like_pattern(pattern: str) -> re.Pattern[str]:
    r"""The regular expression of a LIKE pattern: `%` any characters, `_` one, `\` takes the next literally.

    Text between two `%` may match at its first occurrence, so backtracking is never needed: `(?>…)`.
    """
    pieces, i = [""], 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\" and i + 1 < len(pattern):
            i += 1
            pieces[-1] += re.escape(pattern[i])
        elif c == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if c == "_" else re.escape(c)
        i += 1
    first, *middle = pieces[:-1] or [""]
    found = first + "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(found + (".*" if len(pieces) > 1 else "") + pieces[-1], re.DOTALL)


def cast_vector(vector: Vector, from_type: Type, to: Type) -> Vector:
    """CAST: a float is truncated, text that is no number gives null (semantics 10.4)."""
    if from_type is Type.STRING and to is not Type.STRING:
        return _numbers(vector, to)
    if to is Type.STRING and from_type is not Type.STRING:
        values = np.empty(len(vector), object)
        values[:] = [str(v) for v in vector.values.tolist()]
        return Vector(values, vector.valid)
    if to is Type.FLOAT:
        return Vector(vector.values.astype(np.float64), vector.valid)
    if from_type is Type.FLOAT:
        whole = np.trunc(vector.values)
        fits = (whole >= -(2.0**63)) & (whole < 2.0**63)
        return Vector(np.where(fits, whole, 0.0).astype(np.int64), vector.valid).where(fits)
    return vector


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def _numbers(vector: Vector, to: Type) -> Vector:
    parsed = [_number(s, to) for s in vector.values.tolist()]
    valid = np.fromiter((p is not None for p in parsed), bool, len(parsed)) & vector.validity
    values = np.zeros(len(parsed), dtype_of(to))
    values[:] = [0 if p is None else p for p in parsed]
    return Vector(values, valid)


def _number(text: str, to: Type) -> int | float | None:
    """The number of a text, truncated for an integer type; None if it is no number or out of range."""
    if not _NUMBER.fullmatch(text):
        return None
    near = float(text)
    if to is Type.FLOAT:
        return near if np.isfinite(near) else None
    if abs(near) < 1 or abs(near) > 2**63:  # `1e999999999` would be too long as an integer
        return 0 if abs(near) < 1 else None
    value = int(Decimal(text))
    return value if -(2**63) <= value < 2**63 else None
