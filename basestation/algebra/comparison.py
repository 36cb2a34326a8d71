"""Comparison: values compared as the language means it: by value, exactly, and unknown where one is missing.

numpy turns an int64 into a float64 to compare it with one, and 2^53 + 1 becomes 2^53 on the way; here it does not.
"""

import numpy as np

from basestation.algebra.vector import Vector, both_valid

_SIGN = {
    "=": lambda s: s == 0, "<>": lambda s: s != 0, "<": lambda s: s < 0, "<=": lambda s: s <= 0,
    ">": lambda s: s > 0, ">=": lambda s: s >= 0,
}  # fmt: skip
_DIRECT = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip
_EXACT = 2**53  # up to here every integer is a double


def compare(op, left, right):
    """The truths of `left op right`."""
    a, b = left.values, right.values
    if a.dtype == b.dtype:
        return Vector(_DIRECT[op](a, b).astype(bool, copy=False), both_valid(left, right))
    if _doubles_too(a if a.dtype == np.int64 else b):
        return Vector(_DIRECT[op](a, b), both_valid(left, right))
    if a.dtype == np.int64:
        return Vector(_SIGN[op](_int_against_float(a, b)), both_valid(left, right))
    return Vector(_SIGN[op](-_int_against_float(b, a)), both_valid(left, right))


def _doubles_too(ints):
    """Whether all of some integers are doubles, which are compared as they are."""
    if ints.strides == (0,):
        ints = ints[:1]
    return not len(ints) or (int(ints.min()) >= -_EXACT and int(ints.max()) <= _EXACT)


def _int_against_float(ints, floats):
    """-1, 0 or 1 as each integer is less than, equal to or greater than its float."""
    signs = np.sign(np.subtract(ints, floats, dtype=np.float64))
    unsure = np.flatnonzero((np.abs(ints, dtype=np.float64) >= _EXACT) | ~np.isfinite(signs))
    for i in unsure.tolist():  # rare: integers beyond 2^53 beside floats
        a, b = int(ints[i]), float(floats[i])
        signs[i] = (a > b) - (a < b)
    return signs


def is_member(members, operand):
    """A mask of the values that are there and equal to one of the members, by value and exactly."""
    wanted, values, there = members.values[members.validity], operand.values, operand.validity
    if wanted.dtype != values.dtype:
        wanted, whole = _as_integers(wanted)
        wanted = wanted[whole]
        values, whole = _as_integers(values)
        there = there & whole
    if not len(wanted):
        return np.zeros(len(values), bool)
    wanted = np.unique(wanted)
    at = np.minimum(np.searchsorted(wanted, values), len(wanted) - 1)
    return there & (wanted[at] == values).astype(bool, copy=False)


def _as_integers(values):
    """Numbers as int64; and a mask of those that are whole and fit."""
    if values.dtype == np.int64:
        return values, np.ones(len(values), bool)
    whole = (np.trunc(values) == values) & (values >= -(2.0**63)) & (values < 2.0**63)
    return np.where(whole, values, 0.0).astype(np.int64), whole
