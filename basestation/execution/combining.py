"""Combining: which windows of several sequences stand together (SEMANTICS 4), many ticks at once."""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import constant
from basestation.execution.distinct import distinct
from basestation.execution.wins import ranges

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class Sequence:
    """New windows of one sequence, by tick, and their numbers."""

    tick: np.ndarray
    number: np.ndarray

    def __len__(self):
        return len(self.tick)

    def take(self, which):
        return Sequence(self.tick[which], self.number[which])


NOTHING = Sequence(_NONE, _NONE)


def combinations(new, recent):
    """(ticks, n, numbers with a column for each sequence) of what new windows make.

    At each tick where a sequence has a window, all combinations of everybody's most recent, the first sequence slowest;
    `recent` has the numbers of those from before.
    """
    ticks = distinct(np.concatenate([of.tick for of in new]))
    groups = [_groups(of, before, ticks) for of, before in zip(new, recent, strict=True)]
    if all((count == 1).all() for _, _, count in groups):
        numbers = np.stack([candidates[first] for candidates, first, _ in groups], axis=1)
        return ticks, constant(1, len(ticks)), numbers
    total = np.prod([count for _, _, count in groups], axis=0)
    row = np.repeat(np.arange(len(ticks)), total)
    n = ranges(np.zeros(len(ticks), np.int64), total)
    numbers, rest = np.empty((len(row), len(new)), np.int64), n
    for place in reversed(range(len(new))):
        candidates, first, count = groups[place]
        rest, digit = np.divmod(rest, count[row])
        numbers[:, place] = candidates[first[row] + digit]
    return ticks[row], n + 1, numbers


def _groups(of, before, ticks):
    """(numbers, and for each tick where among them those of the most recent tick begin, and how many they are)."""
    starts = np.flatnonzero(np.concatenate([[True], of.tick[1:] != of.tick[:-1]])) if len(of) else _NONE
    first = np.concatenate([[0], len(before) + starts])
    count = np.diff(np.concatenate([first, [len(before) + len(of)]]))
    begun = np.zeros(len(ticks), np.int64)
    begun[np.searchsorted(ticks, of.tick[starts])] = 1
    at = np.cumsum(begun)
    return np.concatenate([before, of.number]), first[at], count[at]


class Product:
    """The windows of several inputs that stand together, of which some may come after later ones of others (11).

    Up to a certain tick all inputs have given all their windows. What stands together behind it is found again in each
    step: a window that comes late makes others, and takes the place of older ones in those that are there.
    """

    def __init__(self, width):
        self._recent = [_NONE] * width  # the numbers of each input's windows of the most recent certain tick
        self._open = [NOTHING] * width  # those behind it

    def stands(self, new, certain):
        """(ticks, n, numbers) of all that stands together behind what was certain before."""
        given = [_followed(open, more) for open, more in zip(self._open, new, strict=True)]
        if not any(len(of) for of in given):
            return _NONE, _NONE, np.empty((0, len(new)), np.int64)
        found = combinations(given, self._recent)
        for place, of in enumerate(given):
            past = int(np.searchsorted(of.tick, certain, "right"))
            self._open[place] = of.take(slice(past, None))
            if past:
                self._recent[place] = of.number[np.searchsorted(of.tick, of.tick[past - 1]) : past]
        return found

    def coming(self, place):
        """The numbers of the windows of one input that may stand in combinations to come."""
        return np.concatenate([self._recent[place], self._open[place].number])


def _followed(a, b):
    if not len(a):
        return b
    return Sequence(np.concatenate([a.tick, b.tick]), np.concatenate([a.number, b.number]))
