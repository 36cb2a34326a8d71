"""Answers: what the engine says at the end of a clock tick: windows and their revisions, tuples of streams, marks, ends.

An answer is a history of these (SEMANTICS 12.1); the current answer is their sum. Rows are columnar: a tuple of Vectors
in the order of the SELECT list, so that two columns may have one name. A column with a scale holds whole multiples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice, pairwise, repeat

import numpy as np

from basestation.algebra.record import record
from basestation.algebra.vector import Vector

Coverage = Mapping[str, tuple[int, int] | None]
"""For each extent below: (used, due), or None for a pushed one."""


@record
class Rows:
    """Tuples as columns; the length is told apart because there may be no columns."""

    columns: tuple[Vector, ...]
    length: int

    def __len__(self):
        return self.length

    def take(self, positions):
        slice_ = isinstance(positions, slice)
        length = len(range(*positions.indices(self.length))) if slice_ else len(positions)
        return Rows(tuple(c.take(positions) for c in self.columns), length)

    def parts(self, begin, behind):
        """The rows from each of some places to before another; itself where these always are all."""
        counts = behind - begin
        if (counts == self.length).all():
            return repeat(self, len(counts))
        spans = list(map(slice, begin.tolist(), behind.tolist()))
        columns = [_parts(column, spans) for column in self.columns]
        return map(Rows, zip(*columns, strict=True) if columns else repeat(()), counts.tolist())

    def to_lists(self, scales=None):
        """The rows as Python tuples, None for null; scaled columns as the doubles they stand for."""
        scales = scales or [None] * len(self.columns)
        listed = [_values(c, scale) for c, scale in zip(self.columns, scales, strict=True)]
        return list(zip(*listed, strict=True)) if listed else [()] * self.length


def _parts(vector, spans):
    """A column from each of some places to before another."""
    values = map(vector.values.__getitem__, spans)
    return map(Vector, values) if vector.valid is None else map(Vector, values, map(vector.valid.__getitem__, spans))


def _values(vector, scale):
    if scale is None:
        return vector.to_list()
    return [None if v is None else v / 10**scale for v in vector.to_list()]


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """One of WindowUpdates. Revision 0 is the first answer of the window (tick, n); later ones take rows back and give rows."""

    query: int
    tick: int
    n: int
    t: int | tuple | None  # the variable of a loop
    revision: int
    coverage: Coverage
    added: Rows
    removed: Rows


@record
class WindowUpdates:
    """Updates of many windows in the order in which they are given; each of them is a WindowUpdate.

    Window i has the rows of `added` from added_at[i] to added_at[i + 1], of `removed` likewise. Coverage has arrays with an
    entry for each window.
    """

    query: int
    tick: np.ndarray
    n: np.ndarray
    t: np.ndarray  # of objects
    revision: np.ndarray
    coverage: Mapping[str, tuple[np.ndarray, np.ndarray] | None]
    added: Rows
    added_offsets: np.ndarray
    removed: Rows
    removed_offsets: np.ndarray

    def __len__(self):
        return len(self.tick)

    def __iter__(self):
        added, removed = _cut(self.added, self.added_offsets), _cut(self.removed, self.removed_offsets)
        tags = zip(self.tick.tolist(), self.n.tolist(), self.t.tolist(), self.revision.tolist(), strict=True)
        covered = each_coverage(self.coverage, len(self))
        for (tick, n, t, revision), cover, plus, minus in zip(tags, covered, added, removed, strict=True):
            yield WindowUpdate(self.query, tick, n, t, revision, cover, plus, minus)

    def take(self, which):
        """The updates in a slice."""
        begin, end, _ = which.indices(len(self))
        tags = (getattr(self, name)[which] for name in ("tick", "n", "t", "revision"))
        added, added_offsets = _part(self.added, self.added_offsets[begin : end + 1])
        removed, removed_offsets = _part(self.removed, self.removed_offsets[begin : end + 1])
        return WindowUpdates(
            self.query, *tags, coverage_of(self.coverage, which), added, added_offsets, removed, removed_offsets
        )


def _cut(rows, bounds):
    for begin, end in pairwise(bounds.tolist()):
        yield Rows(tuple(c.take(slice(begin, end)) for c in rows.columns), end - begin)


def _part(rows, bounds):
    return next(_cut(rows, bounds[[0, -1]])), bounds - bounds[0]


def coverage_of(coverage, which):
    """Columns of coverage for some of their entries."""
    return {name: of and (of[0][which], of[1][which]) for name, of in coverage.items()}


def each_coverage(coverage, count):
    """The Coverage of each of so many windows or epochs."""
    columns = [None if of is None else zip(of[0].tolist(), of[1].tolist(), strict=True) for of in coverage.values()]
    columns = [repeat(None) if column is None else column for column in columns]
    rows = zip(*columns, strict=False) if columns else repeat(())
    for row in islice(rows, count):
        yield dict(zip(coverage, row, strict=True))


@record
class TupleUpdates:
    """Tuples of a stream in the order in which they are given (weight 1) or taken back (-1)."""

    query: int
    tick: np.ndarray
    index: np.ndarray
    weight: np.ndarray
    rows: Rows

    def __len__(self):
        return len(self.index)

    def take(self, positions):
        tags = self.tick[positions], self.index[positions], self.weight[positions]
        return TupleUpdates(self.query, *tags, self.rows.take(positions))


@dataclass(frozen=True, slots=True)
class EpochMark:
    """The epoch at a tick of a stream is complete, or its coverage has changed (12.3)."""

    query: int
    tick: int
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class EpochMarks:
    """Many marks, in order; each of them is an EpochMark."""

    query: int
    tick: np.ndarray
    coverage: Mapping[str, tuple[np.ndarray, np.ndarray] | None]

    def __len__(self):
        return len(self.tick)

    def __iter__(self):
        for tick, cover in zip(self.tick.tolist(), each_coverage(self.coverage, len(self)), strict=True):
            yield EpochMark(self.query, tick, cover)

    def take(self, which):
        """The marks in a slice."""
        return EpochMarks(self.query, self.tick[which], coverage_of(self.coverage, which))


@dataclass(frozen=True, slots=True)
class Interleaved:
    """Tuples of a stream, and marks of its epochs between them: `at[i]` tuples stand before mark i. In pieces they are
    TupleUpdates and EpochMarks; counted and cut they are one sequence."""

    query: int
    tuples: TupleUpdates
    marks: EpochMarks
    at: np.ndarray

    def __len__(self):
        return len(self.tuples) + len(self.marks)

    def pieces(self):
        """The tuples up to the next mark, the marks up to the next tuple, and so on; none is empty."""
        begin = 0
        for first, behind in pairwise([*np.flatnonzero(np.diff(self.at, prepend=-1)).tolist(), len(self.at)]):
            place = int(self.at[first])
            if begin < place:
                yield replace(self.tuples.take(slice(begin, place)), query=self.query)
            yield replace(self.marks.take(slice(first, behind)), query=self.query)
            begin = place
        if begin < len(self.tuples):
            yield replace(self.tuples.take(slice(begin, None)), query=self.query)

    def take(self, which):
        """A slice of the sequence."""
        begin, end, _ = which.indices(len(self))
        first, behind = np.searchsorted(self.at + np.arange(len(self.at)), (begin, end)).tolist()
        tuples, marks = self.tuples.take(slice(begin - first, end - behind)), self.marks.take(slice(first, behind))
        return Interleaved(self.query, tuples, marks, self.at[first:behind] - (begin - first))


@record
class SharedTupleUpdates:
    """Tuples of a stream that are for many queries: those from begin[i] to behind[i] are for query i. In pieces they are
    TupleUpdates."""

    queries: list[int]
    begin: np.ndarray
    behind: np.ndarray
    tick: np.ndarray
    index: np.ndarray
    weight: np.ndarray
    rows: Rows

    def pieces(self):
        spans = list(map(slice, self.begin.tolist(), self.behind.tolist()))
        tags = (map(array.__getitem__, spans) for array in (self.tick, self.index, self.weight))
        return map(TupleUpdates, self.queries, *tags, self.rows.parts(self.begin, self.behind))


@record
class SharedWindowUpdates:
    """First answers of the same windows for many queries: window j of query i has the rows from at[i, j] to at[i, j + 1], and
    others may have the same. In pieces they are WindowUpdates."""

    queries: list[int]
    tick: np.ndarray
    n: np.ndarray
    t: np.ndarray
    coverage: Mapping[str, tuple[np.ndarray, np.ndarray] | None]
    rows: Rows
    at: np.ndarray

    def pieces(self):
        revision, nowhere = np.zeros(len(self.tick), np.int64), np.zeros(len(self.tick) + 1, np.int64)
        none = self.rows.take(slice(0, 0))
        begin, behind = self.at[:, 0], self.at[:, -1]
        alike = map(repeat, (self.tick, self.n, self.t, revision, self.coverage))
        rows, at = self.rows.parts(begin, behind), self.at - begin[:, None]
        return map(WindowUpdates, self.queries, *alike, rows, at, repeat(none), repeat(nowhere))


@dataclass(frozen=True, slots=True)
class PunctuationUpdate:
    """A mark that came with a batch, at its place among what is said; what `value` is, knows who put it there."""

    query: int
    tick: int
    value: object


@dataclass(frozen=True, slots=True)
class QueryFailure:
    """The query has ended with an error of kind input (14); nothing follows. `code` is one of the catalogue (SN5xx)."""

    query: int
    code: str
    message: str
    clock: int


Update = WindowUpdates | TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate | QueryFailure


def split_by_query(said):
    """What an engine said, with those updates one by one that were made for many queries together."""
    for update in said:
        yield from update.pieces() if isinstance(update, SharedTupleUpdates | SharedWindowUpdates) else (update,)


def split_interleaved(updates):
    """Updates with tuples and the marks between them in pieces."""
    for update in split_by_query(updates):
        yield from update.pieces() if isinstance(update, Interleaved) else (update,)


def split_singly(updates):
    """Updates with each window and each mark by itself."""
    for update in split_interleaved(updates):
        yield from update if isinstance(update, WindowUpdates | EpochMarks) else (update,)
