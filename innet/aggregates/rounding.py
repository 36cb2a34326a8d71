"""Rounding: exact sums become doubles here, once.

What is wanted is the double nearest to an exact rational number (SEMANTICS 5.5), or to its root. It is computed twice
as precisely as a double first, for all groups together, with a bound on the error; where the bound leaves one nearest
double only, that is it. Elsewhere (ties, cancellation, extreme numbers) Python's integers decide, group by group.
"""

import math
from collections.abc import Callable

import numpy as np

from innet.aggregates.exact_sums import LIMB_BITS, ExactSums, halves, two_product

MAX_LIMB_DISTANCE = 5
"""Pairs are used for sums within this many limbs of 1, 2^±242, so that no step underflows or overflows."""
RELATIVE_ERROR_BOUND = 2.0**-90
"""More than the relative error of all steps of a formula below together; each makes less than 2^-100."""
SMALL_GROUP_COUNT = 100
"""So many groups Python's integers decide sooner than pairs would tell which of them they have to."""
EXACT_HALF_FACTOR = 2.0**26
"""A whole number below this times half a double is a double."""
LARGEST_EXACT_POWER = 22
"""10^22 is a double, 10^23 is not."""


def round_quotients(sums: ExactSums, divisors: np.ndarray, there: np.ndarray, scale: int | None):
    """Σ / (divisor * 10^scale), and where it is a finite number."""

    def quick():
        pair = _pair(sums, MAX_LIMB_DISTANCE)
        if pair is None:
            return None
        by = (divisors if np.count_nonzero(there) == len(there) else np.maximum(divisors, 1)).astype(float)
        if scale is None or by.max(initial=1) * 10.0**scale >= EXACT_HALF_FACTOR:
            pair = _over_power(_over(pair, by), scale)
        else:
            pair = _over(pair, by * 10.0**scale)
        return pair, np.abs(pair[0]) * RELATIVE_ERROR_BOUND

    def exactly(positions):
        values, unknown = np.zeros(len(positions)), np.arange(len(positions))
        if len(positions) > SMALL_GROUP_COUNT:
            values, known = _quotients_of_pairs(sums.take(positions), divisors[positions], scale)
            unknown = np.flatnonzero(~known)
        totals, exponent = sums.whole(positions[unknown])
        power = 10 ** (scale or 0)
        told = zip(totals, divisors[positions[unknown]].tolist(), strict=True)
        values[unknown] = [_divide(*_shifted(total, divisor * power, exponent)) for total, divisor in told]
        return values

    return _rounded(quick, exactly, there, scale)


def round_variances(sums: ExactSums, squares: ExactSums, counts: np.ndarray, there: np.ndarray, scale: int | None):
    """(n Σx² - (Σx)²) / (n² 10^(2 scale)), and where it is a finite number."""

    def quick():
        return _quick_variances(sums, squares, counts, scale)

    def exactly(positions):
        rationals = _exact_variances(sums, squares, counts, positions, scale)
        return np.fromiter((_divide(*rational) for rational in rationals), float, len(positions))

    return _rounded(quick, exactly, there, scale)


def round_deviations(sums: ExactSums, squares: ExactSums, counts: np.ndarray, there: np.ndarray, scale: int | None):
    """The root of the variance, rounded once, and where it is a finite number."""

    def quick():
        found = _quick_variances(sums, squares, counts, scale)
        if found is None:
            return None
        (high, low), error = found
        root = np.sqrt(np.maximum(high, 0.0))
        square, rest = two_product(root, root)
        safe = np.where(root > 0, root, 1.0)
        slope = 0.5 / safe
        pair = _sum_of_two(root, ((high - square) - rest + low) * slope)
        # A root of zero stands for a variance that its error, if it has one, may well make larger: then in doubt.
        return pair, np.where(root > 0, error * slope * 2 + root * RELATIVE_ERROR_BOUND, np.sign(error))

    def exactly(positions):
        rationals = _exact_variances(sums, squares, counts, positions, scale)
        return np.fromiter((_root(*rational) for rational in rationals), float, len(positions))

    return _rounded(quick, exactly, there, scale)


def _rounded(quick: Callable, exactly: Callable, there, scale):
    """The quick answers where they are certain, the exact ones elsewhere; zero where nothing is there."""
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
    return values + 0.0, finite  # adding 0.0 makes of -0.0 the one zero there is


# --- where a quotient is a pair exactly, as are the ties -------------------------------------------------------------


def _quotients_of_pairs(sums, divisors, scale):
    """(quotients, of which it is known that they are right): those that are the sum of two doubles, rounded once."""
    values, divisor = np.zeros(len(divisors)), divisors * 10.0 ** (scale or 0)
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


def _in_two(sums, pair):
    """Which sums are their pair, and nothing was left out: put together again, no digit is left."""
    left = ExactSums(sums.n_groups, sums.origin)
    for part in pair:
        left.add_floats(None, -part)
    left = left.merged(sums)
    left.carry()
    return ~np.logical_or.reduce([np.zeros(sums.n_groups, bool), *(column != 0 for column in left.columns.values())])


# --- exactly, one group at a time ------------------------------------------------------------------------------------


def _exact_variances(sums, squares, counts, positions, scale):
    totals, exponent = sums.whole(positions)
    square_totals, square_exponent = squares.whole(positions)
    power = 100 ** (scale or 0)
    for total, square, n in zip(totals, square_totals, counts[positions].tolist(), strict=True):
        common = min(2 * exponent, square_exponent)
        numerator = (n * square << (square_exponent - common)) - (total * total << (2 * exponent - common))
        yield _shifted(numerator, n * n * power, common)


def _shifted(numerator: int, denominator: int, exponent: int) -> tuple[int, int]:
    """Numerator * 2^exponent / denominator, as two integers."""
    return (numerator << exponent, denominator) if exponent >= 0 else (numerator, denominator << -exponent)


def _divide(numerator: int, denominator: int) -> float:
    """The nearest double (Python's division of integers rounds once, half to even), or infinity."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf


def _root(numerator: int, denominator: int) -> float:
    """The double nearest to the square root."""
    # Shifted so that the whole part of the root has at least 64 bits; one more bit says whether anything follows it,
    # which is enough to round by.
    shift = max(0, 64 - (numerator.bit_length() - denominator.bit_length()) // 2 + 1)
    whole, rest = divmod(numerator << 2 * shift, denominator)
    root = math.isqrt(whole)
    inexact = rest != 0 or root * root != whole
    return _divide(2 * root + inexact, 2 << shift)


# --- twice as precisely as a double, all groups at a time -----------------------------------------------------------


def _pair(sums: ExactSums, near: int):
    """The sums as pairs (high, low) of doubles, or None where they are too large or too small for that."""
    # Digits up to here are doubles. When the sum of those above some limb has a rest, it is larger than all below it, and
    # they cannot cancel it: so what is lost of the rests stays far below the sum.
    sums.at_most(1 << 52)
    if sums.columns and (min(sums.columns) < -near or max(sums.columns) > near):
        return None
    high = low = None
    for limb in sorted(sums.columns, reverse=True):
        part = sums.columns[limb] * 2.0 ** (LIMB_BITS * limb + sums.origin)
        if high is None:
            high = part
        else:  # what is above is a multiple of the part's last digit: then it may be the smaller one, too (Dekker, 1971)
            above, high = high, high + part
            rest = part - (high - above)
            low = rest if low is None else low + rest
    if low is None:
        none = np.zeros(sums.n_groups)
        return none if high is None else high, none
    return (high, low) if len(sums.columns) == 2 else _sum_of_two(high, low)


def _quick_variances(sums, squares, counts, scale):
    total, square = _pair(sums, MAX_LIMB_DISTANCE), _pair(squares, 2 * MAX_LIMB_DISTANCE)
    if total is None or square is None:
        return None
    n = counts.astype(float)
    a, a_rest = two_product(square[0], n)
    b, b_rest = two_product(total[0], total[0])
    a_rest, b_rest = a_rest + square[1] * n, b_rest + 2 * total[0] * total[1]
    high, rest = _sum_of_two(a, -b)
    pair = _sum_of_two(high, rest + (a_rest - b_rest))
    error = a * RELATIVE_ERROR_BOUND  # of the difference: what cancels does not make it smaller
    for _ in range(2):
        by = np.maximum(n, 1)
        pair, error = _over_power(_over(pair, by), scale), _over_power((error / by, 0.0), scale)[0]
    several = counts > 1  # the variance of a single value is zero, and certainly so
    return (pair[0] * several, pair[1] * several), (error + np.abs(pair[0]) * RELATIVE_ERROR_BOUND) * several


def _over(pair, divisors):
    """What a pair is divided by whole numbers, which are at least 1."""
    high, low = pair
    quotient = high / divisors
    if divisors.max(initial=1) < EXACT_HALF_FACTOR:
        # The products with both halves of the quotient are exact, and so is what is left.
        upper, lower = halves(quotient)
        left = (high - upper * divisors) - lower * divisors
    else:
        product, rest = two_product(quotient, divisors)
        left = (high - product) - rest
    return quotient, (left + low) / divisors


def _over_power(pair, scale):
    return pair if scale is None else _over(pair, np.float64(10.0**scale))


def _sum_of_two(a, b):
    """The sum as a double and what is missing from it, exactly (Knuth, 1969)."""
    total = a + b
    of_b = total - a
    return total, (a - (total - of_b)) + (b - of_b)
