"""Integer arithmetic: + - * / % over int64 columns, null where the true result lies outside 64 bits (semantics 1.8).

The least and greatest operand bound the result. Where that fits, and sensors measure nothing else, no result is examined.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import Vector, both_valid

LEAST, GREATEST = -(2**63), 2**63 - 1
Bounds: TypeAlias = tuple[int, int]
"""(a lower bound, an upper bound) of integers."""


def calculate_integers(
    op: str, left: Vector, right: Vector, bounds: Bounds | None = None
) -> tuple[Vector, Bounds | None]:
    """Return (the result, its bounds if they are known) of one operator; `bounds` are those of the left values, if known.

    Null are division by zero, and results outside 64 bits.
    """
    valid = both_valid(left, right)
    if op in "/%":
        return _divide(op, left.values, right.values, valid), None
    a, b = left.values, right.values
    reach = _RESULT_BOUNDS[op](bounds or find_bounds(a), find_bounds(b))
    out = _COMPUTE[op](a, b)
    if LEAST <= reach[0] and reach[1] <= GREATEST:
        return Vector(out, valid), reach
    return Vector(out, valid).where(_FITS[op](a, b, out)), None


def negate_integers(operand: Vector) -> Vector:
    """Return the integers with the other sign; null for -2^63, whose negative is outside 64 bits."""
    return _without_least(Vector(-operand.values, operand.valid))


def magnitude_of_integers(operand: Vector) -> Vector:
    """Return the integers without sign; null for -2^63."""
    return _without_least(Vector(np.abs(operand.values), operand.valid))


def _without_least(vector: Vector) -> Vector:
    """The vector with null for -2^63, which a change of sign leaves as it is."""
    if find_bounds(vector.values)[0] > LEAST:
        return vector
    return vector.where(vector.values != LEAST)


def find_bounds(values: IntArray) -> Bounds:
    """Return the least and greatest of integers, (0, 0) of none."""
    if not len(values):
        return 0, 0
    if values.strides == (0,):  # one value repeated
        return values[0].item(), values[0].item()
    return np.minimum.reduce(values).item(), np.maximum.reduce(values).item()


def _product_bounds(a: Bounds, b: Bounds) -> Bounds:
    products = [x * y for x in a for y in b]
    return min(products), max(products)


def _sum_fits(a: IntArray, b: IntArray, out: IntArray) -> BoolArray:
    """Return which wrapped sums are true: those that do not have the other sign than both terms."""
    return ((a ^ out) & (b ^ out)) >= 0


def _difference_fits(a: IntArray, b: IntArray, out: IntArray) -> BoolArray:
    """Return which wrapped differences are true: out + b is a."""
    return ((a ^ b) & (a ^ out)) >= 0


def _product_fits(a: IntArray, b: IntArray, out: IntArray) -> BoolArray:
    """Return which wrapped products are true: those that divide back, and -2^63 not by -1, which wraps itself."""
    with np.errstate(all="ignore"):
        fits: BoolArray = (b == 0) | (out // np.where(b == 0, 1, b) == a)
    fits &= (a != LEAST) | (b != -1)
    return fits


def _divide(op: str, a: IntArray, b: IntArray, valid: BoolArray | None) -> Vector:
    """Return quotients cut towards zero, or rests with the sign of the dividend."""
    nonzero = b != 0
    if not nonzero.all():
        valid = nonzero if valid is None else valid & nonzero
        b = np.where(nonzero, b, 1)
    with np.errstate(all="ignore"):
        # fmod of integers has the sign of the dividend; without this rest the division is exact, hence truncated.
        rest = np.fmod(a, b)
        if op == "%":
            return Vector(rest, valid)
        out = Vector((a - rest) // b, valid)
    inverted = b == -1
    return out.where(~inverted | (a != LEAST)) if inverted.any() else out


_COMPUTE: dict[str, Callable[[IntArray, IntArray], IntArray]] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_RESULT_BOUNDS: dict[str, Callable[[Bounds, Bounds], Bounds]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product_bounds,
}
_FITS = {"+": _sum_fits, "-": _difference_fits, "*": _product_fits}
