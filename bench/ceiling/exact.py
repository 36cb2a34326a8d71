"""Exact sums by hand: doubles as two int64 words that may be added in any order, and their mean, rounded once."""

from fractions import Fraction

import numpy as np

TOP = 24
REST = 52
"""A double v is high * 2^-24 + low * 2^-76, both whole, if it is a multiple of 2^-76, and below 2^18 in size.

Then sums of up to 2048 of them fit, and `means` may take the high word as a double: |low| is at most 2^51.
"""


def split(values):
    scaled = values * 2.0**TOP
    high = np.rint(scaled)
    low = (scaled - high) * 2.0**REST
    if len(values) and ((low != np.rint(low)).any() or np.abs(high).max() >= 2.0**42):
        raise ValueError("not to be summed in two words")
    return high.astype(np.int64), low.astype(np.int64)


def means(high, low, counts):
    """(high * 2^-24 + low * 2^-76) / counts, each the nearest double.

    Computed as a pair of doubles with an error far below 2^-90 of it. Where that leaves two doubles, the quotient mostly
    lies in the middle of them, which is then certain; else fractions decide.
    """
    n = counts.astype(np.float64)
    h = high.astype(np.float64)
    tail = (low >> 32) * 2.0 ** (32 - REST)
    rest = (low & 0xFFFFFFFF) * 2.0**-REST
    top = h + tail
    tail = (tail - (top - h)) + rest
    quotient = top / n
    first = _left(top, quotient, n)
    remainder = first + tail
    small = remainder / n
    doubt = np.abs(quotient) * 2.0**-90
    mean = quotient + (small + doubt)
    unsure = np.flatnonzero(mean != quotient + (small - doubt))
    if len(unsure):
        mean[unsure] = quotient[unsure] + small[unsure]
        lost = _lost(first[unsure], tail[unsure], remainder[unsure])
        exact = (_left(remainder[unsure], small[unsure], n[unsure]) == 0) & (lost == 0)
        for place in unsure[~exact].tolist():
            total = Fraction(int(high[place]), 1) + Fraction(int(low[place]), 1 << REST)
            mean[place] = float(total / int(counts[place]))
    mean *= 2.0**-TOP
    return mean


def _lost(a, b, total):
    """Return the rounding error of the sum of a and b (Knuth, 1969)."""
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


def _left(dividend, quotient, divisor):
    """dividend - quotient * divisor without error, the quotient in two halves; for divisors below 2^26."""
    shifted = 134217729.0 * quotient
    upper = shifted - (shifted - quotient)
    return (dividend - upper * divisor) - (quotient - upper) * divisor
