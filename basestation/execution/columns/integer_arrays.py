"""Operations on integer arrays: distinct values, ranks, searches and stable sorting.

Ticks and tuple numbers are usually in order already. Each function checks that first, because a check is cheaper than a sort.
"""

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.execution import thresholds


def distinct(values: IntArray) -> IntArray:
    """Return the distinct values in ascending order."""
    if (values[1:] > values[:-1]).all():
        return values
    ordered = values if (values[1:] >= values[:-1]).all() else np.sort(values, kind="stable")
    return ordered[_starts_run(ordered)]


def is_consecutive(numbers: AnyArray) -> bool:
    """Return whether the array is non-empty and each number is the one before plus 1."""
    count = len(numbers)
    return count > 0 and int(numbers[-1]) - int(numbers[0]) == count - 1 and bool((numbers[1:] > numbers[:-1]).all())


def as_slice(numbers: IntArray) -> IntArray | slice:
    """Return consecutive numbers as a slice, which selects without a copy; other numbers as they are."""
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if is_consecutive(numbers) else numbers


def locate_ranges(ascending: IntArray, left: IntArray, right: IntArray) -> tuple[IntArray, IntArray]:
    """For each closed range [left, right], return where it begins among ascending numbers and how many it contains."""
    count = len(ascending)
    step = int(ascending[1] - ascending[0]) if count > 1 else 1
    if count and step and (ascending[1:] - ascending[:-1] == step).all():  # evenly spaced: divide, don't search
        first = int(ascending[0])
        begin = np.clip(-((first - left) // step), 0, count)
        return begin, np.maximum(np.clip((right - first) // step + 1, 0, count) - begin, 0)
    begin = np.searchsorted(ascending, left)
    return begin, np.maximum(np.searchsorted(ascending, right, "right") - begin, 0)


def find_in(keys: IntArray, values: IntArray) -> tuple[IntArray, BoolArray]:
    """Look values up in ascending keys.

    Returns (position of each value, mask of the values that are present). A position counts only under the mask.
    """
    if len(keys) and int(keys[-1]) - int(keys[0]) == len(keys) - 1:  # consecutive keys
        at = values - keys[0]
        return at, (at >= 0) & (at < len(keys))
    at = np.searchsorted(keys, values)
    known = at < len(keys)
    known[known] = keys[at[known]] == values[known]
    return at, known


def rank_distinct(values: IntArray) -> tuple[IntArray, IntArray]:
    """Return (the distinct values in ascending order, the position of each value among them)."""
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values))
    if (values[1:] >= values[:-1]).all():
        new = _starts_run(values)
        return values[new], np.cumsum(new) - 1
    low = values.min()
    span = int(values.max()) - int(low) + 1
    if span > thresholds.DENSE_FACTOR * len(values) + thresholds.DENSE_SLACK:
        return np.unique(values, return_inverse=True)
    there = np.zeros(span, bool)
    there[values - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


def _starts_run(ordered: IntArray) -> BoolArray:
    """Return a mask of the entries that differ from the one before them."""
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def stable_argsort(values: IntArray) -> IntArray:
    """Return the positions that sort int64 values; equal values keep their order.

    If value and position fit into 63 bits together, numpy sorts both as one number with vector instructions. Otherwise a
    radix sort goes through the values 16 bits at a time.
    """
    if not len(values) or (values[1:] >= values[:-1]).all():
        return np.arange(len(values))
    least = int(values.min())
    bits, places = (int(values.max()) - least).bit_length(), len(values).bit_length()
    if bits + places < 64:
        narrow = bits + places <= 32  # numpy sorts twice as many of these at once
        order: AnyArray = (values - least).astype(np.uint32 if narrow else np.int64)
        order <<= places
        order |= np.arange(len(values), dtype=order.dtype)
        order.sort()
        order &= (1 << places) - 1
        return order.astype(np.int64, copy=False)
    left = values.view(np.uint64) - np.uint64(least % 2**64)
    order = np.argsort(left.astype(np.uint16), kind="stable")
    for shift in range(16, bits, 16):
        order = order[np.argsort((left[order] >> np.uint64(shift)).astype(np.uint16), kind="stable")]
    return order
