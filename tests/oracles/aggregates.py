"""Aggregates over the values of one window or group (5.5, 5.6, 10.5). Nulls are left out before (14, on 10.5)."""

import math
from fractions import Fraction

from tests.oracles.values import exact, exact_sqrt, in_64_bits, plain, rounded


def count(values):
    return len(values)  # 5.6: of nothing, 0


def count_distinct(values):
    return len(set(values))


def minimum(values):
    return plain(min(values)) if values else None  # 5.6: of nothing, null


def maximum(values):
    return plain(max(values)) if values else None


def total(values):
    """5.5: the sum of integers is an integer, null outside 64 bits; of floats exact, rounded once; of an attribute with a scale, 13."""
    if not values:
        return None
    if all(isinstance(v, int) for v in values):
        return in_64_bits(sum(values))  # 14, on 1.8
    return rounded(sum(exact(v) for v in values))


def average(values):
    """5.5: a float, the exact sum divided by the number."""
    return rounded(sum(exact(v) for v in values) / Fraction(len(values))) if values else None


def _variance(values):
    """10.5: divided by n."""
    mean = sum(exact(v) for v in values) / Fraction(len(values))
    return sum((exact(v) - mean) ** 2 for v in values) / Fraction(len(values))


def variance(values):
    return rounded(_variance(values)) if values else None


def stdev(values):
    return exact_sqrt(_variance(values)) if values else None


def quantile(values, q):
    """10.5: exact, linear interpolation, a float. q is the decimal that was written."""
    if not values:
        return None
    ordered = sorted(exact(v) for v in values)
    position = Fraction(repr(q)) * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return rounded(ordered[below] + (ordered[above] - ordered[below]) * (position - below))


def median(values):
    return quantile(values, 0.5)


def first(keyed):
    """10.5: the value with the least (tick, then site or index)."""
    return plain(min(keyed, key=lambda k: k[0])[1]) if keyed else None


def last(keyed):
    return plain(max(keyed, key=lambda k: k[0])[1]) if keyed else None


PLAIN = {
    "COUNT": count, "MIN": minimum, "MAX": maximum, "SUM": total, "AVG": average,
    "STDEV": stdev, "VARIANCE": variance, "MEDIAN": median,
}  # fmt: skip
NAMES = {*PLAIN, "QUANTILE", "FIRST", "LAST"}
GROWING = {"MEDIAN", "QUANTILE"}
"""10.5: with COUNT(DISTINCT), those whose state grows with the data; they do not merge (10.3)."""
