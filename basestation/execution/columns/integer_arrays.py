"""Distinct: the different values of integers, in order. Ticks and numbers are mostly in order already, which is seen sooner
than sorted."""

import numpy as np


def distinct(values):
    """The different values, ascending."""
    if (values[1:] > values[:-1]).all():
        return values
    ordered = values if (values[1:] >= values[:-1]).all() else np.sort(values, kind="stable")
    return ordered[_new(ordered)]


def is_consecutive(numbers):
    """Whether some integers, one at least, are each the next one: then a slice says as much."""
    count = len(numbers)
    return count > 0 and int(numbers[-1]) - int(numbers[0]) == count - 1 and bool((numbers[1:] > numbers[:-1]).all())


def as_slice(numbers):
    """The numbers as a slice where they are each the next one: what is taken by it is no copy."""
    return slice(int(numbers[0]), int(numbers[-1]) + 1) if is_consecutive(numbers) else numbers


def locate_ranges(ascending, left, right):
    """Of ranges of numbers: where each begins among some ascending ones, and how many of these it holds."""
    count = len(ascending)
    step = int(ascending[1] - ascending[0]) if count > 1 else 1
    if count and step and (ascending[1:] - ascending[:-1] == step).all():  # evenly apart
        first = int(ascending[0])
        begin = np.clip(-((first - left) // step), 0, count)
        return begin, np.maximum(np.clip((right - first) // step + 1, 0, count) - begin, 0)
    begin = np.searchsorted(ascending, left)
    return begin, np.maximum(np.searchsorted(ascending, right, "right") - begin, 0)


def find_in(keys, values):
    """(where values are in ascending keys, which of them are there)."""
    if len(keys) and int(keys[-1]) - int(keys[0]) == len(keys) - 1:  # keys are each the next one
        at = values - keys[0]
        return at, (at >= 0) & (at < len(keys))
    at = np.searchsorted(keys, values)
    known = at < len(keys)
    known[known] = keys[at[known]] == values[known]
    return at, known


def rank_distinct(values):
    """(the different values, ascending; and for each value its place among them)."""
    if (values[1:] > values[:-1]).all():
        return values, np.arange(len(values))
    if (values[1:] >= values[:-1]).all():
        new = _new(values)
        return values[new], np.cumsum(new) - 1
    low = values.min()
    span = int(values.max()) - int(low) + 1
    if span > _LOOSE * len(values) + _SMALL:
        return np.unique(values, return_inverse=True)
    there = np.zeros(span, bool)
    there[values - low] = True
    return np.flatnonzero(there) + low, (np.cumsum(there) - 1)[values - low]


# So many numbers for each value, and some more, are gone through sooner than values are sorted.
_LOOSE, _SMALL = 4, 1024


def _new(ordered):
    new = np.ones(len(ordered), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    return new


def stable_argsort(values):
    """The order of integers, equal ones as they stand.

    Where there are bits left beside the value for the place, both are sorted as one number, which numpy does many at once;
    else sixteen bits at a time.
    """
    if not len(values) or (values[1:] >= values[:-1]).all():
        return np.arange(len(values))
    least = int(values.min())
    bits, places = (int(values.max()) - least).bit_length(), len(values).bit_length()
    if bits + places < 64:
        narrow = bits + places <= 32  # of these numpy does twice as many at once
        order = (values - least).astype(np.uint32 if narrow else np.int64) << places
        order |= np.arange(len(values), dtype=order.dtype)
        order.sort()
        order &= (1 << places) - 1
        return order.astype(np.int64, copy=False)
    left = values.view(np.uint64) - np.uint64(least % 2**64)
    order = np.argsort(left.astype(np.uint16), kind="stable")
    for shift in range(16, bits, 16):
        order = order[np.argsort((left[order] >> np.uint64(shift)).astype(np.uint16), kind="stable")]
    return order
