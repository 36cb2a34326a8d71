"""Window product: which windows of several sequences are combined (semantics 4), for many ticks at once."""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import Selection, constant
from basestation.execution.columns.integer_arrays import distinct
from basestation.execution.columns.window_batch import expand_ranges

_NONE, _ONE = np.empty(0, np.int64), np.ones(1, np.int64)


@dataclass(frozen=True, slots=True)
class WindowSequence:
    """New windows of one sequence: their ticks, ascending, and their numbers."""

    tick: IntArray
    number: IntArray

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: Selection) -> "WindowSequence":
        return WindowSequence(self.tick[which], self.number[which])


NO_SEQUENCE = WindowSequence(_NONE, _NONE)


def combine_recent(new: list[WindowSequence], recent: list[IntArray]) -> tuple[IntArray, IntArray, IntArray]:
    """(ticks, n, numbers with a column for each sequence) of the combinations that new windows make.

    At each tick with a new window: all combinations of the most recent windows of all sequences, the first sequence slowest.
    `recent[i]` has the numbers of the most recent windows of sequence i from before.
    """
    starts = [_find_starts(of) for of in new]
    ticks_of = [
        of.tick if len(begins) == len(of) else of.tick.take(begins) for of, begins in zip(new, starts, strict=True)
    ]
    ticks, upto = _merge_ticks(ticks_of)
    # There is no combination before each sequence has a window.
    begin = max(
        (int(np.searchsorted(of, 1)) for of, earlier in zip(upto, recent, strict=True) if not len(earlier)), default=0
    )
    ticks, upto = ticks[begin:], [of[begin:] for of in upto]
    groups = [_find_recent(*each) for each in zip(new, recent, starts, upto, strict=True)]
    if all((count == 1).all() for _, _, count in groups):
        numbers = np.array([candidates.take(first) for candidates, first, _ in groups])
        return ticks, constant(1, len(ticks)), numbers.T  # in memory a sequence is one piece: columns are read mostly
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


def _find_starts(of: WindowSequence) -> IntArray:
    """The positions at which the ticks of a sequence begin."""
    if (of.tick[1:] > of.tick[:-1]).all():
        return np.arange(len(of))
    return np.flatnonzero(np.concatenate([[True], of.tick[1:] != of.tick[:-1]]))


def _merge_ticks(sequences: list[IntArray]) -> tuple[IntArray, list[IntArray]]:
    """(all ticks of sequences of ascending ticks; for each sequence the number of its ticks at or before each of these).

    The ticks of shorter sequences are inserted between those of the longest, which are not searched one by one.
    """
    longest = max(range(len(sequences)), key=lambda i: len(sequences[i]))
    long = sequences[longest]
    others = distinct(np.concatenate([_NONE, *(of for i, of in enumerate(sequences) if i != longest)]))
    place = np.searchsorted(long, others)
    new = long.take(np.minimum(place, len(long) - 1)) != others
    inserted = np.cumsum(new)
    at = place + inserted - new  # where they stand among all
    count = len(long) + int(np.count_nonzero(new))
    ticks, upto_long = long, np.arange(1, count + 1)
    if count > len(long):
        upto_long -= _count_upto(at[new], count)
        ticks = long.take(upto_long - 1)
        ticks[at] = others
    upto = [upto_long] * len(sequences)
    for i, of in enumerate(sequences):
        if i != longest:
            upto[i] = _count_upto(at if len(of) == len(others) else at[np.searchsorted(others, of)], count)
    return ticks, upto


def _count_upto(at: IntArray, count: int) -> IntArray:
    """For each of `count` positions, how many of some ascending positions are at or before it."""
    return np.repeat(np.arange(len(at) + 1), np.diff(at, prepend=0, append=count))


def _find_recent(
    of: WindowSequence, recent: IntArray, starts: IntArray, upto: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """(numbers; for each tick, where the windows of the most recent tick begin among them; how many there are)."""
    if len(starts) == len(of) and len(recent) < 2:  # one at each tick
        return np.concatenate([recent, of.number]), upto if len(recent) else upto - 1, _ONE
    first = np.concatenate([[0], len(recent) + starts])
    count = np.diff(np.concatenate([first, [len(recent) + len(of)]]))
    return np.concatenate([recent, of.number]), first[upto], count[upto]


class WindowProduct:
    """Combinations of the windows of several inputs, of which some may come after later ones of others (11).

    Up to the certain tick all inputs have given all windows. Combinations behind it are computed again in each step: a late
    window makes new ones and takes the place of an older window in others.
    """

    def __init__(self, width: int) -> None:
        self._recent = [_NONE] * width  # by input: the numbers of its windows of the most recent certain tick
        self._open = [NO_SEQUENCE] * width  # by input: its windows behind the certain tick

    def combine(self, new: list[WindowSequence], certain: int) -> tuple[IntArray, IntArray, IntArray]:
        """(ticks, n, numbers) of all combinations behind the tick that was certain before."""
        sequences = [_append(open, more) for open, more in zip(self._open, new, strict=True)]
        if not any(len(of) for of in sequences):
            return _NONE, _NONE, np.empty((0, len(new)), np.int64)
        combined = combine_recent(sequences, self._recent)
        for place, of in enumerate(sequences):
            past = int(np.searchsorted(of.tick, certain, "right"))
            self._open[place] = of.take(slice(past, None)) if past < len(of) else NO_SEQUENCE
            if past:  # copied: a view keeps the whole array
                self._recent[place] = of.number[np.searchsorted(of.tick, of.tick[past - 1]) : past].copy()
        return combined

    def open_numbers(self, place: int) -> IntArray:
        """The numbers of the windows of one input that later combinations may have."""
        return np.concatenate([self._recent[place], self._open[place].number])


def _append(a: WindowSequence, b: WindowSequence) -> WindowSequence:
    if not len(a):
        return b
    return WindowSequence(np.concatenate([a.tick, b.tick]), np.concatenate([a.number, b.number]))
