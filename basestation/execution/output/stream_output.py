"""StreamOutput: emits the tuples of a stream as they enter it, and the marks of its epochs (semantics 12.1, 12.3)."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column
from basestation.execution.columns.change import NO_TICKS, Change
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.punctuation import PendingPunctuation, Punctuation, count_before
from basestation.execution.columns.tuples import Tuples, null_safe_equal
from basestation.execution.columns.watermark_buffer import WatermarkBuffer
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import QueryGroup, StreamSource
from basestation.execution.output.epoch_marks import EpochReporter, NewMarks
from basestation.execution.output.tuple_output import TupleOutput
from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    PunctuationUpdate,
    TupleUpdates,
    Update,
    coverage_of,
)


class StreamOutput(TupleOutput):
    """An Output: the tuples of a stream as they enter it, and the marks of its epochs. Only equal queries share it."""

    def __init__(
        self,
        stream: StreamSource,
        columns: Sequence[Column],
        limit: int | None,
        start: int,
        since: int | None,
        keys: int,
    ) -> None:
        """Tuples that entered before the query are not in its answer (semantics 1.1).

        `since` is the tick of SINCE: then tuples with an earlier arrival are not (semantics 10.7). Epochs are reported from `start` to
        `limit`. For `keys` ticks a reading may still come that changes the report of its epoch.
        """
        super().__init__(stream.level)
        self._keys = keys
        self.numbers: list[int] = []
        self.output_group: QueryGroup | None = None
        self.stream, self._columns = stream, columns
        self._marks = PendingPunctuation()
        self._shared: list[TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate] = []  # of the last step
        self._needed = NEVER
        self._arrivals = WatermarkBuffer()
        self._since = -NEVER if since is None else since
        self._given = DenseIdMap(bool)  # by tuple number, whether it was emitted
        self._epochs = EpochReporter(stream, start, limit)
        known = stream.all()
        ours = known.inserted.arrival > known.watermark if since is None else known.inserted.arrival >= since
        self._arrivals.apply(known.inserted, ours, known.removed)

    def __getstate__(self) -> dict[str, Any]:
        """Without the updates of the last step, which the engine has returned."""
        return vars(self) | {"_shared": []}

    def describe(self) -> OperatorDescription:
        return OperatorDescription(self.title, "and epoch marks, in order of entry")

    @property
    def next_due(self) -> NextDue:
        """When the output may emit an update next."""
        return DUE_NOW if self._marks or self._arrivals.first is not None else self.stream.next_due

    @property
    def output(self) -> "StreamOutput":
        """The output itself, which is its own only member."""
        return self

    def enter(self, query: int) -> None:
        """Add a query."""
        self.numbers.append(query)

    def leave(self, query: int) -> None:
        """Remove a query."""
        self.numbers.remove(query)

    @property
    def updates(self) -> list[Update]:
        """The updates of the last step, query by query."""
        return [replace(update, query=query) for query in self.numbers for update in self._shared]

    def step(self, clock: int) -> None:
        """Emit corrections, and the tuples and marks that enter."""
        change = self.stream.change
        back, again = self._find_corrected(change)
        self._given[back.ident] = False
        is_ours = change.is_new & (change.inserted.arrival >= self._since)
        self._arrivals.apply(change.inserted, is_ours, change.removed)
        entering = self._arrivals.ready(change.watermark)
        entering = back.take(NO_TICKS) if entering is None else entering
        for tuples, weight in ((back, -1), (again, 1), (entering, 1)):
            self._given[tuples.ident] = weight == 1
        corrected = [
            self._make_updates(tuples, self.stream.index_of(tuples.ident), weight)
            for tuples, weight in ((back, -1), (again, 1))
            if len(tuples)
        ]
        entered = self._make_updates(entering, self.stream.index_of(entering.ident), 1)
        marks = self._marks.ready(change.marks, change.watermark)
        self._shared = [
            *corrected,
            *interleave_marks(entering, entered, self._epochs.news(), marks),
        ]
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        self.counts.rows_out += len(back) + len(again) + len(entering)

    def _find_corrected(self, change: Change) -> tuple[Tuples, Tuples]:
        """Return (tuples to take back, tuples to give again), without those whose shown columns did not change."""
        if not len(change.removed):
            return change.removed, change.removed
        back = change.removed.take(self._given[change.removed.ident])
        again = change.inserted.take(np.isin(change.inserted.ident, back.ident) & ~change.is_new)
        if not len(again):
            return back, again
        back, again = back.take(np.argsort(back.ident)), again.take(np.argsort(again.ident))
        old = back.take(np.isin(back.ident, again.ident))
        same = np.ones(len(again), bool)
        for column in self._columns:
            same &= null_safe_equal(old.columns[column.id], again.columns[column.id])
        alike = again.ident[same]
        return back.take(~np.isin(back.ident, alike)), again.take(~same)

    def tidy(self) -> None:
        """Drop what no correction can name."""
        before, self._needed = self._needed, NEVER
        self.stream.need(before)
        self._given.drop_before(self.stream.first)
        # A late reading changes the report of its epoch even if no window is corrected.
        self._epochs.forget(before - self._keys)


def interleave_marks(
    entering: Tuples, updates: TupleUpdates, epochs: Sequence[NewMarks], marks: Sequence[Punctuation]
) -> Iterator[TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate]:
    """Yield tuples and marks in their order.

    The mark of a new epoch stands after all tuples that arrived up to it; a mark that revises an earlier report stands after all tuples.
    """
    query, begin = updates.query, 0
    carried: list[Placed] = [
        (np.array([count_before(mark, entering)]), PunctuationUpdate(query, mark.arrival, mark.value)) for mark in marks
    ]
    for at, marked in _split_runs([*carried, *_place_epochs(epochs, entering.arrival)]):
        end = int(at[-1])
        tuples = updates.take(slice(begin, end))
        if not isinstance(marked, EpochMarks):
            yield from (tuples, marked) if len(tuples) else (marked,)
        else:
            yield Interleaved(query, tuples, marked, at - begin) if len(tuples) else marked
        begin = end
    if begin < len(updates):
        yield updates.take(slice(begin, None))


Placed = tuple[IntArray, EpochMarks | PunctuationUpdate]
"""Marks, and how many tuples precede each of them, ascending."""


def _place_epochs(marks: Iterable[NewMarks], arrivals: IntArray) -> Iterator[Placed]:
    """Yield epoch marks with their places among tuples of these arrivals."""
    for marked, new in marks:
        places = np.searchsorted(arrivals, marked.tick, "right")
        if not new.all():
            places = np.where(new, places, len(arrivals))
        if (places[1:] < places[:-1]).any():
            order = np.argsort(places, kind="stable")
            places, marked = (
                places[order],
                EpochMarks(marked.query, marked.tick[order], coverage_of(marked.coverage, order)),
            )
        if len(places):
            yield places, marked


def _split_runs(groups: Sequence[Placed]) -> Iterator[Placed]:
    """Yield groups of placed marks, cut so that all can be emitted one after another."""
    if len(groups) < 2:
        yield from groups
        return
    places = np.concatenate([at for at, _ in groups])
    owner = np.repeat(np.arange(len(groups)), [len(at) for at, _ in groups])
    within = np.concatenate([np.arange(len(at)) for at, _ in groups])
    order = np.argsort(places, kind="stable")
    for run in np.split(order, np.flatnonzero(np.diff(owner[order])) + 1):
        at, marked = groups[owner[run[0]]]
        part = slice(int(within[run[0]]), int(within[run[-1]]) + 1)
        yield at[part], marked.take(part) if isinstance(marked, EpochMarks) else marked
