"""Frame: the tuples of several windows at once, as columns.

`window` says for each tuple which of the windows it is in, by their numbers 0, 1, …; tuples of one window stand together,
in their order. `tick` and `second` are what FIRST and LAST go by (10.5); they are there only where the tuples come
straight from one stream.
"""

from dataclasses import dataclass, replace

import numpy as np

from basestation.algebra.evaluation import Evaluation
from basestation.algebra.vector import Vector, by_identity
from basestation.execution.distinct import stable_order
from basestation.execution.wins import ranges


@dataclass(frozen=True, slots=True)
class Frame:
    windows: int  # how many windows there are, empty ones too
    window: np.ndarray
    columns: dict[int, Vector]
    tick: np.ndarray | None = None
    second: np.ndarray | None = None

    def __len__(self):
        return len(self.window)

    def take(self, which):
        order = () if self.tick is None else (self.tick[which], self.second[which])
        return Frame(self.windows, self.window[which], {id: v.take(which) for id, v in self.columns.items()}, *order)

    def with_columns(self, columns):
        return replace(self, columns=columns)

    @property
    def evaluation(self):
        return Evaluation(self.columns, len(self))

    def bounds(self):
        """Where each window begins and ends."""
        found = np.zeros(self.windows + 1, np.int64)
        np.cumsum(np.bincount(self.window, minlength=self.windows), out=found[1:])
        return found


def codes(vectors, length):
    """A number for each row, equal where all values are equal, null with null (5.7, 6.1); and how many there can be."""
    code, count = np.zeros(length, np.int64), 1
    for vector in vectors:
        more, size = _numbered(vector.values)
        if vector.valid is not None:
            more, size = np.where(vector.valid, more + 1, 0), size + 1
        code, count = (code * size + more, count * size) if count > 1 else (more, size)
        if count > _LOOSE * length + _SMALL:
            _, code = np.unique(code, return_inverse=True)
            count = int(code.max(initial=-1)) + 1
    return code, max(count, 1)


_LOOSE, _SMALL = 4, 1024  # so many numbers for each row, and some more, are fewer than it costs to sort rows


def _numbered(values):
    """A number for each value, equal where they are, and how many there can be."""
    if values.dtype == object:
        numbers = {}
        some, place = by_identity(values)
        code = np.array([numbers.setdefault(value, len(numbers)) for value in some], np.int64)
        return code[place], max(1, len(numbers))
    if values.dtype == np.int64 and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _LOOSE * len(values) + _SMALL:
            return values - low, high - low + 1
    found, code = np.unique(values, return_inverse=True)
    return code, max(1, len(found))


def occurrence(keys):
    """For each row how many equal keys stand before it."""
    order = stable_order(keys)
    ordered = keys[order]
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])) if len(keys) else keys
    lengths = np.diff(np.concatenate([begins, [len(keys)]])) if len(keys) else keys
    out = np.empty(len(keys), np.int64)
    out[order] = np.arange(len(keys)) - np.repeat(begins, lengths)
    return out


def difference(left, right):
    """Masks (of left, of right): what is in left and not in right, and the other way round, as bags, window by window.

    Each right tuple removes the first equal left one, and the other way round, as `\\` does (6.1, 6.4).
    """
    mine, theirs, room = _keys(left, right)
    return _left_of(mine, theirs, room), _left_of(theirs, mine, room)


def beyond(left, right):
    """What is in left and not in right: the first of the masks."""
    return _left_of(*_keys(left, right))


def among(frame, mine, theirs):
    """What some windows of a Frame have that others of it have not, in order: a window for each pair of their numbers."""
    code, count = codes(list(frame.columns.values()), len(frame))
    many = _counted(frame.window * count + code, frame.windows * count)
    bounds = frame.bounds()
    sizes = (bounds[1:] - bounds[:-1])[mine]
    rows = ranges(bounds[mine], sizes)
    code = code[rows]
    own, others, keys = (np.repeat(of * count, sizes) + code for of in (mine, theirs, np.arange(len(mine))))
    left = _left(keys, many(others), many(own))
    columns = {id: vector.take(rows[left]) for id, vector in frame.columns.items()}
    return Frame(len(mine), keys[left] // count, columns)


def _keys(left, right):
    """Numbers of the rows of both, equal where window and values are, and how many there can be."""
    if not len(left) or not len(right):  # nothing is removed
        return np.zeros(len(left), np.int64), np.zeros(len(right), np.int64), 1
    both = [
        _stacked(left.columns[id], right.columns[other]) for id, other in zip(left.columns, right.columns, strict=True)
    ]
    window = np.concatenate([left.window, right.window])
    code, count = codes(both, len(window))
    keys = window * count + code
    return keys[: len(left)], keys[len(left) :], left.windows * count


def _stacked(a, b):
    values = np.concatenate([a.values, b.values])
    return Vector(values, None if a.valid is None and b.valid is None else np.concatenate([a.there, b.there]))


def _left_of(keys, others, room):
    """Which keys are left when each of the others has removed the first equal one."""
    removed = _counted(others, room)(keys)
    return _left(keys, removed, removed + 1)  # how many there are of their own nobody knows


def _counted(keys, room):
    """A function that says how often keys are here; all are below `room`."""
    if room <= _LOOSE * len(keys) + _SMALL:
        table = np.bincount(keys, minlength=room)
        return lambda wanted: table[wanted]
    found, counts = np.unique(keys, return_counts=True)
    if not len(found):
        return lambda wanted: np.zeros(len(wanted), np.int64)

    def looked_up(wanted):
        at = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
        return np.where(found[at] == wanted, counts[at], 0)

    return looked_up


def _left(keys, removed, own):
    """Which keys are left when so many equal ones, the first, are removed; there are `own` of them, or more."""
    left = removed < own
    some = np.flatnonzero(left & (removed > 0))
    left[some] = occurrence(keys[some]) >= removed[some]
    return left
