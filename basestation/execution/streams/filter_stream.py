"""Filter streams: selection and projection of a stream."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Attr, columns_of
from basestation.algebra.vector import Vector, all_true, as_positions, take_at
from basestation.execution.columns.change import NO_TICKS, Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import NextDue
from basestation.execution.columns.tuples import Tuples, empty_like
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.description import OperatorDescription, describe_project, describe_select
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.streams.stream import REVISION_RANK, Stream

Outputs = tuple[tuple[Column, Expression], ...]
"""The columns of a projection, each with the expression that computes it."""


class FilterStream(Stream):
    """StreamSelect and StreamProject in one: the tuples for which a predicate is true, with computed columns.

    A correction may make a tuple pass that did not pass before. The tuple is then new here and arrives in this clock tick
    (12.1), unless it had not entered the stream below either.
    """

    def __init__(
        self,
        child: Stream,
        predicate: Expression | None,
        outputs: Outputs | None,
        tags: tuple[Column, ...],
        limit: int | None = None,
    ) -> None:
        """`limit` is the last clock tick in which tuples arrive for a query that ends (11)."""
        super().__init__(child.level)
        self.child, self._predicate, self._outputs = child, predicate, outputs
        self._tags = [tag.id for tag in tags]
        self._limit = limit
        self._read: set[int] | None = None  # the columns that outputs are computed from; None: all
        if outputs is not None:
            self._read = {column.id for _, e in outputs for column in columns_of(e)} | set(self._tags)
        self._none: Tuples | None = None  # no tuples, with the columns of this stream

    @property
    def title(self) -> str:
        parts = [] if self._outputs is None else [describe_project(self._outputs)]
        if self._predicate is not None:
            parts.append(describe_select(self._predicate))
        return " of ".join(parts)

    def describe(self) -> OperatorDescription:
        return OperatorDescription(self.title, "in batches")

    @property
    def by_site(self) -> bool:
        return self.child.by_site

    @property
    def tracks_versions(self) -> bool:
        return self.child.tracks_versions and self._limit is None

    @property
    def watermark(self) -> int:
        return self.child.watermark

    @property
    def certain(self) -> int:
        return self.child.certain

    @property
    def lag(self) -> int:
        return self.child.lag

    @property
    def next_due(self) -> NextDue:
        return self.child.next_due

    @property
    def sole_extent(self) -> str | None:
        return self.child.sole_extent

    @property
    def entered(self) -> IntArray:
        return self.child.entered

    def step(self, clock: int) -> None:
        below = self.child.change
        inserted, passed = self._passing(below.inserted)
        removed, _ = self._passing(below.removed)
        is_new = take_at(below.is_new, passed)
        if not all_true(is_new):
            newly = ~is_new & ~np.isin(inserted.ident, removed.ident)
            inserted = self._arriving_now(inserted, newly, clock) if newly.any() else inserted
            is_new = is_new | newly
        if self._limit is not None:
            in_time = inserted.arrival <= self._limit
            inserted, is_new = inserted.take(in_time), is_new[in_time]
        versions = below.versions
        if versions is not None:
            versions = versions.select(*self._passing(versions.tuples))
        self.change = Change(inserted, is_new, removed, below.dirty_ticks, below.watermark, below.marks, versions)
        self.count_rows(below)

    def _arriving_now(self, tuples: Tuples, which: BoolArray, clock: int) -> Tuples:
        """Tuples of which those under a mask, if they entered before this step, arrive in this clock tick."""
        which = which & (self.index_of(tuples.ident) > 0) & ~np.isin(tuples.ident, self.entered)
        arrival, rank, place = tuples.arrival.copy(), tuples.rank.copy(), tuples.place.copy()
        arrival[which], rank[which], place[which] = clock, REVISION_RANK, self.index_of(tuples.ident)[which]
        return replace(tuples, arrival=arrival, rank=rank, place=place)

    def _passing(self, tuples: Tuples) -> tuple[Tuples, IntArray | slice]:
        """(the tuples that pass, with the columns of this stream; their positions or the slice that they are)."""
        if not len(tuples) and self._none is not None:
            return self._none, slice(None)
        mask = self._mask(tuples)
        which = slice(None) if mask is None or all_true(mask) else as_positions(mask)
        if self._read is not None:
            tuples = tuples.with_columns({id: vector for id, vector in tuples.columns.items() if id in self._read})
        tuples = tuples.take(which)
        if self._outputs is not None:
            columns = project_columns(self._outputs, tuples.columns, len(tuples))
            columns |= {id: tuples.columns[id] for id in self._tags if id in tuples.columns}
            tuples = tuples.with_columns(columns)
        if not len(tuples):
            self._none = tuples
        return tuples, which

    def _mask(self, tuples: Tuples) -> BoolArray | None:
        """A mask of the tuples that pass; None without a predicate."""
        return None if self._predicate is None else Evaluation(tuples.columns, len(tuples)).of(self._predicate).is_true

    def empty_covers(self) -> list[CoverageRanges]:
        return self.child.empty_covers()

    def all(self) -> Change:
        below = self.child.all()
        inserted, which = self._passing(below.inserted)
        return Change(inserted, below.is_new[which], empty_like(inserted), NO_TICKS, below.watermark)

    def row_history(self) -> tuple[IntArray, IntArray] | None:
        """A selection numbers its own rows (3.7): only those that pass now count."""
        return None if self._predicate is not None else self.child.row_history()

    def between(self, low: int, high: int) -> Tuples:
        return self._passing(self.child.between(low, high))[0]

    def index_of(self, idents: IntArray) -> IntArray:
        return self.child.index_of(idents)

    def placed(self, tuples: Tuples) -> Tuples:
        return self.child.placed(tuples)

    def covers(self, low: IntArray, high: IntArray, at: IntArray) -> list[CoverageRanges]:
        return self.child.covers(low, high, at)

    def epochs(self) -> IntArray:
        return self.child.epochs()

    def epochs_from(self, tick: int) -> IntArray:
        return self.child.epochs_from(tick)

    def anchor(self, low: int) -> bool:
        return self.child.anchor(low)

    def epoch_covers(self, keys: IntArray) -> list[tuple[BoolArray, list[CoverageRanges]]]:
        return self.child.epoch_covers(keys)

    def open_from(self, before: int) -> int:
        return self.child.open_from(before)

    @property
    def first(self) -> int:
        return self.child.first

    def tidy(self) -> None:
        self.child.need(self.needed)
        self.needed = NEVER

    def max_tuples(self, ticks: int) -> int | None:
        return self.child.max_tuples(ticks)

    @property
    def horizon(self) -> int:
        return self.child.horizon


class SharedFilterStream(FilterStream):
    """The tuples that pass the predicate of at least one query in a set of queries."""

    title = "select for any query"

    def __init__(self, child: Stream, predicates: PredicateSet) -> None:
        super().__init__(child, None, None, ())
        self.predicates = predicates

    def describe(self) -> OperatorDescription:
        return OperatorDescription(self.title, "predicate index")

    def _mask(self, tuples: Tuples) -> BoolArray:
        return self.predicates.any(tuples.columns, len(tuples))

    def row_history(self) -> None:
        return None


def project_columns(outputs: Outputs, columns: Mapping[int, Vector], length: int) -> dict[int, Vector]:
    """The columns of a projection, by column id. A plain attribute with a scale keeps its whole multiples."""
    evaluation = Evaluation(columns, length)
    out = {}
    for column, expression in outputs:
        if isinstance(expression, Attr):
            out[column.id] = columns[expression.column.id]
        else:
            out[column.id] = evaluation.as_type(expression, column.type)
    return out
