"""Bag difference: the rows that remain when other rows each remove the first equal one (semantics 6.1, 6.4).

Rows are given as integer keys that are equal exactly where the rows are. Usually few rows have an equal one on the other
side: a cheap filter finds the candidates, and only these are sorted.
"""

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution import thresholds
from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.window_batch import expand_ranges


def fits_table(room: int, rows: int) -> bool:
    """Return whether to count keys below `room` in a table instead of sorting them."""
    return room <= thresholds.DENSE_FACTOR * rows + thresholds.DENSE_SLACK


def number_occurrences(keys: IntArray) -> IntArray:
    """Return for each key how many equal keys stand before it."""
    if (keys[1:] > keys[:-1]).all():
        return np.zeros(len(keys), np.int64)
    order = stable_argsort(keys)
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.concatenate([begins, [len(keys)]]))
    out = np.empty(len(keys), np.int64)
    out[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return out


def subtract_bag(keys: IntArray, others: IntArray, room: int) -> IntArray:
    """Return the ascending positions of the keys that remain when each of `others` removes the first equal key.

    All keys are at least 0 and below `room`.
    """
    if not len(keys) or not len(others):
        return np.arange(len(keys))
    if fits_table(room, len(keys)):
        return subtract_by_counts(keys, np.bincount(keys, minlength=room), np.bincount(others, minlength=room))
    met, theirs = _find_candidates(keys, others, room)
    if not len(met):
        return np.arange(len(keys))
    stays = np.ones(len(keys), bool)
    stays[met] = False
    stays[met[_subtract_by_sorting(keys[met], others[theirs])]] = True
    return np.flatnonzero(stays)


def _subtract_by_sorting(keys: IntArray, others: IntArray) -> IntArray:
    """Return the positions of the keys that remain, in no order.

    The stable sort puts the equal others before the keys; of a run, twice as many entries go as it has others.
    """
    both = np.concatenate([others, keys])
    order = stable_argsort(both)
    ordered = both.take(order)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    is_key = order >= len(others)
    sizes = np.diff(begins, append=len(both))
    behind = begins + 2 * (sizes - np.add.reduceat(is_key, begins, dtype=np.int64))
    return np.asarray(order[is_key & (np.arange(len(both)) >= np.repeat(behind, sizes))] - len(others))


def subtract_by_counts(keys: IntArray, own: IntArray, away: IntArray) -> IntArray:
    """Like `subtract_bag`, from tables by key: `own` counts the rows of each key, `away` the rows to remove."""
    left = np.flatnonzero((own > away).take(keys))
    keys = keys.take(left)
    removed = away.take(keys)
    some = np.flatnonzero(removed > 0)
    if not len(some):
        return left
    # The first rows of each of these keys go.
    keys = keys.take(some)
    order = stable_argsort(keys)
    ordered = keys.take(order)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    away = removed.take(some.take(order.take(begins)))
    stays = np.ones(len(left), bool)
    stays[some.take(order.take(expand_ranges(begins, away)))] = False
    return left[stays]


def _find_candidates(keys: IntArray, others: IntArray, room: int) -> tuple[IntArray, IntArray]:
    """Return the positions of keys, and of others, that may have an equal one on the other side.

    All that have one are found, and a few more. Neighbouring keys share a slot, so rows of one window share cache lines.
    """
    shift = max(0, room.bit_length() - (thresholds.DENSE_FACTOR * (len(keys) + len(others))).bit_length())
    slot, theirs, slots = keys >> shift, others >> shift, (room >> shift) + 1
    met = np.flatnonzero(_mark(theirs, slots).take(slot))
    return met, np.flatnonzero(_mark(slot[met], slots).take(theirs))


def _mark(slot: IntArray, slots: int) -> BoolArray:
    """Return a mask over all slots that is true at the given ones."""
    marked = np.zeros(slots, bool)
    marked[slot] = True
    return marked
