"""Past choice: past windows of a query for which the archive has readings and partials; each is answered by those that cover more.

Motes send the readings of a tick one by one or merge them, by the queries of that time. So two engines answer the same windows, one by
readings and one by partials, and the first answer of each window waits until both have one. Where late readings or partials let the other one cover more, its
answer revises the first.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch
from acquisition.extent import Catalog
from acquisition.ticks import grid_at_or_after
from basestation.execution.columns.tuples import concatenate_vectors
from basestation.execution.counters import OperatorShare
from basestation.execution.ingest.coalesce import ExtentKey
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.execution.past_windows import PastRange, PastWindows, Tables, Timer
from basestation.execution.slices.partial_slices import narrow_state
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from basestation.updates.update import QueryFailure, Rows, Update, WindowUpdates
from innet.operators.fold import Fold
from innet.placement.fold_sharing import find_state, has_all_states

Window = tuple[int, int]
"""The tick and the number of a window."""
Entry = tuple[WindowUpdates, int, int]
"""An update of a window: its batch, its position there, and the readings that it covers."""


class PartialWindows(PastWindows):
    """The engine that answers past windows by partials. Of each slice it takes those of one fold: other folds have the same readings."""

    def __init__(
        self,
        number: int,
        plan: Plan,
        past: PastRange,
        catalog: Catalog,
        tables: Tables,
        source: PartialSource,
        partials: PartialBatch,
        folds: IntArray,
        slices: int,
        first_due: Mapping[str, int],
        timer: Timer,
    ) -> None:
        """`folds` are the numbers of the folds in frames, of each of the partials; `source` has a number of its own."""
        self._source = source
        newest = int(folds[partials.slice.argmax()])
        others = partials.slice[folds != newest]
        self._fold, self._from = newest, int(others.max()) + 1 if len(others) else 0
        recalled: dict[ExtentKey, PartialBatch] = {source.number: partials}
        super().__init__(number, plan, past, catalog, tables, recalled, slices, first_due, timer, [source])

    def deliver_partials(self, number: int, fold: Fold, partials: PartialBatch) -> None:
        """Take those partials of a fold, with its number in frames, that belong to these windows and to no slice of another fold."""
        wanted = self._source.fold
        if number != self._fold or not has_all_states(fold, wanted):
            return
        last = grid_at_or_after(wanted.slices.begin(partials.slice + 1), wanted.interval) - wanted.interval
        found = partials.take((last < self._past.seam) & (partials.slice >= self._from))
        if not len(found):
            return
        states = (narrow_state(kind, found.states[find_state(fold, (kind, value))]) for kind, value in wanted.states)
        found = PartialBatch(
            found.arrival, found.slice, found.bare, found.first, found.readings, found.keys, wanted.kinds, tuple(states)
        )
        if self.is_complete:
            self._engine.deliver(self._source.number, found)
        else:
            self._later.append((self._source.number, found))


class PastChoice(PastWindows):
    """The engine by readings, with the other one beside it."""

    def __init__(
        self,
        merged: PartialWindows,
        number: int,
        plan: Plan,
        past: PastRange,
        catalog: Catalog,
        tables: Tables,
        recalled: Mapping[str, Batch],
        slices: int,
        first_due: Mapping[str, int],
        timer: Timer,
        reads: Mapping[str, tuple[str, ...]],
    ) -> None:
        """`reads` is as for `Engine.add`, and holds for `recalled` already."""
        super().__init__(number, plan, past, catalog, tables, recalled, slices, first_due, timer, reads=reads)
        self._merged = merged
        self._horizon = max(extent.horizon or 0 for extent in past.extents)
        self._answers: dict[Window, tuple[list[Entry], list[Entry]]] = {}
        """By readings and by partials, of windows without an answer and of those that may be revised."""
        self._decided: Window = (-1, 0)
        """Up to this one windows have an answer."""
        self._by_partials = set[Window]()
        self._revisions: dict[Window, int] = {}
        """The last revision of windows whose answer has changed sides: those of the engines are others."""

    def advance(self) -> list[Update]:
        return self._choose(super().advance(), self._merged.advance())

    def answer(self, clock: int) -> list[Update]:
        updates = self._choose(super().answer(clock), self._merged.answer(clock))
        settled = min(self._decided, (clock - self._horizon, 0))  # nothing that comes belongs to an earlier window
        self._answers = {window: each for window, each in self._answers.items() if window >= settled}
        return updates

    def deliver_partials(self, number: int, fold: Fold, partials: PartialBatch) -> None:
        """Take those partials of a fold, with its number in frames, that belong to these windows."""
        self._merged.deliver_partials(number, fold, partials)

    @property
    def share(self) -> OperatorShare:
        return super().share + self._merged.share

    @property
    def is_settled(self) -> bool:
        return super().is_settled and self._merged.is_settled

    def _choose(self, by_readings: Sequence[Update], by_partials: Sequence[Update]) -> list[Update]:
        """The updates of the windows that both have answered: of first answers in the order of windows, and of those that count."""
        failures = [each for each in (*by_readings, *by_partials) if isinstance(each, QueryFailure)]
        if failures:
            return [*failures[:1]]
        revised: dict[Window, tuple[list[Entry], list[Entry]]] = {}
        for side, updates in enumerate((by_readings, by_partials)):
            for batch in updates:
                if not isinstance(batch, WindowUpdates):
                    raise TypeError(f"expected windows, found {type(batch).__name__}")
                for window, entry in _entries(batch):
                    of = self._answers if window > self._decided else revised
                    of.setdefault(window, ([], []))[side].append(entry)
        found = [entry for window, entries in revised.items() for entry in self._revise(window, entries)]
        for window in sorted(window for window in self._answers if window > self._decided):
            readings, partials = self._answers[window]
            if not readings or not partials:
                break
            is_merged = partials[-1][2] >= readings[-1][2]
            if is_merged:
                self._by_partials.add(window)
            found += partials if is_merged else readings
            self._decided = window
        return list(_join(found))

    def _revise(self, window: Window, revised: tuple[list[Entry], list[Entry]]) -> Iterator[Entry]:
        """The updates of a window that has an answer. Where the other side covers more now, its answer takes the place of this one."""
        side = int(window in self._by_partials)
        held = self._answers.get(window)
        if held is None:
            yield from revised[side]
            return
        before = [*held[side]]
        for known, new in zip(held, revised, strict=True):
            known += new
        if held[1 - side][-1][2] <= held[side][-1][2]:
            yield from self._renumber(window, revised[side])
            return
        self._revisions.setdefault(window, int(before[-1][0].revision[before[-1][1]]))
        self._by_partials ^= {window}
        yield from self._renumber(window, [_replace(before, held[1 - side])])

    def _renumber(self, window: Window, entries: Sequence[Entry]) -> Iterator[Entry]:
        for batch, at, used in entries:
            if window not in self._revisions:
                yield batch, at, used
                continue
            self._revisions[window] += 1
            yield replace(batch.take(slice(at, at + 1)), revision=np.array([self._revisions[window]])), 0, used


def _entries(batch: WindowUpdates) -> Iterator[tuple[Window, Entry]]:
    covered = [columns[0] for columns in batch.coverage.values() if columns is not None]
    used = np.sum(covered, axis=0) if covered else np.zeros(len(batch), np.int64)
    for at, (tick, n, readings) in enumerate(zip(batch.tick.tolist(), batch.n.tolist(), used.tolist(), strict=True)):
        yield (tick, n), (batch, at, readings)


def _replace(before: Sequence[Entry], after: Sequence[Entry]) -> Entry:
    """An update from the rows of some updates of a window to those of others."""
    removed, added = _current(before), _current(after)
    batch, at, used = after[-1]
    last = batch.take(slice(at, at + 1))
    ends = np.array([0, len(added)]), np.array([0, len(removed)])
    return replace(last, added=added, added_offsets=ends[0], removed=removed, removed_offsets=ends[1]), 0, used


def _current(entries: Sequence[Entry]) -> Rows:
    """The rows of a window after its updates."""
    updates = [next(iter(batch.take(slice(at, at + 1)))) for batch, at, _ in entries]
    columns = zip(*(update.added.columns for update in updates), strict=True)
    whole = Rows(tuple(concatenate_vectors(of) for of in columns), sum(len(update.added) for update in updates))
    gone = Counter(row for update in updates for row in update.removed.to_lists())
    kept = []
    for at, row in enumerate(whole.to_lists()):
        if gone[row]:
            gone[row] -= 1
        else:
            kept.append(at)
    return whole.take(np.array(kept, np.int64))


def _join(entries: Iterable[Entry]) -> Iterator[WindowUpdates]:
    """The updates in their order, as batches: those that stand side by side in one batch stay together."""
    last: WindowUpdates | None = None
    begin = end = 0
    for batch, at, _ in entries:
        if batch is last and at == end:
            end += 1
            continue
        if last is not None:
            yield last.take(slice(begin, end))
        last, begin, end = batch, at, at + 1
    if last is not None:
        yield last.take(slice(begin, end))
