"""Rounding: turns exact sums into doubles, with one rounding per answer.

Each answer is the double nearest to an exact rational number (semantics 5.5), or to its square root. The code first
computes all groups together at twice the precision of a double, with an error bound. If only one double lies within the
bound, that is the answer. Otherwise (ties, cancellation, extreme numbers) Python's integers decide, group by group.
"""

import math
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np

from acquisition.arrays import BoolArray, FloatArray, IntArray
from innet.aggregates.exact_sums import LIMB_BITS, ExactSums, Pair, halves, two_product

Answers: TypeAlias = tuple[FloatArray, BoolArray]
"""(values, valid): one answer per group; it is missing where `valid` is False."""

MAX_LIMB_DISTANCE = 5
"""Sums within this many limbs of 1 (2^±242) become pairs of doubles: no step then underflows or overflows."""
RELATIVE_ERROR_BOUND = 2.0**-90
"""Bounds the relative error of all steps of a formula below together; each step errs by less than 2^-100."""
SMALL_GROUP_COUNT = 100
"""Up to this many groups, Python's integers are faster than pairs."""
EXACT_HALF_FACTOR = 2.0**26
"""The product of half a double and an integer below this is exact."""
LARGEST_EXACT_POWER = 22
"""10^22 is a double, 10^23 is not."""


def round_quotients(sums: ExactSums, divisors: IntArray, there: BoolArray, scale: int | None) -> Answers:
    """Return Σ / (divisor * 10^scale) of each group; an answer is valid where `there`, and finite."""

    def quick() -> tuple[Pair, FloatArray] | None:
        pair = _pair(sums, MAX_LIMB_DISTANCE)
        if pair is None:
            return None
        by = (divisors if np.count_nonzero(there) == len(there) else np.maximum(divisors, 1)).astype(float)
        if scale is None or by.max(initial=1) * 10.0**scale >= EXACT_HALF_FACTOR:
            pair = _over_power(_over(pair, by), scale)
        else:
            pair = _over(pair, by * 10.0**scale)
        return pair, np.abs(pair[0]) * RELATIVE_ERROR_BOUND

    def exactly(positions: IntArray) -> FloatArray:
        values, unknown = np.zeros(len(positions)), np.arange(len(positions))
        if len(positions) > SMALL_GROUP_COUNT:
            values, known = _quotients_of_pairs(sums.take(positions), divisors[positions], scale)
            unknown = np.flatnonzero(~known)
        totals, exponent = sums.to_integers(positions[unknown])
        power = 10 ** (scale or 0)
        pairs = zip(totals, divisors[positions[unknown]].tolist(), strict=True)
        values[unknown] = [_divide(*_shifted(total, divisor * power, exponent)) for total, divisor in pairs]
        return values

    return _rounded(quick, exactly, there, scale)


def round_variances(
    sums: ExactSums, squares: ExactSums, counts: IntArray, there: BoolArray, scale: int | None
) -> Answers:
    """Return (n Σx² - (Σx)²) / (n² 10^(2 scale)) of each group; an answer is valid where `there`, and finite."""

    def quick() -> tuple[Pair, FloatArray] | None:
        return _quick_variances(sums, squares, counts, scale)

    def exactly(positions: IntArray) -> FloatArray:
        rationals = _exact_variances(sums, squares, counts, positions, scale)
        return np.fromiter((_divide(*rational) for rational in rationals), float, len(positions))

    return _rounded(quick, exactly, there, scale)


def round_deviations(
    sums: ExactSums, squares: ExactSums, counts: IntArray, there: BoolArray, scale: int | None
) -> Answers:
    """Return the square root of the variance of each group, rounded once; valid where `there`, and finite."""

    def quick() -> tuple[Pair, FloatArray] | None:
        found = _quick_variances(sums, squares, counts, scale)
        if found is None:
            return None
        (high, low), error = found
        root = np.sqrt(np.maximum(high, 0.0))
        square, rest = two_product(root, root)
        safe = np.where(root > 0, root, 1.0)
        slope = 0.5 / safe
        pair = _sum_of_two(root, ((high - square) - rest + low) * slope)
        # A root of zero is certain only if the variance has no error.
        return pair, np.where(root > 0, error * slope * 2 + root * RELATIVE_ERROR_BOUND, np.sign(error))

    def exactly(positions: IntArray) -> FloatArray:
        rationals = _exact_variances(sums, squares, counts, positions, scale)
        return np.fromiter((_root(*rational) for rational in rationals), float, len(positions))

    return _rounded(quick, exactly, there, scale)


def _rounded(
    quick: Callable[[], tuple[Pair, FloatArray] | None],
    exactly: Callable[[IntArray], FloatArray],
    there: BoolArray,
    scale: int | None,
) -> Answers:
    """Return the quick answers where their error bound leaves one double, exact ones elsewhere, zero where not `there`."""
    carriers = None if (scale or 0) > LARGEST_EXACT_POWER else quick()
    if carriers is None:
        values, doubtful = np.zeros(len(there)), np.flatnonzero(there)
    else:
        (high, low), error = carriers
        values = high + (low + error)
        doubtful = np.flatnonzero((values != high + (low - error)) & there)
    if len(doubtful):
        values[doubtful] = exactly(doubtful)
    finite = np.isfinite(values) & there
    if np.count_nonzero(finite) < len(finite):
        values[~finite] = 0.0
    return values + 0.0, finite  # adding 0.0 turns -0.0 into 0.0


# --- quotients that are exactly a pair, such as ties -----------------------------------------------------------------


def _quotients_of_pairs(sums: ExactSums, divisors: IntArray, scale: int | None) -> tuple[FloatArray, BoolArray]:
    """Return (quotients, exact): exact where the quotient is the sum of two doubles, so that one rounding gives it."""
    values, divisor = np.zeros(len(divisors)), divisors * np.float64(10.0 ** (scale or 0))
    pair = _pair(sums, MAX_LIMB_DISTANCE) if (scale or 0) <= LARGEST_EXACT_POWER else None
    if pair is None:
        return values, np.zeros(len(divisors), bool)
    high, low = pair
    quotient = high / divisor
    product, rest = two_product(quotient, divisor)
    left, lost = _sum_of_two((high - product) - rest, low)
    small = left / divisor
    whole, part = two_product(small, divisor)
    exact = (divisor < 2.0**53) & (lost == 0) & (whole == left) & (part == 0) & _in_two(sums, pair)
    return quotient + small, exact


def _in_two(sums: ExactSums, pair: Pair) -> BoolArray:
    """Return which sums equal their pair: subtracting the pair leaves no digit."""
    left = ExactSums(sums.n_groups, sums.origin)
    for part in pair:
        left.add_floats(None, -part)
    left = left.combine(sums)
    left.carry()
    has_rest: BoolArray = np.logical_or.reduce(
        [np.zeros(sums.n_groups, bool), *(column != 0 for column in left.columns.values())]
    )
    return ~has_rest


# --- exactly, one group at a time ------------------------------------------------------------------------------------


def _exact_variances(
    sums: ExactSums, squares: ExactSums, counts: IntArray, positions: IntArray, scale: int | None
) -> Iterator[tuple[int, int]]:
    """Yield the variance of each group as (numerator, denominator)."""
    totals, exponent = sums.to_integers(positions)
    square_totals, square_exponent = squares.to_integers(positions)
    power = 100 ** (scale or 0)
    for total, square, n in zip(totals, square_totals, counts[positions].tolist(), strict=True):
        common = min(2 * exponent, square_exponent)
        numerator = (n * square << (square_exponent - common)) - (total * total << (2 * exponent - common))
        yield _shifted(numerator, n * n * power, common)


def _shifted(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """Return numerator * 2^exponent / denominator as two integers."""
    return (numerator << exponent, denominator) if exponent >= 0 else (numerator, denominator << -exponent)


def _divide(numerator: int, denominator: int) -> float:
    """Return the nearest double, or infinity. Python's division of integers rounds once, half to even."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf


def _root(numerator: int, denominator: int) -> float:
    """Return the double nearest to the square root of a fraction."""
    # The shift gives the integer part of the root at least 64 bits. One more bit tells whether a rest follows, which is
    # enough to round correctly.
    shift = max(0, 64 - (numerator.bit_length() - denominator.bit_length()) // 2 + 1)
    whole, rest = divmod(numerator << 2 * shift, denominator)
    root = math.isqrt(whole)
    inexact = rest != 0 or root * root != whole
    return _divide(2 * root + inexact, 2 << shift)


# --- double-double arithmetic over all groups ------------------------------------------------------------------------


def _pair(sums: ExactSums, near: int) -> Pair | None:
    """Return the sums as pairs of doubles, or None if a limb is further than `near` from 1."""
    # Digits up to 2^52 are doubles. If the sum of the limbs above one has a rest, it exceeds everything below, which
    # cannot cancel it. So the loss stays far below the sum.
    sums.limit_digits(1 << 52)
    if sums.columns and (min(sums.columns) < -near or max(sums.columns) > near):
        return None
    high: FloatArray | None = None
    low: FloatArray | None = None
    for limb in sorted(sums.columns, reverse=True):
        part = sums.columns[limb] * np.float64(2.0 ** (LIMB_BITS * limb + sums.origin))
        if high is None:
            high = part
        else:  # `above` is a multiple of the part's last digit, so it may also be the smaller one (Dekker, 1971)
            above, high = high, high + part
            rest = part - (high - above)
            low = rest if low is None else low + rest
    if high is None or low is None:
        none = np.zeros(sums.n_groups)
        return none if high is None else high, none
    return (high, low) if len(sums.columns) == 2 else _sum_of_two(high, low)


def _quick_variances(
    sums: ExactSums, squares: ExactSums, counts: IntArray, scale: int | None
) -> tuple[Pair, FloatArray] | None:
    """Return (variances as pairs, error bounds), or None if a sum fits into no pair."""
    total, square = _pair(sums, MAX_LIMB_DISTANCE), _pair(squares, 2 * MAX_LIMB_DISTANCE)
    if total is None or square is None:
        return None
    n = counts.astype(float)
    a, a_rest = two_product(square[0], n)
    b, b_rest = two_product(total[0], total[0])
    a_rest, b_rest = a_rest + square[1] * n, b_rest + 2 * total[0] * total[1]
    high, rest = _sum_of_two(a, -b)
    pair = _sum_of_two(high, rest + (a_rest - b_rest))
    error = a * RELATIVE_ERROR_BOUND  # of the difference: cancellation does not reduce it
    for _ in range(2):
        by = np.maximum(n, 1)
        pair, error = _over_power(_over(pair, by), scale), _over_power((error / by, np.zeros(1)), scale)[0]
    several = counts > 1  # the variance of a single value is exactly zero
    return (pair[0] * several, pair[1] * several), (error + np.abs(pair[0]) * RELATIVE_ERROR_BOUND) * several


def _over(pair: Pair, divisors: FloatArray) -> Pair:
    """Divide a pair by integers, which are at least 1."""
    high, low = pair
    quotient = high / divisors
    if divisors.max(initial=1) < EXACT_HALF_FACTOR:
        # The products with both halves of the quotient are exact, and so is the rest.
        upper, lower = halves(quotient)
        left = (high - upper * divisors) - lower * divisors
    else:
        product, rest = two_product(quotient, divisors)
        left = (high - product) - rest
    return quotient, (left + low) / divisors


def _over_power(pair: Pair, scale: int | None) -> Pair:
    """Divide a pair by 10^scale."""
    return pair if scale is None else _over(pair, np.full(1, 10.0**scale))


def _sum_of_two(a: FloatArray, b: FloatArray) -> Pair:
    """Return the sum and its rounding error, exactly (Knuth, 1969)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
