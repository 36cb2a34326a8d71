"""The output of the engine at the end of a clock tick: windows and their revisions, tuples, epoch marks, failures.

An answer is a history of updates (semantics 12.1); the current answer is their sum. Rows are columnar: one Vector for
each entry of the SELECT list, in its order, so two columns may share a name. A scaled column holds whole multiples.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise, repeat
from typing import TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.record import record
from basestation.algebra.vector import Vector

Value: TypeAlias = int | float | str | None
"""One value of a row; None is null."""
LoopVariable: TypeAlias = "int | tuple[int, ...] | None"
"""The `t` of a window: an integer in a loop, a tuple of them in several loops, None without a loop."""
Coverage: TypeAlias = Mapping[str, tuple[int, int] | None]
"""For each extent below: readings (used, due), or None for a pushed extent."""
CoverageColumns: TypeAlias = Mapping[str, tuple[IntArray, IntArray] | None]
"""The same of many windows or epochs: arrays with one entry for each."""


@record
class Rows:
    """Tuples as columns. The length is separate because there may be no columns."""

    columns: tuple[Vector, ...]
    length: int

    def __len__(self) -> int:
        return self.length

    @property
    def whole(self) -> tuple[Vector, ...]:
        """The columns that the rows are in, perhaps with others; nothing is cut for it."""
        return self.columns

    def take(self, positions: slice | AnyArray) -> "Rows":
        """The rows at positions, or in a slice."""
        length = len(range(*positions.indices(self.length))) if isinstance(positions, slice) else len(positions)
        return Rows(tuple(c.take(positions) for c in self.columns), length)

    def span(self, begin: int, behind: int) -> "Rows":
        """The rows from `begin` to before `behind`; this object itself where these are all rows."""
        return self if behind - begin == self.length else RowSpan(self.columns, begin, behind - begin)

    def parts(self, begin: IntArray, behind: IntArray) -> Iterable["Rows"]:
        """For each i the rows from begin[i] to before behind[i]; this object itself where all parts hold all rows."""
        counts = behind - begin
        if (counts == self.length).all():
            return repeat(self, len(counts))
        return map(RowSpan, repeat(self.columns), begin.tolist(), counts.tolist())

    def to_lists(self, scales: Sequence[int | None] | None = None) -> list[tuple[Value, ...]]:
        """The rows as Python tuples, None for null. With `scales`, scaled columns become doubles."""
        scales = scales or [None] * len(self.columns)
        listed = [_values(c, scale) for c, scale in zip(self.columns, scales, strict=True)]
        return list(zip(*listed, strict=True)) if listed else [()] * self.length


class RowSpan(Rows):
    """Consecutive rows of other columns, which are cut when `columns` is first read.

    A step cuts its rows into one span for each query, and then into one for each window: only the last cut takes time.
    """

    __slots__ = ("_first", "_whole")

    def __init__(self, whole: tuple[Vector, ...], first: int, length: int) -> None:
        """The `length` rows of `whole` from position `first` on."""
        self._whole, self._first, self.length = whole, first, length

    def __getattr__(self, name: str) -> tuple[Vector, ...]:
        """Cut the columns, the only attribute that has no value at first."""
        if name != "columns":
            raise AttributeError(name)
        span = slice(self._first, self._first + self.length)
        self.columns = tuple(column.take(span) for column in self._whole)
        return self.columns

    @property
    def whole(self) -> tuple[Vector, ...]:
        return self._whole

    def __reduce__(self) -> tuple[type[Rows], tuple[tuple[Vector, ...], int]]:
        """A copy or pickle has these rows alone."""
        return Rows, (self.columns, self.length)

    def span(self, begin: int, behind: int) -> Rows:
        return self if behind - begin == self.length else RowSpan(self._whole, self._first + begin, behind - begin)


def _values(vector: Vector, scale: int | None) -> list[Value]:
    if scale is None:
        return vector.to_list()
    return [None if v is None else v / 10**scale for v in vector.to_list()]


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """One entry of WindowUpdates. Revision 0 is the first answer of window (tick, n); later ones remove and add rows."""

    query: int
    tick: int
    n: int
    t: LoopVariable
    revision: int
    coverage: Coverage
    added: Rows
    removed: Rows


@record
class WindowUpdates:
    """Updates of many windows in order of emission; iteration gives WindowUpdate objects.

    Window i has the rows of `added` from added_offsets[i] to before added_offsets[i + 1]; `removed` likewise. All other
    arrays, those of coverage included, have one entry for each window.
    """

    query: int
    tick: IntArray
    n: IntArray
    t: AnyArray  # of LoopVariable objects
    revision: IntArray
    coverage: CoverageColumns
    added: Rows
    added_offsets: IntArray
    removed: Rows
    removed_offsets: IntArray

    def __len__(self) -> int:
        return len(self.tick)

    def __iter__(self) -> Iterator[WindowUpdate]:
        added, removed = _cut(self.added, self.added_offsets), _cut(self.removed, self.removed_offsets)
        tags = zip(self.tick.tolist(), self.n.tolist(), self.t.tolist(), self.revision.tolist(), strict=True)
        covered = each_coverage(self.coverage, len(self))
        for (tick, n, t, revision), cover, plus, minus in zip(tags, covered, added, removed, strict=True):
            yield WindowUpdate(self.query, tick, n, t, revision, cover, plus, minus)

    def take(self, which: slice) -> "WindowUpdates":
        """The updates in a slice."""
        begin, end, _ = which.indices(len(self))
        added, added_offsets = _part(self.added, self.added_offsets[begin : end + 1])
        removed, removed_offsets = _part(self.removed, self.removed_offsets[begin : end + 1])
        return WindowUpdates(
            self.query, self.tick[which], self.n[which], self.t[which], self.revision[which],
            coverage_of(self.coverage, which), added, added_offsets, removed, removed_offsets,
        )  # fmt: skip

    def select(self, mask: BoolArray) -> "WindowUpdates":
        """The updates under a mask."""
        added, added_offsets = _select(self.added, self.added_offsets, mask)
        removed, removed_offsets = _select(self.removed, self.removed_offsets, mask)
        return WindowUpdates(
            self.query, self.tick[mask], self.n[mask], self.t[mask], self.revision[mask],
            coverage_of(self.coverage, mask), added, added_offsets, removed, removed_offsets,
        )  # fmt: skip


def _select(rows: Rows, bounds: IntArray, mask: BoolArray) -> tuple[Rows, IntArray]:
    """(the rows of the windows under a mask, their bounds)."""
    counts = np.diff(bounds)
    positions = int(bounds[0]) + np.flatnonzero(np.repeat(mask, counts))
    return rows.take(positions), np.concatenate([[0], np.cumsum(counts[mask])])


def _cut(rows: Rows, bounds: IntArray) -> Iterator[Rows]:
    return (rows.span(begin, end) for begin, end in pairwise(bounds.tolist()))


def _part(rows: Rows, bounds: IntArray) -> tuple[Rows, IntArray]:
    return next(_cut(rows, bounds[[0, -1]])), bounds - bounds[0]


def coverage_of(coverage: CoverageColumns, which: slice | AnyArray) -> CoverageColumns:
    """Coverage columns of some of their entries."""
    return {name: of and (of[0][which], of[1][which]) for name, of in coverage.items()}


def each_coverage(coverage: CoverageColumns, count: int) -> Iterator[Coverage]:
    """The Coverage of each of `count` windows or epochs."""
    columns: list[Iterable[tuple[int, int] | None]] = [
        repeat(None) if of is None else zip(of[0].tolist(), of[1].tolist(), strict=True) for of in coverage.values()
    ]
    rows: Iterable[tuple[tuple[int, int] | None, ...]] = zip(*columns, strict=False) if columns else repeat(())
    for row in islice(rows, count):
        yield dict(zip(coverage, row, strict=True))


def _cut_coverage(coverage: CoverageColumns, count: int) -> Iterator[CoverageColumns]:
    """The coverage columns of each of `count` queries, of arrays with a row for each."""
    columns = [repeat(None, count) if of is None else zip(*of, strict=True) for of in coverage.values()]
    names = list(coverage)
    if len(names) == 1:  # the most frequent case
        return ({names[0]: of} for of in columns[0])
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


@record
class TupleUpdates:
    """Tuples of a stream in order of emission: weight 1 adds a tuple, weight -1 retracts it."""

    query: int
    tick: IntArray
    index: IntArray
    weight: IntArray
    rows: Rows

    def __len__(self) -> int:
        return len(self.index)

    def take(self, positions: slice | AnyArray) -> "TupleUpdates":
        """The tuples at positions, or in a slice."""
        tags = self.tick[positions], self.index[positions], self.weight[positions]
        return TupleUpdates(self.query, *tags, self.rows.take(positions))


@dataclass(frozen=True, slots=True)
class EpochMark:
    """The epoch at a tick of a stream is complete, or its coverage has changed (12.3)."""

    query: int
    tick: int
    coverage: Coverage


@record
class EpochMarks:
    """Many epoch marks in order; iteration gives EpochMark objects."""

    query: int
    tick: IntArray
    coverage: CoverageColumns

    def __len__(self) -> int:
        return len(self.tick)

    def __iter__(self) -> Iterator[EpochMark]:
        for tick, cover in zip(self.tick.tolist(), each_coverage(self.coverage, len(self)), strict=True):
            yield EpochMark(self.query, tick, cover)

    def take(self, which: slice) -> "EpochMarks":
        """The marks in a slice."""
        return EpochMarks(self.query, self.tick[which], coverage_of(self.coverage, which))


@record
class Interleaved:
    """Tuples of a stream with epoch marks between them: `at[i]` tuples precede mark i.

    `pieces` gives TupleUpdates and EpochMarks in turn. For `len` and `take`, tuples and marks are one sequence.
    """

    query: int
    tuples: TupleUpdates
    marks: EpochMarks
    at: IntArray

    def __len__(self) -> int:
        return len(self.tuples) + len(self.marks)

    def pieces(self) -> Iterator[TupleUpdates | EpochMarks]:
        """The tuples up to the next mark, the marks up to the next tuple, and so on; no piece is empty."""
        begin = 0
        for first, behind in pairwise([*np.flatnonzero(np.diff(self.at, prepend=-1)).tolist(), len(self.at)]):
            place = int(self.at[first])
            if begin < place:
                yield replace(self.tuples.take(slice(begin, place)), query=self.query)
            yield replace(self.marks.take(slice(first, behind)), query=self.query)
            begin = place
        if begin < len(self.tuples):
            yield replace(self.tuples.take(slice(begin, None)), query=self.query)

    def take(self, which: slice) -> "Interleaved":
        """A slice of the one sequence of tuples and marks."""
        begin, end, _ = which.indices(len(self))
        first, behind = np.searchsorted(self.at + np.arange(len(self.at)), (begin, end)).tolist()
        tuples, marks = self.tuples.take(slice(begin - first, end - behind)), self.marks.take(slice(first, behind))
        return Interleaved(self.query, tuples, marks, self.at[first:behind] - (begin - first))


@record
class SharedTupleUpdates:
    """Tuples of a stream for many queries: query i receives those from begin[i] to before behind[i].

    `pieces` gives one TupleUpdates for each query.
    """

    queries: list[int]
    begin: IntArray
    behind: IntArray
    tick: IntArray
    index: IntArray
    weight: IntArray
    rows: Rows

    def pieces(self) -> Iterator[TupleUpdates]:
        spans = list(map(slice, self.begin.tolist(), self.behind.tolist()))
        tags = (map(array.__getitem__, spans) for array in (self.tick, self.index, self.weight))
        return map(TupleUpdates, self.queries, *tags, self.rows.parts(self.begin, self.behind))


@record
class SharedWindowUpdates:
    """First answers of the same windows for many queries.

    Window j of query i has the rows from at[i, j] to before at[i, j + 1]; queries may share rows. With `covered_apart`, the arrays of
    coverage have an entry for each query and window, as windows of several ranges do. `pieces` gives one WindowUpdates for each query.
    """

    queries: list[int]
    tick: IntArray
    n: IntArray
    t: AnyArray
    coverage: CoverageColumns
    rows: Rows
    at: IntArray  # (queries, windows + 1)
    covered_apart: bool = False

    def pieces(self) -> Iterator[WindowUpdates]:
        revision, nowhere = np.zeros(len(self.tick), np.int64), np.zeros(len(self.tick) + 1, np.int64)
        none = self.rows.take(slice(0, 0))
        begin, behind = self.at[:, 0], self.at[:, -1]
        shared = map(repeat, (self.tick, self.n, self.t, revision))
        coverage = _cut_coverage(self.coverage, len(self.queries)) if self.covered_apart else repeat(self.coverage)
        rows, at = self.rows.parts(begin, behind), self.at - begin[:, None]
        return map(WindowUpdates, self.queries, *shared, coverage, rows, at, repeat(none), repeat(nowhere))


@dataclass(frozen=True, slots=True)
class PunctuationUpdate:
    """A punctuation that came with a batch, at its place in the answer. `value` is opaque to the engine."""

    query: int
    tick: int
    value: object


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """The query ended with an error of kind input (14); no update follows. `code` is one of SN5xx."""

    query: int
    code: str
    message: str
    clock: int  # the clock tick in which it failed


Update: TypeAlias = WindowUpdates | TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate | QueryFailure
SharedUpdate: TypeAlias = SharedTupleUpdates | SharedWindowUpdates
PlainUpdate: TypeAlias = WindowUpdates | TupleUpdates | EpochMarks | PunctuationUpdate | QueryFailure
SingleUpdate: TypeAlias = WindowUpdate | TupleUpdates | EpochMark | PunctuationUpdate | QueryFailure


def split_by_query(updates: Iterable[Update | SharedUpdate]) -> Iterator[Update]:
    """The updates of an engine, with those for many queries cut into one for each query."""
    for update in updates:
        if isinstance(update, SharedTupleUpdates | SharedWindowUpdates):
            yield from update.pieces()
        else:
            yield update


def split_interleaved(updates: Iterable[Update | SharedUpdate]) -> Iterator[PlainUpdate]:
    """The same, with tuples and the marks between them in separate updates."""
    for update in split_by_query(updates):
        if isinstance(update, Interleaved):
            yield from update.pieces()
        else:
            yield update


def split_singly(updates: Iterable[Update | SharedUpdate]) -> Iterator[SingleUpdate]:
    """The same, with each window and each mark as an update of its own."""
    for update in split_interleaved(updates):
        if isinstance(update, WindowUpdates | EpochMarks):
            yield from update
        else:
            yield update
