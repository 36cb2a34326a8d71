"""ExactSums: sums of integers and doubles, one per group, without any rounding.

A sum is a row of digits in base 2^44. The digit of limb j counts multiples of 2^(44 j), and for doubles of
2^(44 j - 22). So one limb holds integers, and two limbs hold sensor readings: below four million, in multiples of 2^-66.
Limbs start at j = -49, which holds squares of the smallest doubles. A digit is signed and has 19 bits of headroom in
its int64, so additions need no carries; `carry` runs when the headroom may be used up. A limb exists only if some value
touched it, as one array over all groups, so 1e308 beside 1e-308 needs no zeros in between.

Addition of integers is commutative and associative, so the result depends on no order, slice, merge or undo.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias, TypeVar, overload

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, FloatArray, IntArray

Pair: TypeAlias = tuple[FloatArray, FloatArray]
"""(high, low): doubles whose exact sum is the value."""
Rows: TypeAlias = BoolArray | slice
"""A selection of rows of a batch: a mask or a slice."""
Values = TypeVar("Values", IntArray, FloatArray)

LIMB_BITS = 44
HALF = 1 << (LIMB_BITS - 1)
LOW = (1 << (LIMB_BITS // 2)) - 1
INTEGER_ORIGIN, FLOAT_ORIGIN = 0, -22
"""The exponent of limb 0: its digits are multiples of 2 to this power."""
HEADROOM = 1 << 61
"""The largest magnitude that a digit may reach before `carry`."""
CHUNK_ROWS = 1 << 16
"""Rows added at a time, if there are no more groups: few enough for the caches."""
SQUARE_PART_BITS = 31
"""Integers are squared in signed parts of this many bits."""

# Doubles beyond BIG or below SMALL are scaled by 2^616 (14 limbs), so that no step overflows or underflows.
BIG, SMALL, FAR = 2.0**400, 2.0**-400, 14
SCALE_DOWN, SCALE_UP = 2.0 ** (-LIMB_BITS * FAR), 2.0 ** (LIMB_BITS * FAR)


class ExactSums:
    """The exact sums of `n_groups` groups, as an int64 array of digits per limb.

    Methods that add rows take `groups`, the group of each row; None means that row i belongs to group i. `weights` are
    +1 or -1 per row, or None for all +1.
    """

    __slots__ = ("bound", "columns", "n_groups", "origin")

    def __init__(self, n_groups: int, origin: int) -> None:
        self.n_groups, self.origin = n_groups, origin
        self.columns: dict[int, IntArray] = {}
        self.bound = 0  # no digit is larger in magnitude

    @classmethod
    def of(cls, n_groups: int, origin: int, columns: dict[int, IntArray], bound: int) -> "ExactSums":
        """Wrap the digits `columns`, by limb; none is larger in magnitude than `bound`."""
        found = cls(n_groups, origin)
        found.columns, found.bound = columns, bound
        return found

    # --- adding ------------------------------------------------------------------------------------------------------

    def add_integers(self, groups: IntArray | None, values: IntArray, weights: IntArray | None = None) -> None:
        """Add int64 values."""
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            self._add_integers(0, g, v, w)

    def add_floats(self, groups: IntArray | None, values: FloatArray, weights: IntArray | None = None) -> None:
        """Add finite doubles; ValueError for others."""
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            self._add_floats(0, g, v if w is None else v * w)

    def add_squares_of_integers(
        self, groups: IntArray | None, values: IntArray, weights: IntArray | None = None
    ) -> None:
        """Add the squares of int64 values."""
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            if _largest(v) < 1 << SQUARE_PART_BITS:
                self._add_integers(0, g, v * v, w)
                continue
            # Both parts lie within -2^31 and 2^31 - 1.
            low = ((v & 0xFFFFFFFF) ^ (1 << SQUARE_PART_BITS)) - (1 << SQUARE_PART_BITS)
            high = (v >> (SQUARE_PART_BITS + 1)) + (low < 0)
            self._add_integers(0, g, low * low, w)
            for _ in range(2):
                self._add_integers(SQUARE_PART_BITS + 1, g, high * low, w)
            self._add_integers(2 * (SQUARE_PART_BITS + 1), g, high * high, w)

    def add_squares_of_floats(
        self, groups: IntArray | None, values: FloatArray, weights: IntArray | None = None
    ) -> None:
        """Add the squares of finite doubles, exactly."""
        for g, v, w in _portions(self.n_groups, groups, values, weights):
            for chosen, factor, limb in _bands(np.abs(v)):
                x = v[chosen] * factor
                square, rest = two_product(x, x)
                for part in (square, rest):
                    self._add_floats(2 * limb, _chosen(g, chosen), part if w is None else part * w[chosen])

    def _add_integers(self, exponent: int, groups: IntArray | None, values: IntArray, weights: IntArray | None) -> None:
        """Add values times 2^exponent."""
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

    def _add_floats(self, limb: int, groups: IntArray | None, values: FloatArray) -> None:
        """Add values times 2^(44 limb)."""
        largest = _largest(values)
        if not math.isfinite(largest):
            raise ValueError("expected finite numbers, found infinity or NaN")
        if largest >= BIG:
            far = np.abs(values) >= BIG
            self._add_floats(limb + FAR, _chosen(groups, far), values[far] * SCALE_DOWN)
            groups, values = _chosen(groups, ~far), values[~far]
            largest = _largest(values)
        while largest:
            # Split each value from the top. Adding 1.5 * 2^52 units and subtracting them again rounds it to whole units
            # of this limb without error. The rest is exact too, and at most half a unit.
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

    def _scatter(self, limb: int, groups: IntArray | None, digits: IntArray, largest: int) -> None:
        """Add digits to a limb; none is larger than 2^LIMB_BITS or `largest`. The array `digits` may become the limb's own."""
        largest = min(largest, 1 << LIMB_BITS)
        if groups is not None:
            self._add_at(groups, {limb: digits}, largest)
            return
        self._make_room(largest)
        if limb in self.columns:
            self.columns[limb] += digits
        else:
            self.columns[limb] = digits

    def _add_at(self, groups: IntArray, columns: dict[int, IntArray], largest: int) -> None:
        """Add digits by limb, none larger than `largest`, in portions for which the groups have headroom."""
        rows = most = len(groups)
        if largest * most > HEADROOM:
            most = np.bincount(groups).max().item()
            rows = rows if largest * most <= HEADROOM else HEADROOM // largest
        for start in range(0, len(groups), max(rows, 1)):
            part = slice(start, start + rows)
            self._make_room(largest * min(most, rows))
            for limb, digits in columns.items():
                np.add.at(self._column(limb), groups[part], digits[part])

    def merge(self, other: "ExactSums", into: IntArray) -> None:
        """Add group g of `other` to group into[g]."""
        if other.bound * len(into) > HEADROOM:
            other.carry()
        self._add_at(into, other.columns, other.bound)

    def combine(self, other: "ExactSums", add: Callable[[IntArray, IntArray], IntArray] = np.add) -> "ExactSums":
        """Return new sums, group by group of both; `add` adds two columns."""
        for sums in (self, other):
            if sums.bound > HEADROOM // 2:
                sums.carry()
        columns = self.columns | other.columns
        for limb in self.columns.keys() & other.columns.keys():
            columns[limb] = add(self.columns[limb], other.columns[limb])
        return ExactSums.of(self.n_groups, self.origin, columns, self.bound + other.bound)

    def reduce_segments(
        self, n_groups: int, most: int, reduce: Callable[[np.ufunc, IntArray, int], IntArray]
    ) -> "ExactSums":
        """Return the sums of `n_groups` segments of at most `most` groups each.

        `reduce(ufunc, column, start)` folds each segment of a column with the ufunc, beginning with `start`.
        """
        if self.bound * most > HEADROOM:
            self.carry()
        if self.bound * most <= HEADROOM:
            columns = {limb: reduce(np.add, column, 0) for limb, column in self.columns.items()}
            return ExactSums.of(n_groups, self.origin, columns, self.bound * max(most, 1))
        found = ExactSums(n_groups, self.origin)
        for limb, column in self.columns.items():  # sums of half digits fit for this many
            for shift, half in ((0, column & LOW), (LIMB_BITS // 2, column >> LIMB_BITS // 2)):
                found._add_integers(LIMB_BITS * limb + shift, None, reduce(np.add, half, 0), None)
        return found

    def map_arrays(self, change: Callable[[IntArray], IntArray], n_groups: int) -> "ExactSums":
        """Return sums of `n_groups` groups whose columns are `change` of these columns: a selection or a copy."""
        columns = {limb: change(column) for limb, column in self.columns.items()}
        return ExactSums.of(n_groups, self.origin, columns, self.bound)

    # --- digits ------------------------------------------------------------------------------------------------------

    def _column(self, limb: int) -> IntArray:
        if limb not in self.columns:
            self.columns[limb] = np.zeros(self.n_groups, np.int64)
        return self.columns[limb]

    def _make_room(self, largest: int) -> None:
        if largest > HEADROOM:
            raise OverflowError(f"a digit has no room to add {largest} at a time; the limit is {HEADROOM}")
        if self.bound + largest > HEADROOM:
            self.carry()
        self.bound += largest

    def carry(self) -> None:
        """Normalise: bring every digit to -2^43 … 2^43 - 1. Equal sums then have equal digits."""
        limb, top = min(self.columns, default=0), max(self.columns, default=-1)
        while limb <= top or limb in self.columns:
            if limb in self.columns:
                digits = self.columns[limb]
                carried = (digits + HALF) >> LIMB_BITS
                if carried.any():  # new arrays: other sums may share the old ones
                    digits = self.columns[limb] = digits - (carried << LIMB_BITS)
                    self.columns[limb + 1] = self.columns[limb + 1] + carried if limb + 1 in self.columns else carried
                if not digits.any():
                    del self.columns[limb]
            limb += 1
        self.bound = HALF

    def limit_digits(self, largest: int) -> None:
        """Carry if a digit may be larger in magnitude than `largest`."""
        if self.bound > largest:
            self.carry()

    def to_integers(self, positions: IntArray) -> tuple[list[int], int]:
        """Return (totals, exponent): the sum of the group at each position is its total times 2^exponent."""
        lowest = min(self.columns, default=0)
        totals = [0] * len(positions)
        for limb, column in self.columns.items():
            shift = LIMB_BITS * (limb - lowest)
            totals = [t + (d << shift) for t, d in zip(totals, column[positions].tolist(), strict=True)]
        return totals, LIMB_BITS * lowest + self.origin

    def to_int64(self) -> tuple[IntArray, BoolArray | None]:
        """Return (sums of integers as int64, a mask of those that fit into 64 bits; None if all do)."""
        totals = np.zeros(self.n_groups, np.int64)
        for limb, column in self.columns.items():
            if LIMB_BITS * limb < 64:
                totals += column << (LIMB_BITS * limb)
        if not any(self.columns):  # a digit of the lowest limb fits
            return totals, None
        self.carry()  # so that the highest digit decides, and rounding changes little
        near: FloatArray = np.zeros(self.n_groups)
        for limb, column in self.columns.items():
            near += column * 2.0 ** (LIMB_BITS * limb)
        if _largest(near) < 2.0**62:
            return totals, None
        fits = np.ones(self.n_groups, bool)
        far = np.flatnonzero(np.abs(near) >= 2.0**62)
        exact, exponent = self.to_integers(far)
        fits[far] = [-(2**63) <= total << exponent < 2**63 for total in exact]
        return totals, fits

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def grow(self, n_groups: int) -> None:
        """Append groups with the sum zero, up to `n_groups`."""
        more = np.zeros(n_groups - self.n_groups, np.int64)
        self.columns = {limb: np.concatenate([column, more]) for limb, column in self.columns.items()}
        self.n_groups = n_groups

    def take(self, positions: IntArray | BoolArray) -> "ExactSums":
        """Return the sums of the groups at `positions` (numbers or a mask)."""
        chosen = int(np.count_nonzero(positions)) if positions.dtype == bool else len(positions)
        return self.map_arrays(lambda column: column[positions], chosen)

    @staticmethod
    def concatenate(parts: Sequence["ExactSums"]) -> "ExactSums":
        """Return the groups of all `parts`, one part after the other."""
        joined = ExactSums(sum(part.n_groups for part in parts), parts[0].origin)
        start = 0
        for part in parts:
            for limb, column in part.columns.items():
                joined._column(limb)[start : start + part.n_groups] = column
            start += part.n_groups
        joined.bound = max((part.bound for part in parts), default=0)
        return joined

    def dump(self) -> tuple[IntArray, IntArray]:
        """Return (limbs, digits), with a row of digits per limb; equal sums give equal arrays."""
        self.carry()
        limbs = np.array(sorted(self.columns), np.int64)
        digits = np.zeros((len(limbs), self.n_groups), np.int64)
        for row, limb in enumerate(limbs.tolist()):
            digits[row] = self.columns[limb]
        return limbs, digits

    @classmethod
    def load(cls, limbs: IntArray, digits: IntArray, origin: int) -> "ExactSums":
        """Return the sums that `dump` wrote."""
        columns = {limb: row.copy() for limb, row in zip(limbs.tolist(), digits, strict=True)}
        return cls.of(digits.shape[1], origin, columns, HALF)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(column.nbytes for column in self.columns.values())


def _times_power(values: FloatArray, exponent: int) -> FloatArray:
    """Return values * 2^exponent, which is exact."""
    return values * 2.0**exponent if abs(exponent) < 1000 else np.ldexp(values, exponent)


def two_product(a: FloatArray, b: FloatArray) -> Pair:
    """Return the product and its rounding error, exactly (Dekker, 1971); for products within 2^±900."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def halves(x: FloatArray) -> Pair:
    """Split a double into the sum of two with 26 bits each (Veltkamp, 1968)."""
    shifted = 134217729.0 * x
    high = shifted - (shifted - x)
    return high, x - high


def _bands(magnitudes: FloatArray) -> Iterator[tuple[Rows, float, int]]:
    """Yield (rows, factor, limbs): the factor that scales these rows before squaring, and the limbs that it shifts them."""
    big, small = magnitudes >= BIG, (magnitudes < SMALL) & (magnitudes > 0)
    if not (big.any() or small.any()):
        yield slice(None), 1.0, 0
        return
    for chosen, factor, limb in ((big, SCALE_DOWN, FAR), (~(big | small), 1.0, 0), (small, SCALE_UP, -FAR)):
        if chosen.any():
            yield chosen, factor, limb


@overload
def _largest(values: IntArray) -> int: ...
@overload
def _largest(values: FloatArray) -> float: ...
def _largest(values: AnyArray) -> float:
    """Return the largest magnitude as a Python number: that of -2^63 does not fit into int64."""
    if len(values) == 0:
        return 0
    largest: float = max(np.maximum.reduce(values).item(), -np.minimum.reduce(values).item())
    return largest


def _chosen(groups: IntArray | None, which: Rows) -> IntArray | None:
    """Return the groups of the rows `which`."""
    if groups is not None:
        return groups[which]
    return None if isinstance(which, slice) else np.flatnonzero(which)


def _portions(
    n_groups: int, groups: IntArray | None, values: Values, weights: IntArray | None
) -> Iterator[tuple[IntArray | None, Values, IntArray | None]]:
    """Yield the rows in portions that fit into the caches."""
    if groups is None:
        yield None, values, weights
        return
    rows = min(max(CHUNK_ROWS, n_groups), 1 << 20)
    for start in range(0, len(values), rows):
        stop = start + rows
        yield groups[start:stop], values[start:stop], None if weights is None else weights[start:stop]
