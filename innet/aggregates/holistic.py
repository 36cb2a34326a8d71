"""MEDIAN, QUANTILE and COUNT(DISTINCT …): holistic aggregates.

They need all rows of a group at once, so they keep no state that merges (semantics 10.5).
"""

from fractions import Fraction

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray
from innet.aggregates.grouping import order_by_group_and_value
from innet.aggregates.protocol import Answers, EvaluableAggregate, Order, StateField


class HolisticAggregate(EvaluableAggregate):
    """The base of the aggregates that are computed at the base station, from all rows."""

    def layout(self) -> tuple[StateField, ...] | None:
        return None

    def _rows(self, groups: IntArray, values: AnyArray | None, valid: BoolArray | None) -> tuple[IntArray, AnyArray]:
        """Return the groups and values of the rows that have a value."""
        if values is None:
            raise TypeError(f"{self.name} needs values")
        return (groups, values) if valid is None else (groups[valid], values[valid])


class CountDistinct(HolisticAggregate):
    """The number of different values of each group."""

    name = "COUNT"
    result = "integer"

    def evaluate(
        self,
        n_groups: int,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
    ) -> Answers:
        groups, values = self._rows(groups, values, valid)
        if self.type == "string":
            values = _numbered(values)
        rows = order_by_group_and_value(groups, values)
        groups, values = groups[rows], values[rows]
        new = np.ones(len(groups), bool)
        new[1:] = (groups[1:] != groups[:-1]) | (values[1:] != values[:-1])
        return np.bincount(groups[new], minlength=n_groups), np.ones(n_groups, bool)


def _numbered(strings: AnyArray) -> IntArray:
    """Number the strings, equal ones equally. Hashing is many times faster than sorting."""
    listed: list[str] = strings.tolist()
    numbers = {string: number for number, string in enumerate(set(listed))}
    return np.fromiter(map(numbers.__getitem__, listed), np.int64, len(listed))


class Quantile(HolisticAggregate):
    """The quantile, exact, with linear interpolation between neighbours: a float, rounded once.

    `share` is the q of QUANTILE, from 0 to 1; MEDIAN has 0.5.
    """

    result = "float"

    def __init__(self, name: str, type: str, scale: int | None, share: float) -> None:
        super().__init__(type, scale)
        self.name = name
        self.share = Fraction(repr(share))  # the decimal as written

    def evaluate(
        self,
        n_groups: int,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
    ) -> Answers:
        groups, values = self._rows(groups, values, valid)
        values = values[order_by_group_and_value(groups, values)]
        counts = np.bincount(groups, minlength=n_groups)
        there = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[there]

        # The position of the quantile depends on the count alone, and there are fewer counts than groups.
        sizes, which = np.unique(counts[there], return_inverse=True)
        places = [divmod(self.share.numerator * (n - 1), self.share.denominator) for n in sizes.tolist()]
        below = starts + np.array([whole for whole, _ in places], np.int64)[which]
        parts: AnyArray = np.array([part for _, part in places], object)[which]
        low, high = values[below], values[below + (parts != 0)]

        out = np.zeros(n_groups)
        out[there] = self._between(low, high, parts)
        return out + 0.0, counts > 0

    def _between(self, low: AnyArray, high: AnyArray, parts: AnyArray) -> FloatArray:
        """Return low + (high - low) * part / denominator, rounded once."""
        power = 10 ** (self.scale or 0)
        out, certain = _halfway(low, high, parts * 2 == self.share.denominator, low == high, power)
        for i in np.flatnonzero(~certain).tolist():
            a, b = Fraction(low[i].item()), Fraction(high[i].item())
            out[i] = float((a + (b - a) * Fraction(parts[i], self.share.denominator)) / power)
        return out


def _halfway(
    low: AnyArray, high: AnyArray, half: BoolArray, same: BoolArray, power: int
) -> tuple[FloatArray, BoolArray]:
    """Return (answers, exact): the answers that are one value or the mean of two; exact where doubles round once."""
    with np.errstate(over="ignore"):
        total = low.astype(float) + high
        out = total / 2 / power if power == 1 else total / float(2 * power)
    if low.dtype == np.float64:
        return np.where(same, low, out), same | (half & np.isfinite(total))
    exact = (low > -(1 << 52)) & (high < 1 << 52) & (power <= 10**22)  # low is at most high
    return out, exact & (half | same)
