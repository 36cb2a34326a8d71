"""TupleLog: every tuple that was taken of an extent, by number, for as long as a correction may name it.

Tuples are numbered 0, 1, 2, … as they are taken, or from another first number on. They stay in the batches in which they came. Only exceptions are stored beside
them: tuples that streams do not see, that were deleted, that entered in another order, or that have other values.
"""

from collections.abc import Iterable

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import all_true
from basestation.execution.columns.segmented_log import SegmentedLog
from basestation.execution.columns.sparse_flags import SparseFlags
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.tuples import Tuples
from basestation.execution.columns.value_overrides import ValueOverrides
from basestation.execution.ingest.column_sets import ColumnSets


class TupleLog:
    """`first` is the number of the oldest tuple that is held, `next` that of the next one to be taken."""

    def __init__(self, none: Tuples, first: int = 0) -> None:
        """`none` has no tuples, and all columns; `first` is the number of the first tuple to come."""
        self.none = none
        self.next = self.first = first
        self.live = SparseFlags()  # continuous queries see the tuple
        self.there = SparseFlags()  # the tuple was neither deleted nor dropped
        self.column_sets = ColumnSets()
        self._segments = SegmentedLog()
        self._revised = ValueOverrides()
        self._withheld = (
            ValueOverrides()
        )  # the values that streams go on seeing after a correction that is not for them
        self._index = TupleIndexes()
        self._index.drop_before(first)

    # --- changes -----------------------------------------------------------------------------------------------------

    def add(
        self, tuples: Tuples, live: BoolArray, there: BoolArray, columns: Iterable[str], ordered: bool = False
    ) -> None:
        """Append tuples with the next numbers. `live` and `there` are masks, `columns` the names that the batch came with.

        `ordered` says that the tuples are known to be on time, and in the order of their ticks.
        """
        self._segments.add(tuples, ordered)
        self.column_sets.record(self.next, columns)
        self.next += len(tuples)
        for flags, holds in ((self.live, live), (self.there, there)):
            if not all_true(holds):
                flags.clear(tuples.ident[~holds])

    def enter(self, tuples: Tuples) -> None:
        """Give at least one tuple the next indexes, in this order."""
        numbers = tuples.ident
        in_a_row = self._segments.is_last(tuples) or bool((numbers[1:] == numbers[:-1] + 1).all())
        self._index.enter(numbers, in_a_row)

    def delete(self, numbers: IntArray, visible: BoolArray) -> None:
        """Delete tuples; streams go on seeing those outside the mask `visible`."""
        self.live.clear(numbers[visible])
        self.there.clear(numbers)

    def revise(self, tuples: Tuples) -> None:
        """Give tuples other values."""
        self._revised.put(tuples)

    def withhold(self, tuples: Tuples) -> None:
        """Let streams go on seeing these values. A tuple that is withheld once is never corrected for streams again."""
        self._withheld.put(tuples.take(~self._withheld.holds(tuples.ident)))

    def forget(self, before: int, watermark: int) -> None:
        """Drop tuples of earlier ticks that have entered, up to the first that is not one."""
        number = self._segments.forget(before, watermark)
        if number is not None:
            self.first = number
            for by_number in (self._index, self.live, self.there, self.column_sets, self._revised, self._withheld):
                by_number.drop_before(number)

    # --- indexes -----------------------------------------------------------------------------------------------------

    def index_of(self, numbers: IntArray) -> IntArray:
        """Return the index of each tuple; 0 if it has not entered."""
        return self._index.of(numbers)

    @property
    def last_index(self) -> int:
        """The index of the tuple that entered last; 0 if none has."""
        return self._index.last

    def indexes(self, tuples: Tuples, rows: IntArray) -> IntArray:
        """Return the indexes of the tuples at positions `rows`, at least one."""
        if self._segments.is_last(tuples) and (first := self._index.row_of(tuples.ident)):
            return rows + first
        return self.index_of(tuples.ident.take(rows))

    def find(self, indexes: IntArray) -> IntArray:
        """Return the number of the tuple with each index; -1 if there is none."""
        return self._index.find(indexes)

    # --- tuples ------------------------------------------------------------------------------------------------------

    def is_correctable(self, numbers: IntArray) -> BoolArray:
        """Return a mask of the numbers of tuples that corrections may name."""
        return (numbers >= self.first) & self.there[numbers]

    def is_visible(self, numbers: IntArray) -> BoolArray:
        """Return a mask of the numbers of held tuples that continuous queries see."""
        return (numbers >= self.first) & self.live[numbers]

    def current(self, numbers: IntArray) -> Tuples:
        """Return the tuples with these numbers, with their current values."""
        return self._revised.over(self._segments.of(numbers)) if len(numbers) else self.none

    def visible(self, numbers: IntArray) -> Tuples:
        """Return the tuples with these numbers, as continuous queries see them."""
        return self._withheld.over(self.current(numbers))

    def correctable(self) -> Tuples:
        """Return all tuples that corrections may name, with their current values."""
        held = self._all()
        return held.take(self.there[held.ident])

    def all_visible(self) -> Tuples:
        """Return all tuples that continuous queries may see, as they see them."""
        held = self._all()
        return self._withheld.over(held.take(self.live[held.ident]))

    def between(self, low: int, high: int) -> Tuples:
        """Return the tuples from tick low to tick high that continuous queries may see, as they see them."""
        found = self._revised.over(self._segments.between(low, high)) if self._segments else self.none
        return self._withheld.over(found.take(self.live[found.ident]))

    def row_history(self) -> tuple[IntArray, IntArray]:
        """Return (numbers, arrivals) of all held tuples that entered, in the order of their indexes."""
        held = self._all()
        index = self.index_of(held.ident)
        order = np.argsort(index)[int((index == 0).sum()) :]
        return held.ident[order], held.arrival[order]

    def arrivals(self, numbers: IntArray) -> IntArray:
        """Return the arrival of each tuple, at least one."""
        return self._segments.of(numbers).arrival

    def _all(self) -> Tuples:
        return self._revised.over(self._segments.all()) if self._segments else self.none
