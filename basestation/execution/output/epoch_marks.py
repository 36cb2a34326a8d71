"""Epoch marks: which epochs are news to a query: new ones, and those whose coverage differs from the last report (semantics 12.3).

The last report of each epoch is a row of numbers: its coverage of every extent below, in the order in which extents first occurred;
-1 if none was reported.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.execution.columns.change import NO_KEYS
from basestation.execution.columns.compact_arrays import ProgressionOrArray
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.dense_id_map import DenseCounts
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.interfaces import CoverageFlow
from basestation.execution.streams.coverage import count_coverage
from basestation.updates.update import CoverageColumns, EpochMarks, coverage_of

_NOT_REPORTED = -1
UNASSIGNED = 0
"""Stands for the query in updates that several queries share, until they are copied for each of them."""

NewMarks = tuple[EpochMarks, BoolArray]
"""Marks, and a mask of those that are of new epochs."""


class EpochReporter:
    """Reports the epochs of a stream to queries: from tick `start` on, and up to `limit` if there is one."""

    def __init__(self, stream: CoverageFlow, start: int, limit: int | None, seen: CoverageFlow | None = None) -> None:
        """`seen` is the stream as these queries see it, if it is not the one that takes the steps."""
        self._stream, self._seen, self._start = stream, seen or stream, start
        self._limit = NEVER if limit is None else limit
        self._began, self._tracker = False, EpochMarkTracker()

    def news(self) -> list[NewMarks]:
        """Return the marks of this step."""
        keys = self._stream.epochs() if self._began else self._stream.epochs_from(self._start)
        self._began = True
        if not len(keys):
            return []
        if keys[:, 0].min() < self._start or keys[:, 0].max() > self._limit:
            keys = keys[(self._start <= keys[:, 0]) & (keys[:, 0] <= self._limit)]
        if not len(keys):
            return []
        return [marks for marks in self._tracker.news(keys, self._seen.epoch_covers(keys)) if len(marks[0])]

    def forget(self, before: int) -> None:
        """Drop the reports of epochs before a tick."""
        self._tracker.forget(before)


class EpochMarkTracker:
    """Remembers the last report of each epoch."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}  # by extent, the column of its numbers
        self._start_with(NO_KEYS, np.empty((0, 0), np.int64))

    def _start_with(self, keys: IntArray, rows: IntArray) -> None:
        self._ticks, self._n = ProgressionOrArray(keys[:, 0]), ProgressionOrArray(keys[:, 1])
        self._dropped = 0  # epochs that were dropped
        self._columns = [_counts_of(column) for column in rows.T]

    def __len__(self) -> int:
        return len(self._ticks)

    @property
    def _rows(self) -> IntArray:
        """The last reports of all epochs that are held."""
        held = slice(self._dropped, self._dropped + len(self))
        columns = [column[held] for column in self._columns]
        return np.stack(columns, axis=1) if columns else np.empty((len(self), 0), np.int64)

    def _append(self, keys: IntArray, rows: IntArray) -> None:
        end = self._dropped + len(self)
        for column, values in zip(self._columns, rows.T, strict=True):
            column[slice(end, end + len(keys))] = values
        self._ticks.extend(keys[:, 0])
        self._n.extend(keys[:, 1])

    def news(self, keys: IntArray, pairs: Sequence[tuple[BoolArray, list[CoverageRanges]]]) -> Iterator[NewMarks]:
        """Yield marks of epochs that cover the same extents, in the order of `keys`, which has shape (epochs, 2).

        `pairs` has for each part of the stream a mask of the keys that are its epochs, and the coverage of these.
        """
        covered = count_coverage([cover for _, covers in pairs for cover in covers], len(keys))
        parts = np.stack([ours for ours, _ in pairs], axis=1) if pairs else np.zeros((len(keys), 0), bool)
        edges = np.flatnonzero((parts[1:] != parts[:-1]).any(axis=1)) + 1
        for begin, end in pairwise([0, *edges.tolist(), len(keys)]):
            which, ours = slice(begin, end), parts[begin]
            if ours.any():
                names = {cover.extent for (_, covers), our in zip(pairs, ours, strict=True) if our for cover in covers}
                yield self._marks(keys, which, {name: covered[name] for name in sorted(names)})

    def _marks(self, keys: IntArray, which: slice, covered: CoverageColumns) -> NewMarks:
        rows = self._rows_of(which, covered)
        news, new = self._compare(keys[which], rows)
        if news.all():
            return EpochMarks(UNASSIGNED, keys[which, 0], coverage_of(covered, which)), new
        changed = which.start + np.flatnonzero(news)
        return EpochMarks(UNASSIGNED, keys[changed, 0], coverage_of(covered, changed)), new[news]

    def _rows_of(self, which: slice, covered: CoverageColumns) -> IntArray:
        """Return coverage as rows of numbers; add columns for new extents."""
        for name, of in covered.items():
            if of and name not in self._places:
                self._places[name] = 2 * len(self._places)
                none = np.full(len(self), _NOT_REPORTED)
                self._columns += [_counts_of(none, self._dropped), _counts_of(none, self._dropped)]
        rows = np.full((which.stop - which.start, 2 * len(self._places)), _NOT_REPORTED)
        for name, of in covered.items():
            if of:
                place = self._places[name]
                rows[:, place], rows[:, place + 1] = of[0][which], of[1][which]
        return rows

    def _compare(self, keys: IntArray, rows: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return masks of the epochs that are news, and of those that are new; remember the rows. All keys differ."""
        last = slice(max(0, len(self) - 1), len(self))
        if _is_ascending(keys) and (not len(self) or (self._ticks[last][0], self._n[last][0]) < tuple(keys[0])):
            self._append(keys, rows)
            new = np.ones(len(keys), bool)
            return new, new
        known = len(self)
        both = np.concatenate([np.stack([self._ticks.values, self._n.values], axis=1), keys])
        all_rows = np.concatenate([self._rows, rows])
        order = np.lexsort((both[:, 1], both[:, 0]))  # of equal keys the known one comes first
        again = (both[order[1:]] == both[order[:-1]]).all(axis=1)
        news, new = np.ones(len(keys), bool), np.ones(len(keys), bool)
        now, before = order[1:][again] - known, order[:-1][again]
        new[now], news[now] = False, (rows[now] != all_rows[before]).any(axis=1)
        left = order[~np.append(again, False)]
        self._start_with(both[left], all_rows[left])
        return news, new

    def forget(self, before: int) -> None:
        """Drop the reports of epochs before a tick."""
        count = int(np.searchsorted(self._ticks.values, before))
        self._dropped += count
        self._ticks.drop(count)
        self._n.drop(count)
        for column in self._columns:
            column.drop_before(self._dropped)


def _counts_of(values: IntArray, first: int = 0) -> DenseCounts:
    """Counts by the number of an epoch, from number `first` on."""
    counts = DenseCounts()
    counts.drop_before(first)
    counts[slice(first, first + len(values))] = values
    return counts


def _is_ascending(keys: IntArray) -> bool:
    a, b = keys[:-1], keys[1:]
    later = a[:, 0] < b[:, 0]
    return bool(later.all() or (later | ((a[:, 0] == b[:, 0]) & (a[:, 1] < b[:, 1]))).all())
