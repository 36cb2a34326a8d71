"""ConverterOutput: emits the tuples of a converter to all queries that share it, whenever they begin and end (semantics 6.2, 6.3, 12.1).

The converter runs from the first of these queries on. Each query has the tuples of its own windows, and counts its own indexes. ISTREAM
gives a query all rows of its first window (`first_windows.py`), DSTREAM none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.expression import Column
from basestation.execution.columns.index_offsets import IndexOffsets
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.punctuation import PendingPunctuation, Punctuation
from basestation.execution.columns.tuples import Tuples, concatenate_tuples
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import QueryGroup
from basestation.execution.output.answered_ticks import AnsweredTicks
from basestation.execution.output.epoch_marks import EpochReporter, NewMarks
from basestation.execution.output.stream_output import interleave_marks
from basestation.execution.output.tuple_output import TupleOutput
from basestation.execution.query_block import QueryBlock
from basestation.execution.streams.converters import ConverterStream
from basestation.execution.streams.first_windows import FirstWindows
from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    PunctuationUpdate,
    TupleUpdates,
    Update,
    coverage_of,
)

Beginning = tuple[tuple[int, ...], int, int, frozenset[tuple[str, int]]]
"""(first ticks that a window of each input may have, of epochs that are reported, last tick, marks that came before).

That is all that queries may differ in.
"""
Piece = TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate


@dataclass
class ConverterMember:
    """Queries that have the same windows of a converter."""

    ticks: AnsweredTicks
    epochs: AnsweredTicks  # those of them whose epochs are reported: rows may be older than the query
    queries: list[int] = field(default_factory=list)
    first: int = NEVER  # the number of their first window; NEVER until there is one
    count: int = 0  # the tuples that entered: the last index
    indexes: IndexOffsets = field(default_factory=IndexOffsets)
    first_indexes: IndexOffsets = field(default_factory=IndexOffsets)  # of the tuples of their first window


@dataclass(frozen=True)
class StepTuples:
    """Tuples of one stream in a step: those that entered, and those that are taken back by window, each with its index."""

    entering: Tuples
    index: IntArray
    back: Tuples
    back_index: IntArray

    @classmethod
    def of(cls, stream: ConverterStream) -> "StepTuples":
        """Those of the last step of a stream."""
        entering, removed = stream.entering, stream.change.removed
        index = stream.index_of(removed.ident)
        given = np.flatnonzero(index > 0)
        return cls(entering, stream.index_of(entering.ident), removed.take(given), index[given])

    def __len__(self) -> int:
        return len(self.entering) + len(self.back)

    def window_range(self) -> tuple[int, int, int]:
        """(least number of a window, least tick, greatest tick); nothing lies outside of (NEVER, NEVER, -NEVER)."""
        both = self.entering, self.back
        return (
            min(int(each.site.min(initial=NEVER)) for each in both),
            min(int(each.tick.min(initial=NEVER)) for each in both),
            max(int(each.tick.max(initial=-NEVER)) for each in both),
        )

    def of_windows(self, first: int, last: int, until: int) -> "StepTuples":
        """Those of the windows with numbers `first` to `last` and ticks up to `until`."""
        kept, kept_back = (
            (each.site >= first) & (each.site <= last) & (each.tick <= until) for each in (self.entering, self.back)
        )
        return StepTuples(
            self.entering.take(kept), self.index[kept], self.back.take(kept_back), self.back_index[kept_back]
        )


class ConverterOutput(TupleOutput):
    """An Output: the tuples of a converter as they enter it, and the marks of its windows."""

    def __init__(
        self,
        stream: ConverterStream,
        block: QueryBlock,
        columns: Sequence[Column],
        tags: tuple[Column, Column],
        keys: int,
    ) -> None:
        """`stream` is the converter, with `tags`, over `block`; `columns` are shown.

        For `keys` ticks a reading may still come that changes the coverage of a window.
        """
        super().__init__(stream.level)
        self.stream, self._block, self._columns, self._keys = stream, block, columns, keys
        self.output_group: QueryGroup | None = None
        self._members: list[ConverterMember] = []
        self._waiting: dict[Beginning, ConverterMember] = {}  # members without windows yet
        self._first_windows = FirstWindows(stream, tags) if stream.keeps_first_windows else None
        self._marks = PendingPunctuation()
        self._needed = NEVER
        self._epochs = EpochReporter(stream, -NEVER, None)
        self.updates: list[Update] = []  # of the last step

    def __getstate__(self) -> dict[str, Any]:
        """Without the updates of the last step, which the engine has returned."""
        return vars(self) | {"updates": []}

    def describe(self) -> OperatorDescription:
        state = None if self._first_windows is None else self._first_windows.describe_state()
        return OperatorDescription(self.title, "and epoch marks, in order of entry", state)

    @property
    def next_due(self) -> NextDue:
        """When the output may emit an update next."""
        streams = [self.stream] if self._first_windows is None else [self.stream, self._first_windows]
        waits = any(stream.first_waiting is not None for stream in streams)
        return DUE_NOW if self._marks or waits else self.stream.next_due

    # --- queries begin and end -----------------------------------------------------------------------------------------

    @property
    def output(self) -> "ConverterOutput":
        """The output itself, which queries use as a whole."""
        return self

    @property
    def numbers(self) -> list[int]:
        """The queries that it answers."""
        return [query for member in self._members for query in member.queries]

    def enter(self, query: int, start: int, limit: int | None) -> None:
        """Add a query that begins at tick `start`, and ends with tick `limit` if it does."""
        self._block.extend_limit(limit)
        ticks = AnsweredTicks(NEVER, NEVER if limit is None else limit, self._marks.sources)
        starts = self._block.find_starts(start)
        beginning = starts, max(start, min(starts)), ticks.last, ticks.earlier
        member = self._waiting.get(beginning)
        if member is None:
            member = self._waiting[beginning] = ConverterMember(ticks, ticks)
            self._members.append(member)
        member.queries.append(query)

    def leave(self, query: int) -> None:
        """Remove a query."""
        [member] = [member for member in self._members if query in member.queries]
        member.queries.remove(query)
        if member.queries:
            return
        self._members = [each for each in self._members if each is not member]
        self._waiting = {key: each for key, each in self._waiting.items() if each is not member}
        if self._first_windows is not None and all(each.first != member.first for each in self._members):
            self._first_windows.remove(member.first)

    def _begin_queries(self, new: WindowCombinations) -> None:
        """Find the first windows of queries that have one among new windows for the first time."""
        for beginning, member in list(self._waiting.items()):
            first = self._block.find_first(new, beginning[0])
            if first is None:
                continue
            del self._waiting[beginning]
            member.ticks = replace(member.ticks, first=first)
            member.epochs = replace(member.ticks, first=max(first, beginning[1]))
            member.first = int(new.number[np.searchsorted(new.tick, first)])
            if self._first_windows is not None:
                self._first_windows.add(member.first)

    # --- steps -------------------------------------------------------------------------------------------------------

    def step(self, clock: int) -> None:
        """Emit corrections, and the tuples and marks that enter."""
        change, new = self.stream.change, self._block.outcome.new
        marks = self._marks.ready(change.marks, change.watermark)
        if self._waiting and len(new):
            self._begin_queries(new)
        tuples, epochs, firsts = StepTuples.of(self.stream), self._epochs.news(), None
        self.counts.rows_in += len(change.inserted) + len(change.removed)
        if self._first_windows is not None and self._first_windows.may_change():
            self._first_windows.step(clock)
            firsts = StepTuples.of(self._first_windows)
            whole = self._first_windows.change
            self.counts.rows_in += len(whole.inserted) + len(whole.removed)
        quiet = not (len(tuples) or epochs or marks or firsts)
        self.updates = [] if quiet else list(self._updates_of(tuples, firsts, epochs, marks))

    def _updates_of(
        self,
        tuples: StepTuples,
        firsts: StepTuples | None,
        epochs: Sequence[NewMarks],
        marks: Sequence[Punctuation],
    ) -> Iterator[Update]:
        """Yield the updates of all queries. Those to which everything belongs differ in the indexes only."""
        common: list[Piece] | None = None
        first, low, high = tuples.window_range()
        spans = [marked.tick[[0, -1]] for marked, _ in epochs]
        low, high = (
            int(end) for end in (min([low, *(s.min() for s in spans)]), max([high, *(s.max() for s in spans)]))
        )
        begun = set() if not firsts else {*firsts.entering.site.tolist(), *firsts.back.site.tolist()}
        for member in self._members:
            ticks = member.epochs
            has_all = member.first + self.stream.differs <= first and ticks.first <= low and high <= ticks.last
            if has_all and member.first not in begun and not (marks and ticks.earlier):
                if common is None:
                    common = list(self._pieces(tuples, tuples.index, tuples.back_index, epochs, marks))
                own = self._count(member, len(tuples.entering))
                member.indexes.add(tuples.index, own)
                pieces = [_renumber(piece, member.indexes) for piece in common]
            else:
                pieces = list(self._own_pieces(member, tuples, firsts, epochs, marks))
            for query in member.queries:
                yield from (replace(piece, query=query) for piece in pieces)

    def _count(self, member: ConverterMember, count: int) -> IntArray:
        """Return the next indexes of a member."""
        member.count += count
        return np.arange(member.count - count + 1, member.count + 1)

    def _own_pieces(
        self,
        member: ConverterMember,
        tuples: StepTuples,
        firsts: StepTuples | None,
        epochs: Sequence[NewMarks],
        marks: Sequence[Punctuation],
    ) -> Iterator[Piece]:
        """Yield the updates of a member of which some tuples, epochs or marks may not be."""
        last = member.ticks.last
        parts = [(tuples.of_windows(member.first + self.stream.differs, NEVER, last), member.indexes)]
        if firsts is not None:  # they stand before the others of their step
            parts.insert(0, (firsts.of_windows(member.first, member.first, last), member.first_indexes))
        entering = concatenate_tuples([of.entering for of, _ in parts])
        order = np.lexsort((entering.place, entering.rank, entering.part, entering.arrival))
        own = np.empty(len(order), np.int64)
        own[order] = self._count(member, len(order))
        bounds = np.cumsum([0, *(len(of.entering) for of, _ in parts)])
        for (of, indexes), begin, end in zip(parts, bounds[:-1], bounds[1:], strict=True):
            indexes.add(of.index, own[begin:end])
        back = concatenate_tuples([of.back for of, _ in parts])
        back_own = np.concatenate([indexes.of(of.back_index) for of, indexes in parts])
        both = StepTuples(entering.take(order), own[order], back, back_own)
        epochs = [kept for marked in epochs if len((kept := _select(marked, member.epochs))[0])]
        yield from self._pieces(both, both.index, both.back_index, epochs, member.ticks.marks(marks))

    def _pieces(
        self,
        tuples: StepTuples,
        index: IntArray,
        back_index: IntArray,
        epochs: Sequence[NewMarks],
        marks: Sequence[Punctuation],
    ) -> Iterator[Piece]:
        """Yield what a step gives to a query, under these indexes."""
        self.counts.rows_out += len(tuples)
        if len(tuples.back):
            yield self._make_updates(tuples.back, back_index, -1)
        entered = self._make_updates(tuples.entering, index, 1)
        yield from interleave_marks(tuples.entering, entered, epochs, marks)

    # --- what may be dropped -----------------------------------------------------------------------------------------

    def tidy(self) -> None:
        """Drop what no correction can name."""
        before, self._needed = self._needed, NEVER
        self.stream.need(before)
        if self._first_windows is not None:
            self._first_windows.tidy()
        # A late reading changes the report of its window even if no row is corrected.
        self._epochs.forget(before - self._keys)


def _renumber(piece: Piece, indexes: IndexOffsets) -> Piece:
    """Return what a step gives, under the indexes of a query."""
    match piece:
        case TupleUpdates():
            return replace(piece, index=indexes.of(piece.index))
        case Interleaved(tuples=tuples):
            return replace(piece, tuples=replace(tuples, index=indexes.of(tuples.index)))
    return piece


def _select(marks: NewMarks, ticks: AnsweredTicks) -> NewMarks:
    """Return the epoch marks of a query."""
    marked, new = marks
    kept = np.flatnonzero(ticks.mask(marked.tick))
    return EpochMarks(marked.query, marked.tick[kept], coverage_of(marked.coverage, kept)), new[kept]
