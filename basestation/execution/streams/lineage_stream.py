"""Lineage stream: the tuples of an extent, each once for every filter that it passes (tuple lineage, CACQ).

The column FILTER has the number of the filter. Aggregates that are grouped by it are those of many queries, in one pass.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.schema import Type
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.vector import Vector, constant
from basestation.execution import thresholds
from basestation.execution.columns.match_pairs import pack_pairs, unpack_pairs
from basestation.execution.columns.tuples import Tuples
from basestation.execution.description import OperatorDescription
from basestation.execution.streams.filter_stream import FilterStream
from basestation.execution.streams.predicate_index.predicate_set import PredicateSet
from basestation.execution.streams.stream import Stream

FILTER = Column(0, Type.INTEGER, "filter")
"""The column with the number of the filter that a tuple passed. Columns of plans have other ids."""


class LineageStream(FilterStream):
    """Pairs of a filter and a tuple that passes it; each pair is a tuple with an identity of its own.

    Its readers get some columns, and place tuples by their arrival in the extent, whenever they came to pass.
    """

    def __init__(self, child: Stream) -> None:
        super().__init__(child, None, None, ())
        self.filters = PredicateSet(reuses=True)
        self._given: set[int] = set()

    @property
    def title(self) -> str:
        return self.filters.describe().name

    def describe(self) -> OperatorDescription:
        return replace(self.filters.describe(), how="predicate index, each tuple once per predicate")

    @property
    def sole_extent(self) -> None:
        """None: a tuple passes as often as filters let it."""

    def give_columns(self, ids: set[int]) -> None:
        """Give readers these columns of the extent."""
        self._given = ids

    def add(self, filter_: Expression) -> tuple[int, bool]:
        """Add a use of a filter; return its number, and whether no other query uses it."""
        known = len(self.filters)
        return self.filters.take(filter_), len(self.filters) > known

    def release(self, number: int) -> None:
        """End one use of a filter."""
        self.filters.release(number)

    def matches_of(self, number: int, tuples: Tuples) -> Tuples:
        """The pairs of one filter, of some tuples of the extent."""
        passed = Evaluation(tuples.columns, len(tuples)).of(self.filters[number]).is_true
        rows = np.flatnonzero(passed)
        return self._tag(tuples, constant(number, len(rows)), rows)

    def in_parts(self, tuples: Tuples) -> Iterator[Tuples]:
        """The pairs of all filters, of some tuples of the extent, in parts of bounded size, by tick."""
        if (tuples.tick[1:] < tuples.tick[:-1]).any():
            tuples = tuples.take(np.argsort(tuples.tick, kind="stable"))
        size = max(1, thresholds.LINEAGE_PAIRS // max(1, len(self.filters)))
        for begin in range(0, max(1, len(tuples)), size):
            yield self._passing(tuples.take(slice(begin, begin + size)))[0]

    def _passing(self, tuples: Tuples) -> tuple[Tuples, IntArray | slice]:
        numbers, rows = self.filters.pairs(tuples.columns, len(tuples))
        return self._tag(tuples, numbers, rows), rows

    def _tag(self, tuples: Tuples, numbers: IntArray, rows: IntArray) -> Tuples:
        """The pairs of filters and the tuples in some rows."""
        read = {id: vector for id, vector in tuples.columns.items() if id in self._given}
        found = tuples.with_columns(read)
        found = found.take(rows) if len(rows) else found.take(slice(0, 0))
        return replace(
            found, ident=pack_pairs(numbers, found.ident), columns={**found.columns, FILTER.id: Vector(numbers)}
        )

    def _arriving_now(self, tuples: Tuples, which: BoolArray, clock: int) -> Tuples:
        return tuples

    def placed(self, tuples: Tuples) -> Tuples:
        return tuples

    def index_of(self, idents: IntArray) -> IntArray:
        return self.child.index_of(unpack_pairs(idents)[1])

    def row_history(self) -> None:
        return None

    def max_tuples(self, ticks: int) -> int | None:
        most = self.child.max_tuples(ticks)
        return None if most is None else most * len(self.filters)
