"""Evaluation: expressions computed over columns, many tuples at a time (SEMANTICS 5.1 to 5.3, 10.4).

`Evaluation(columns, length)` is given the Vectors of the columns by their ids; a scaled attribute comes as whole
multiples and is computed with as the doubles it stands for. Whatever has no result (division by zero, a number that is not finite) is null.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, reduce

import numpy as np

from acquisition.schema import Type
from basestation.algebra.comparison import compare, is_member
from basestation.algebra.expressions import Arithmetic
from basestation.algebra.vector import Vector, both_valid, constant_vector, dtype_of, null_vector


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Expressions over one batch. Subqueries have been put into them before."""

    columns: dict
    length: int

    def of(self, e):
        """The Vector of a value, or the truths of a predicate."""
        return getattr(self, f"_{type(e).__name__.lower()}")(e)

    def as_type(self, e, type_):
        """A value as a Vector of one type: integers become floats where floats are wanted."""
        if e.type is None:
            return null_vector(self.length, type_ or Type.INTEGER)
        return _convert_type(self.of(e), type_)

    # --- leaves and arithmetic ---------------------------------------------------------------------------------------

    def _literal(self, e):
        return constant_vector(e.value, e.type, self.length)

    def _truth(self, e):
        values = np.full(self.length, bool(e.outcome))
        return Vector(values, np.zeros(self.length, bool) if e.outcome is None else None)

    def _attr(self, e):
        found, scale = self.columns[e.column.id], e.column.scale
        return found if scale is None else Vector(multiples_to_doubles(found.values, scale), found.valid)

    def _negative(self, e):
        operand = self.as_type(e.operand, e.type)
        return Vector(-operand.values, operand.valid)

    def _arithmetic(self, e):
        """A chain of operators from its innermost on: it may be longer than functions can call each other."""
        chain = [e]
        while isinstance(chain[-1].left, Arithmetic):
            chain.append(chain[-1].left)
        left = self.as_type(chain[-1].left, chain[-1].type)
        for step in reversed(chain):
            left = _calculate(step, _convert_type(left, step.type), self.as_type(step.right, step.type))
        return left

    # --- predicates --------------------------------------------------------------------------------------------------

    def _operand(self, e):
        """What is compared, computed once; None for the bare NULL."""
        return None if e.type is None else self.of(e)

    def _compared(self, op, left, right):
        if left is None or right is None:
            return Vector(np.zeros(self.length, bool), np.zeros(self.length, bool))
        return compare(op, left, right)

    def _compare(self, e):
        return self._compared(e.op, self._operand(e.left), self._operand(e.right))

    def _and(self, e):
        return reduce(_conjoin, (self.of(term) for term in e.terms))

    def _or(self, e):
        return reduce(_disjoin, (self.of(term) for term in e.terms))

    def _not(self, e):
        term = self.of(e.term)
        return Vector(~term.values, term.valid)

    def _isnull(self, e):
        if e.operand.type is None:
            return Vector(np.ones(self.length, bool))
        return Vector(~self.of(e.operand).validity)

    def _initems(self, e):
        operand = self._operand(e.operand)
        return reduce(_disjoin, (self._compared("=", operand, self._operand(item)) for item in e.items))

    def _between(self, e):
        operand = self._operand(e.operand)
        low, high = self._operand(e.low), self._operand(e.high)
        return _conjoin(self._compared(">=", operand, low), self._compared("<=", operand, high))

    def _like(self, e):
        operand, pattern = self.as_type(e.operand, Type.STRING), self.as_type(e.pattern, Type.STRING)
        matches = (
            compile_like_pattern(p).fullmatch(s) is not None
            for s, p in zip(operand.values.tolist(), pattern.values.tolist(), strict=True)
        )
        return Vector(np.fromiter(matches, bool, self.length), both_valid(operand, pattern))

    def _invalues(self, e):
        """The disjunction of the equalities with the members; false where there are none."""
        operand, members = self._operand(e.operand), e.members
        if operand is None or not len(members):
            return Vector(np.zeros(self.length, bool), np.full(self.length, not len(members)))
        found = is_member(members, operand)
        return Vector(found, operand.validity & (found | bool(members.validity.all())))

    # --- choices -----------------------------------------------------------------------------------------------------

    def _case(self, e):
        type_ = e.type or Type.INTEGER
        out = self.as_type(e.otherwise, type_)
        values, valid = out.values.copy(), out.validity.copy()
        for when, then in reversed(e.branches):
            chosen, branch = self.of(when).is_true, self.as_type(then, type_)
            values[chosen] = branch.values[chosen]
            valid[chosen] = branch.validity[chosen]
        return Vector(values, valid)

    def _cast(self, e):
        if e.operand.type is None:
            return null_vector(self.length, e.to)
        return cast_vector(self.of(e.operand), e.operand.type, e.to)

    def _function(self, e):
        return getattr(self, f"_f_{e.name.lower()}")(e)

    def _f_coalesce(self, e):
        parts = [self.as_type(a, e.type) for a in e.arguments]
        values, valid = parts[-1].values.copy(), parts[-1].validity.copy()
        for part in reversed(parts[:-1]):
            values[part.validity] = part.values[part.validity]
            valid |= part.validity
        return Vector(values, valid)

    def _f_nullif(self, e):
        first, second = (self._operand(a) for a in e.arguments)
        if first is None:
            return null_vector(self.length, e.type)
        return first.where(~self._compared("=", first, second).is_true)

    def _f_least(self, e):
        return self._extreme(e, "<")

    def _f_greatest(self, e):
        return self._extreme(e, ">")

    def _extreme(self, e, op):
        parts = [self.as_type(a, e.type) for a in e.arguments]
        values, valid = parts[0].values.copy(), parts[0].validity.copy()
        for part in parts[1:]:  # nulls are left out
            better = part.validity & (~valid | _DIRECTION[op](part.values, values))
            values[better] = part.values[better]
            valid |= part.validity
        return Vector(values, valid)

    # --- functions of numbers and strings ----------------------------------------------------------------------------

    def _f_abs(self, e):
        return self._of_number(e, np.abs)

    def _f_floor(self, e):
        return self._of_number(e, np.floor)

    def _f_ceil(self, e):
        return self._of_number(e, np.ceil)

    def _f_round(self, e):
        return self._of_number(e, round_half_away)

    def _of_number(self, e, function):
        """A function that keeps the argument's type; on integers all but ABS change nothing."""
        argument = self.as_type(e.arguments[0], e.type)
        if e.type is not Type.FLOAT and function is not np.abs:
            return argument
        return Vector(function(argument.values), argument.valid)

    def _f_sqrt(self, e):
        return self._of_floats(e, np.sqrt)

    def _f_ln(self, e):
        return self._of_floats(e, np.log)

    def _f_exp(self, e):
        return self._of_floats(e, np.exp)

    def _f_power(self, e):
        return self._of_floats(e, np.power)

    def _f_dist(self, e):
        return self._of_floats(e, lambda x1, y1, x2, y2: np.sqrt((x1 - x2) ** 2 + (y1 - y2) ** 2))

    def _of_floats(self, e, function):
        arguments = [self.as_type(a, Type.FLOAT) for a in e.arguments]
        valid = reduce(lambda a, b: b.valid if a is None else (a if b.valid is None else a & b.valid), arguments, None)
        with np.errstate(all="ignore"):
            return _finite(Vector(function(*(a.values for a in arguments)), valid))

    def _f_lower(self, e):
        return self._of_string(e, _fold(str.lower), object)

    def _f_upper(self, e):
        return self._of_string(e, _fold(str.upper), object)

    def _f_length(self, e):
        return self._of_string(e, len, np.int64)

    def _of_string(self, e, function, dtype):
        argument = self.as_type(e.arguments[0], Type.STRING)
        values = np.empty(self.length, dtype)
        values[:] = [function(s) for s in argument.values.tolist()]
        return Vector(values, argument.valid)


def multiples_to_doubles(multiples, scale):
    """Whole multiples of 10^-scale as the nearest doubles (13)."""
    out = multiples / 10.0**scale  # both exact up to 2^53, so the quotient is the nearest
    for i in np.flatnonzero(np.abs(multiples, dtype=np.float64) >= 2**53).tolist():
        out[i] = int(multiples[i]) / 10**scale  # Python divides integers of any size correctly
    return out


_DIRECTION = {"<": np.less, ">": np.greater}


def _convert_type(vector, type_):
    """Integers become floats where floats are wanted."""
    if type_ is Type.FLOAT and vector.values.dtype != np.float64:
        return Vector(vector.values.astype(np.float64), vector.valid)
    return vector


def _calculate(e, left, right):
    """One operator over values of its type; by zero there is null (5.3)."""
    a, b, valid = left.values, right.values, both_valid(left, right)
    if e.op in "+-*":
        with np.errstate(all="ignore"):
            out = {"+": np.add, "-": np.subtract, "*": np.multiply}[e.op](a, b)
        return _finite(Vector(out, valid)) if e.type is Type.FLOAT else Vector(out, valid)
    nonzero = b != 0
    if not nonzero.all():
        valid = nonzero if valid is None else valid & nonzero
        b = np.where(nonzero, b, 1)
    with np.errstate(all="ignore"):
        if e.type is Type.FLOAT:
            return _finite(Vector(a / b if e.op == "/" else np.fmod(a, b), valid))
        # fmod on integers has the sign of the dividend, so what is left divides without a rest: that is truncation.
        rest = np.fmod(a, b)
        return Vector((a - rest) // b if e.op == "/" else rest, valid)


def _conjoin(a, b):
    """False wins over unknown, unknown over true."""
    if a.valid is None and b.valid is None:
        return Vector(a.values & b.values)
    false = (a.validity & ~a.values) | (b.validity & ~b.values)
    return Vector(a.is_true & b.is_true, (a.validity & b.validity) | false)


def _disjoin(a, b):
    """True wins over unknown, unknown over false."""
    if a.valid is None and b.valid is None:
        return Vector(a.values | b.values)
    true = a.is_true | b.is_true
    return Vector(true, (a.validity & b.validity) | true)


def _finite(vector):
    """A result that is no finite number is null (10.4)."""
    finite = np.isfinite(vector.values)
    if finite.all():
        return vector
    return Vector(np.where(finite, vector.values, 0.0), finite if vector.valid is None else vector.valid & finite)


def round_half_away(values):
    """Rounded to whole numbers, halves away from zero. Adding 0.5 would lift 0.49999999999999994."""
    whole = np.trunc(values)
    return whole + np.where(np.abs(values - whole) >= 0.5, np.sign(values), 0.0)


def _fold(change):
    """A to Z only, whatever else a string holds."""
    return lambda s: "".join(change(c) if c.isascii() else c for c in s)


@lru_cache(maxsize=256)
def compile_like_pattern(pattern):
    r"""The regular expression of a LIKE pattern: `%` any characters, `_` one, `\` takes the next literally.

    What stands between two `%` may as well be found as early as it can be, so nothing is tried twice: `(?>…)`.
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


def cast_vector(vector, from_type, to):
    """CAST: a float is cut, text that is no number gives null (10.4)."""
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


def _numbers(vector, to):
    parsed = [_number(s, to) for s in vector.values.tolist()]
    valid = np.fromiter((p is not None for p in parsed), bool, len(parsed)) & vector.validity
    values = np.zeros(len(parsed), dtype_of(to))
    values[:] = [0 if p is None else p for p in parsed]
    return Vector(values, valid)


def _number(text, to):
    """The number a text is, cut to an integer if one is wanted; None if it is none or out of range."""
    if not _NUMBER.fullmatch(text):
        return None
    near = float(text)
    if to is Type.FLOAT:
        return near if np.isfinite(near) else None
    if abs(near) < 1 or abs(near) > 2**63:  # the text may speak of numbers that are far too long to be written out
        return 0 if abs(near) < 1 else None
    value = int(Decimal(text))
    return value if -(2**63) <= value < 2**63 else None
