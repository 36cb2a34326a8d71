"""Combining: which windows of several sequences stand together (SEMANTICS 4), many ticks at once."""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import constant
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.window_batch import expand_ranges

_NONE, _ONE = np.empty(0, np.int64), np.ones(1, np.int64)


@dataclass(frozen=True, slots=True)
class WindowSequence:
    """New windows of one sequence, by tick, and their numbers."""

    tick: np.ndarray
    number: np.ndarray

    def __len__(self):
        return len(self.tick)

    def take(self, which):
        return WindowSequence(self.tick[which], self.number[which])


NO_SEQUENCE = WindowSequence(_NONE, _NONE)


def combine_recent(new, recent):
    """(ticks, n, numbers with a column for each sequence) of what new windows make.

    At each tick where a sequence has a window, all combinations of everybody's most recent, the first sequence slowest;
    `recent` has the numbers of those from before.
    """
    starts = [_starts(of) for of in new]
    own = [of.tick if len(begins) == len(of) else of.tick.take(begins) for of, begins in zip(new, starts, strict=True)]
    ticks, upto = _united(own)
    # Nothing stands together before each of them has a window.
    begin = max(
        (int(np.searchsorted(of, 1)) for of, known in zip(upto, recent, strict=True) if not len(known)), default=0
    )
    ticks, upto = ticks[begin:], [of[begin:] for of in upto]
    groups = [_groups(*each) for each in zip(new, recent, starts, upto, strict=True)]
    if all((count == 1).all() for _, _, count in groups):
        numbers = np.array([candidates.take(first) for candidates, first, _ in groups])
        return ticks, constant(1, len(ticks)), numbers.T  # what is asked for is a column, mostly
    groups = [(candidates, first, np.broadcast_to(count, ticks.shape)) for candidates, first, count in groups]
    total = np.prod([count for _, _, count in groups], axis=0)
    row = np.repeat(np.arange(len(ticks)), total)
    n = expand_ranges(np.zeros(len(ticks), np.int64), total)
    numbers, rest = np.empty((len(row), len(new)), np.int64), n
    for place in reversed(range(len(new))):
        candidates, first, count = groups[place]
        rest, digit = np.divmod(rest, count[row])
        numbers[:, place] = candidates[first[row] + digit]
    return ticks[row], n + 1, numbers


def _starts(of):
    """Where each of its ticks begins."""
    if (of.tick[1:] > of.tick[:-1]).all():
        return np.arange(len(of))
    return np.flatnonzero(np.concatenate([[True], of.tick[1:] != of.tick[:-1]]))


def _united(sequences):
    """(all ticks of sequences of ascending ticks; for each sequence how many of its ticks lie at or before each of these).

    The ticks of the others are put between those of the longest, which are not looked at one by one.
    """
    longest = max(range(len(sequences)), key=lambda i: len(sequences[i]))
    long = sequences[longest]
    others = distinct(np.concatenate([_NONE, *(of for i, of in enumerate(sequences) if i != longest)]))
    place = np.searchsorted(long, others)
    new = long.take(np.minimum(place, len(long) - 1)) != others
    behind = np.cumsum(new)
    at = place + behind - new  # where they stand among all
    count = len(long) + np.count_nonzero(new)
    ticks, own = long, np.arange(1, count + 1)
    if count > len(long):
        own -= _upto(at[new], count)
        ticks = long.take(own - 1)
        ticks[at] = others
    upto = [own] * len(sequences)
    for i, of in enumerate(sequences):
        if i != longest:
            upto[i] = _upto(at if len(of) == len(others) else at[np.searchsorted(others, of)], count)
    return ticks, upto


def _upto(at, count):
    """How many of some ascending places lie at or before each of so many."""
    return np.repeat(np.arange(len(at) + 1), np.diff(at, prepend=0, append=count))


def _groups(of, recent, starts, upto):
    """(numbers, and for each tick where among them those of the most recent tick begin, and how many they are)."""
    if len(starts) == len(of) and len(recent) < 2:  # one at each tick
        return np.concatenate([recent, of.number]), upto if len(recent) else upto - 1, _ONE
    first = np.concatenate([[0], len(recent) + starts])
    count = np.diff(np.concatenate([first, [len(recent) + len(of)]]))
    return np.concatenate([recent, of.number]), first[upto], count[upto]


class WindowProduct:
    """The windows of several inputs that stand together, of which some may come after later ones of others (11).

    Up to a certain tick all inputs have given all their windows. What stands together behind it is found again in each
    step: a window that comes late makes others, and takes the place of older ones in those that are there.
    """

    def __init__(self, width):
        self._recent = [_NONE] * width  # the numbers of each input's windows of the most recent certain tick
        self._open = [NO_SEQUENCE] * width  # those behind it

    def stands(self, new, certain):
        """(ticks, n, numbers) of all that stands together behind what was certain before."""
        given = [_followed(open, more) for open, more in zip(self._open, new, strict=True)]
        if not any(len(of) for of in given):
            return _NONE, _NONE, np.empty((0, len(new)), np.int64)
        found = combine_recent(given, self._recent)
        for place, of in enumerate(given):
            past = int(np.searchsorted(of.tick, certain, "right"))
            self._open[place] = of.take(slice(past, None)) if past < len(of) else NO_SEQUENCE
            if past:  # copied: it would hold on to the numbers of all
                self._recent[place] = of.number[np.searchsorted(of.tick, of.tick[past - 1]) : past].copy()
        return found

    def coming(self, place):
        """The numbers of the windows of one input that may stand in combinations to come."""
        return np.concatenate([self._recent[place], self._open[place].number])


def _followed(a, b):
    if not len(a):
        return b
    return WindowSequence(np.concatenate([a.tick, b.tick]), np.concatenate([a.number, b.number]))
