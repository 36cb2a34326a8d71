"""MEDIAN, QUANTILE and COUNT(DISTINCT …): they need all readings of a group at once, so they do not merge (10.5)."""

from fractions import Fraction

import numpy as np

from innet.aggregates.grouping import order_by_group_and_value


class HolisticAggregate:
    is_mergeable = False
    can_undo = False
    stretches = False

    def layout(self):
        return None  # they stay at the base

    def __init__(self, type: str, scale: int | None = None) -> None:
        self.type, self.scale = type, scale


def _there(groups, values, valid):
    return (groups, values) if valid is None else (groups[valid], values[valid])


class CountDistinct(HolisticAggregate):
    name = "COUNT"
    result = "integer"

    def evaluate(self, n_groups, groups, values, valid=None, order=None):
        groups, values = _there(groups, values, valid)
        if self.type == "string":
            values = _numbered(values)
        rows = order_by_group_and_value(groups, values)
        groups, values = groups[rows], values[rows]
        new = np.ones(len(groups), bool)
        new[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
        return np.bincount(groups[new], minlength=n_groups), np.ones(n_groups, bool)


def _numbered(strings):
    """Equal strings get equal numbers; hashing is many times faster than sorting them."""
    strings = strings.tolist()
    numbers = {string: number for number, string in enumerate(set(strings))}
    return np.fromiter(map(numbers.__getitem__, strings), np.int64, len(strings))


class Quantile(HolisticAggregate):
    """Exact, with linear interpolation between neighbours, a float rounded once. MEDIAN is the one of one half."""

    result = "float"

    def __init__(self, name: str, type: str, scale: int | None, share: float) -> None:
        super().__init__(type, scale)
        self.name = name
        self.share = Fraction(repr(share))  # the decimal that was written

    def evaluate(self, n_groups, groups, values, valid=None, order=None):
        groups, values = _there(groups, values, valid)
        values = values[order_by_group_and_value(groups, values)]
        counts = np.bincount(groups, minlength=n_groups)
        there = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[there]

        # Where the quantile lies depends on the count alone, and there are fewer counts than groups.
        sizes, which = np.unique(counts[there], return_inverse=True)
        places = [divmod(self.share.numerator * (n - 1), self.share.denominator) for n in sizes.tolist()]
        below = starts + np.array([whole for whole, _ in places], np.int64)[which]
        parts = np.array([part for _, part in places], object)[which]
        low, high = values[below], values[below + (parts != 0)]

        out = np.zeros(n_groups)
        out[there] = self._between(low, high, parts)
        return out + 0.0, counts > 0

    def _between(self, low, high, parts):
        """low + (high - low) * part / denominator, rounded once."""
        power = 10 ** (self.scale or 0)
        out, certain = _halfway(low, high, parts * 2 == self.share.denominator, low == high, power)
        for i in np.flatnonzero(~certain).tolist():
            a, b = Fraction(low[i].item()), Fraction(high[i].item())
            out[i] = float((a + (b - a) * Fraction(parts[i], self.share.denominator)) / power)
        return out


def _halfway(low, high, half, same, power):
    """The answers that are a value, or the mean of two, where doubles give those with one rounding; and where."""
    with np.errstate(over="ignore"):
        total = low.astype(float) + high
        out = total / 2 / power if power == 1 else total / float(2 * power)
    if low.dtype == np.float64:
        return np.where(same, low, out), same | (half & np.isfinite(total))
    exact = (low > -(1 << 52)) & (high < 1 << 52) & (power <= 10**22)  # low is at most high
    return out, exact & (half | same)
