"""Comparison of columns by value, exactly; unknown where an operand is null (semantics 5.1, 5.2).

numpy converts int64 to float64 before it compares the two, so 2^53 + 1 would become 2^53. The functions here do not.
"""

from collections.abc import Callable

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray
from basestation.algebra.vector import Vector, both_valid

_OF_SIGN: dict[str, Callable[[FloatArray], BoolArray]] = {
    "=": lambda s: s == 0, "<>": lambda s: s != 0, "<": lambda s: s < 0, "<=": lambda s: s <= 0,
    ">": lambda s: s > 0, ">=": lambda s: s >= 0,
}  # fmt: skip
_DIRECT: dict[str, np.ufunc] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_EXACT = 2**53  # every integer up to here is a double


def compare(op: str, left: Vector, right: Vector) -> Vector:
    """The outcome of `left op right` for each entry; op is one of `= <> < <= > >=`."""
    a, b = left.values, right.values
    if a.dtype == b.dtype:
        return Vector(_DIRECT[op](a, b).astype(bool, copy=False), both_valid(left, right))
    if _are_doubles(a if a.dtype == np.int64 else b):
        return Vector(_DIRECT[op](a, b), both_valid(left, right))
    if a.dtype == np.int64:
        return Vector(_OF_SIGN[op](_compare_int_float(a, b)), both_valid(left, right))
    return Vector(_OF_SIGN[op](-_compare_int_float(b, a)), both_valid(left, right))


def _are_doubles(ints: IntArray) -> bool:
    """Whether each integer is a double as well, so that numpy compares it exactly."""
    if ints.strides == (0,):
        ints = ints[:1]
    return not len(ints) or (int(ints.min()) >= -_EXACT and int(ints.max()) <= _EXACT)


def _compare_int_float(ints: IntArray, floats: FloatArray) -> FloatArray:
    """-1, 0 or 1 as each integer is less than, equal to or greater than its float."""
    signs: FloatArray = np.sign(np.subtract(ints, floats, dtype=np.float64))
    unsure = np.flatnonzero((np.abs(ints, dtype=np.float64) >= _EXACT) | ~np.isfinite(signs))
    for i in unsure.tolist():  # rare: integers beyond 2^53 next to floats
        a, b = int(ints[i]), float(floats[i])
        signs[i] = (a > b) - (a < b)
    return signs


def is_member(members: Vector, operand: Vector) -> BoolArray:
    """The mask of entries that are not null and equal one of the members, by value and exactly."""
    candidates, values, valid = members.values[members.validity], operand.values, operand.validity
    if candidates.dtype != values.dtype:
        candidates, whole = _as_integers(candidates)
        candidates = candidates[whole]
        values, whole = _as_integers(values)
        valid = valid & whole
    if not len(candidates):
        return np.zeros(len(values), bool)
    candidates = np.unique(candidates)
    at = np.minimum(np.searchsorted(candidates, values), len(candidates) - 1)
    found: BoolArray = valid & (candidates[at] == values).astype(bool, copy=False)
    return found


def _as_integers(values: AnyArray) -> tuple[IntArray, BoolArray]:
    """Numbers as int64, and the mask of those that are whole and fit into it."""
    if values.dtype == np.int64:
        return values, np.ones(len(values), bool)
    whole = (np.trunc(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    return np.where(whole, values, 0.0).astype(np.int64), whole
