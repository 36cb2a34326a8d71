"""ExactSums: sums of doubles and integers, one per group, in which nothing is ever rounded.

A sum is kept as digits in base 2^44: the digit of limb j counts multiples of 2^(44 j), for doubles of 2^(44 j - 22): so two
limbs hold what is below four million and a multiple of 2^-66, which readings of a sensor are, and one holds integers. j is
from -49 (squares of the smallest doubles) upwards. Digits have a sign and 19 bits of headroom in their int64, so adding needs
no carries; they are carried when the headroom may be used up. Only limbs that some value has touched exist, as one array
over all groups, so 1e308 beside 1e-308 needs no zeros in between.

Addition of integers is commutative and associative: no order, slice, merge or undoing can show.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

LIMB_BITS = 44
HALF = 1 << (LIMB_BITS - 1)
LOW = (1 << (LIMB_BITS // 2)) - 1
INTEGER_ORIGIN, FLOAT_ORIGIN = 0, -22
"""Of which power of two the digits of limb 0 are multiples."""
HEADROOM = 1 << 61
CHUNK_ROWS = 1 << 16
"""Rows that are added at a time, where groups are no more: few, for the caches."""
SQUARE_PART_BITS = 31
"""Integers are squared in parts of so many bits, with a sign."""

# Doubles this far out are scaled by 2^616 = 14 limbs, so that the steps below neither overflow nor underflow.
BIG, SMALL, FAR = 2.0**400, 2.0**-400, 14
SCALE_DOWN, SCALE_UP = 2.0 ** (-LIMB_BITS * FAR), 2.0 ** (LIMB_BITS * FAR)


class ExactSums:
    """Where `groups` are None, there are as many rows as groups, and each row is one of its own."""

    __slots__ = ("bound", "columns", "n_groups", "origin")

    def __init__(self, n_groups: int, origin: int) -> None:
        self.n_groups, self.origin = n_groups, origin
        self.columns: dict[int, np.ndarray] = {}
        self.bound = 0  # no digit is larger

    @classmethod
    def of(cls, n_groups: int, origin: int, columns: dict[int, np.ndarray], bound: int) -> "ExactSums":
        """Those with these digits, none of which is larger than `bound`."""
        found = cls(n_groups, origin)
        found.columns, found.bound = columns, bound
        return found

    # --- adding ------------------------------------------------------------------------------------------------------

    def add_integers(self, groups, values, weights=None) -> None:
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            self._add_integers(0, g, v, w)

    def add_floats(self, groups, values, weights=None) -> None:
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            self._add_floats(0, g, v if w is None else v * w)

    def add_squares_of_integers(self, groups, values, weights=None) -> None:
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            if _largest(v) < 1 << SQUARE_PART_BITS:
                self._add_integers(0, g, v * v, w)
                continue
            low = ((v & 0xFFFFFFFF) ^ (1 << SQUARE_PART_BITS)) - (
                1 << SQUARE_PART_BITS
            )  # from -2^31 to 2^31 - 1, and so is high
            high = (v >> (SQUARE_PART_BITS + 1)) + (low < 0)
            self._add_integers(0, g, low * low, w)
            for _ in range(2):
                self._add_integers(SQUARE_PART_BITS + 1, g, high * low, w)
            self._add_integers(2 * (SQUARE_PART_BITS + 1), g, high * high, w)

    def add_squares_of_floats(self, groups, values, weights=None) -> None:
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            for chosen, factor, limb in _bands(np.abs(v)):
                x = v[chosen] * factor
                square, rest = two_product(x, x)
                for part in (square, rest):
                    self._add_floats(2 * limb, _chosen(g, chosen), part if w is None else part * w[chosen])

    def _add_integers(self, exponent, groups, values, weights) -> None:
        """Add integers times 2^exponent."""
        limb, shift = divmod(exponent, LIMB_BITS)
        largest = _largest(values)
        if largest << shift <= 1 << LIMB_BITS:
            parts = [values << shift]
        else:
            cut = LIMB_BITS - shift
            parts = [(values & ((1 << cut) - 1)) << shift, values >> cut]
            if largest >> cut > 1 << LIMB_BITS:
                parts[1:] = parts[1] & ((1 << LIMB_BITS) - 1), parts[1] >> LIMB_BITS
        for place, digits in enumerate(parts, limb):
            self._scatter(place, groups, digits if weights is None else digits * weights, largest << shift)

    def _add_floats(self, limb, groups, values) -> None:
        largest = _largest(values)
        if not math.isfinite(largest):
            raise ValueError("only finite numbers can be added")
        if largest >= BIG:
            far = np.abs(values) >= BIG
            self._add_floats(limb + FAR, _chosen(groups, far), values[far] * SCALE_DOWN)
            groups, values = _chosen(groups, ~far), values[~far]
            largest = _largest(values)
        while largest:
            # Each value is taken apart from the top: adding 1.5 * 2^52 units and taking them away again leaves it
            # rounded to whole units of this limb, without error; so is the rest, which is at most half a unit.
            top = -((self.origin - math.frexp(largest)[1]) // LIMB_BITS) - 1
            exponent = LIMB_BITS * top + self.origin
            steady = math.ldexp(1.5, 52 + exponent)
            units = (values + steady) - steady
            digits = _times_power(units, -exponent).astype(np.int64)
            self._scatter(limb + top, groups, digits, math.ceil(math.ldexp(largest, -exponent)))
            values = values - units
            largest = _largest(values)
            if largest and np.count_nonzero(values) * 2 < len(values):
                rest = values != 0
                groups, values = _chosen(groups, rest), values[rest]

    def _scatter(self, limb, groups, digits, largest) -> None:
        """Add digits, of which nobody else has the array, to a limb; none is larger than 2^BITS, nor than `largest`."""
        largest = min(largest, 1 << LIMB_BITS)
        if groups is not None:
            self._add_at(groups, {limb: digits}, largest)
            return
        self._make_room(largest)
        if limb in self.columns:
            self.columns[limb] += digits
        else:
            self.columns[limb] = digits

    def _add_at(self, groups, columns, largest) -> None:
        """Add digits of limbs, none of which is larger than `largest`: of one group as many at a time as there is room for."""
        rows = most = len(groups)
        if largest * most > HEADROOM:
            most = np.bincount(groups).max().item()
            rows = rows if largest * most <= HEADROOM else HEADROOM // largest
        for start in range(0, len(groups), max(rows, 1)):
            part = slice(start, start + rows)
            self._make_room(largest * min(most, rows))
            for limb, digits in columns.items():
                np.add.at(self._column(limb), groups[part], digits[part])

    def merge(self, other: "ExactSums", into: np.ndarray) -> None:
        """Add group g of another to the group into[g]."""
        if other.bound * len(into) > HEADROOM:
            other.carry()
        self._add_at(into, other.columns, other.bound)

    def merged(self, other: "ExactSums", add: Callable = np.add) -> "ExactSums":
        """New sums, group by group of both; `add` adds two columns."""
        for sums in (self, other):
            if sums.bound > HEADROOM // 2:
                sums.carry()
        columns = self.columns | other.columns
        for limb in self.columns.keys() & other.columns.keys():
            columns[limb] = add(self.columns[limb], other.columns[limb])
        return ExactSums.of(self.n_groups, self.origin, columns, self.bound + other.bound)

    def together(self, n_groups: int, most: int, bring: Callable) -> "ExactSums":
        """Sums of other groups, each of `most` of these at most; `bring` brings those of a column together."""
        if self.bound * most > HEADROOM:
            self.carry()
        if self.bound * most <= HEADROOM:
            columns = {limb: bring(np.add, column, 0) for limb, column in self.columns.items()}
            return ExactSums.of(n_groups, self.origin, columns, self.bound * max(most, 1))
        found = ExactSums(n_groups, self.origin)
        for limb, column in self.columns.items():  # of so many, sums of half digits fit
            for shift, half in ((0, column & LOW), (LIMB_BITS // 2, column >> LIMB_BITS // 2)):
                found._add_integers(LIMB_BITS * limb + shift, None, bring(np.add, half, 0), None)
        return found

    def mapped(self, change: Callable, n_groups: int) -> "ExactSums":
        """The sums of so many other groups: what is chosen of each column, or a copy of it."""
        columns = {limb: change(column) for limb, column in self.columns.items()}
        return ExactSums.of(n_groups, self.origin, columns, self.bound)

    # --- digits ------------------------------------------------------------------------------------------------------

    def _column(self, limb) -> np.ndarray:
        if limb not in self.columns:
            self.columns[limb] = np.zeros(self.n_groups, np.int64)
        return self.columns[limb]

    def _make_room(self, largest) -> None:
        if largest > HEADROOM:
            raise OverflowError("more is added at a time than digits have room for")
        if self.bound + largest > HEADROOM:
            self.carry()
        self.bound += largest

    def carry(self) -> None:
        """Bring every digit to -2^43 … 2^43 - 1, in which form there is one way only to write a sum."""
        limb, top = min(self.columns, default=0), max(self.columns, default=-1)
        while limb <= top or limb in self.columns:
            if limb in self.columns:
                digits = self.columns[limb]
                carried = (digits + HALF) >> LIMB_BITS
                if carried.any():  # new arrays: the old ones may be those of other sums as well
                    digits = self.columns[limb] = digits - (carried << LIMB_BITS)
                    self.columns[limb + 1] = self.columns[limb + 1] + carried if limb + 1 in self.columns else carried
                if not digits.any():
                    del self.columns[limb]
            limb += 1
        self.bound = HALF

    def at_most(self, largest: int) -> None:
        """Bring the digits down if one of them may be larger."""
        if self.bound > largest:
            self.carry()

    def whole(self, positions: np.ndarray) -> tuple[list[int], int]:
        """The sums at these positions, as Python integers times 2^exponent."""
        lowest = min(self.columns, default=0)
        totals = [0] * len(positions)
        for limb, column in self.columns.items():
            shift = LIMB_BITS * (limb - lowest)
            totals = [t + (d << shift) for t, d in zip(totals, column[positions].tolist(), strict=True)]
        return totals, LIMB_BITS * lowest + self.origin

    def wrapped(self) -> np.ndarray:
        """Sums of integers as int64; outside 64 bits they go round (SEMANTICS 1.8 leaves that open)."""
        totals = np.zeros(self.n_groups, np.int64)
        for limb, column in self.columns.items():
            if LIMB_BITS * limb < 64:
                totals += column << (LIMB_BITS * limb)
        return totals

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def grow(self, n_groups: int) -> None:
        more = np.zeros(n_groups - self.n_groups, np.int64)
        self.columns = {limb: np.concatenate([column, more]) for limb, column in self.columns.items()}
        self.n_groups = n_groups

    def take(self, positions: np.ndarray) -> "ExactSums":
        chosen = np.count_nonzero(positions) if positions.dtype == bool else len(positions)
        return self.mapped(lambda column: column[positions], chosen)

    @staticmethod
    def concatenate(parts: Sequence["ExactSums"]) -> "ExactSums":
        joined = ExactSums(sum(part.n_groups for part in parts), parts[0].origin)
        start = 0
        for part in parts:
            for limb, column in part.columns.items():
                joined._column(limb)[start : start + part.n_groups] = column
            start += part.n_groups
        joined.bound = max((part.bound for part in parts), default=0)
        return joined

    def dump(self) -> tuple[np.ndarray, np.ndarray]:
        """The limbs, and for each of them a row of digits; equal sums give equal arrays."""
        self.carry()
        limbs = np.array(sorted(self.columns), np.int64)
        digits = np.zeros((len(limbs), self.n_groups), np.int64)
        for row, limb in enumerate(limbs.tolist()):
            digits[row] = self.columns[limb]
        return limbs, digits

    @classmethod
    def load(cls, limbs: np.ndarray, digits: np.ndarray, origin: int) -> "ExactSums":
        columns = {limb: row.copy() for limb, row in zip(limbs.tolist(), digits, strict=True)}
        return cls.of(digits.shape[1], origin, columns, HALF)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())


def _times_power(values, exponent):
    """Values * 2^exponent, which is exact."""
    return values * 2.0**exponent if abs(exponent) < 1000 else np.ldexp(values, exponent)


def two_product(a, b):
    """The product as a double and what is missing from it, exactly (Dekker, 1971); for products within 2^±900."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def halves(x):
    """A double as the sum of two with 26 bits each (Veltkamp, 1968)."""
    shifted = 134217729.0 * x
    high = shifted - (shifted - x)
    return high, x - high


def _bands(magnitudes) -> Iterator[tuple[object, float, int]]:
    """Which rows are how to be scaled before they are squared, and how many limbs that takes them down."""
    big, small = magnitudes >= BIG, (magnitudes < SMALL) & (magnitudes > 0)
    if not (big.any() or small.any()):
        yield slice(None), 1.0, 0
        return
    for chosen, factor, limb in ((big, SCALE_DOWN, FAR), (~(big | small), 1.0, 0), (small, SCALE_UP, -FAR)):
        if chosen.any():
            yield chosen, factor, limb


def _largest(values):
    """The largest magnitude, a Python number: the one of -2^63 is no int64."""
    if len(values) == 0:
        return 0
    return max(np.maximum.reduce(values).item(), -np.minimum.reduce(values).item())


def _chosen(groups, which):
    """The groups of some rows."""
    if groups is not None:
        return groups[which]
    return None if isinstance(which, slice) else np.flatnonzero(which)


def _portions(n_groups, groups, values, weights) -> Iterator[tuple]:
    if groups is None:
        yield None, values, weights
        return
    rows = min(max(CHUNK_ROWS, n_groups), 1 << 20)
    for start in range(0, len(values), rows):
        stop = start + rows
        yield groups[start:stop], values[start:stop], None if weights is None else weights[start:stop]
