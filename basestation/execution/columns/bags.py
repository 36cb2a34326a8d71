"""Bags: which rows are left when others take equal ones away, each the first one (SEMANTICS 6.1, 6.4).

Rows are told by keys, equal where the rows are. Few of many rows are equal mostly: a sieve finds those that may be, and only
they are sorted.
"""

import numpy as np

from basestation.execution.columns.integer_arrays import stable_argsort
from basestation.execution.columns.window_batch import expand_ranges

LOOSE, SMALL = 4, 1024  # so many numbers for each row, and some more, are fewer than it costs to sort rows


def fits_table(room, rows):
    """Whether keys below `room` are counted in a table, and not sorted."""
    return room <= LOOSE * rows + SMALL


def number_occurrences(keys):
    """For each row how many equal keys stand before it."""
    if (keys[1:] > keys[:-1]).all():
        return np.zeros(len(keys), np.int64)
    order = stable_argsort(keys)
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.concatenate([begins, [len(keys)]]))
    out = np.empty(len(keys), np.int64)
    out[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return out


def subtract_bag(keys, others, room):
    """Where the keys are that are left when each of the others has taken the first equal one; all are below `room`."""
    if not len(keys) or not len(others):
        return np.arange(len(keys))
    if fits_table(room, len(keys)):
        return subtract_by_counts(keys, np.bincount(keys, minlength=room), np.bincount(others, minlength=room))
    met, theirs = _sieved(keys, others, room)
    if not len(met):
        return np.arange(len(keys))
    stays = np.ones(len(keys), bool)
    stays[met] = False
    stays[met[_left_by_order(keys[met], others[theirs])]] = True
    return np.flatnonzero(stays)


def _left_by_order(keys, others):
    """The same, in no order: of those that are equal the others stand first and then the keys; of these so many go."""
    both = np.concatenate([others, keys])
    order = stable_argsort(both)
    ordered = both.take(order)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    is_key = order >= len(others)
    sizes = np.diff(begins, append=len(both))
    behind = begins + 2 * (sizes - np.add.reduceat(is_key, begins, dtype=np.int64))
    return order[is_key & (np.arange(len(both)) >= np.repeat(behind, sizes))] - len(others)


def subtract_by_counts(keys, own, away):
    """The same where it is known of each key how many rows have it, and how many of them are taken away."""
    left = np.flatnonzero((own > away).take(keys))
    keys = keys.take(left)
    gone = away.take(keys)
    some = np.flatnonzero(gone > 0)
    if not len(some):
        return left
    # Of the rows of each of these keys the first ones go.
    keys = keys.take(some)
    order = stable_argsort(keys)
    ordered = keys.take(order)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    away = gone.take(some.take(order.take(begins)))
    stays = np.ones(len(left), bool)
    stays[some.take(order.take(expand_ranges(begins, away)))] = False
    return left[stays]


def _sieved(keys, others, room):
    """Where keys, and others, are that may have an equal one on the other side: all that have one, and a few more.

    Keys share a slot with those next to them: so what stands together, as the rows of a window do, is looked up together.
    """
    shift = max(0, room.bit_length() - (LOOSE * (len(keys) + len(others))).bit_length())
    slot, theirs, slots = keys >> shift, others >> shift, (room >> shift) + 1
    met = np.flatnonzero(_marked(theirs, slots).take(slot))
    return met, np.flatnonzero(_marked(slot[met], slots).take(theirs))


def _marked(slot, slots):
    marked = np.zeros(slots, bool)
    marked[slot] = True
    return marked
