"""Log: every tuple that was taken of an extent, by its number, for as long as a correction may name it.

Tuples are numbered 0, 1, 2, … as they are taken. They stay in the batches in which they came; of what became of them only that
is noted which is not the rule: that a tuple is seen, is there, enters in the order of its number, and keeps its values.
"""

import numpy as np

from basestation.algebra.vector import all_true
from basestation.execution.columns.segmented_log import SegmentedLog
from basestation.execution.columns.sparse_flags import SparseFlags
from basestation.execution.columns.tuple_indexes import TupleIndexes
from basestation.execution.columns.value_overrides import ValueOverrides
from basestation.execution.ingest.column_sets import ColumnSets


class TupleLog:
    def __init__(self, none):
        """`none` are no tuples, with all columns."""
        self.none = none
        self.next = self.first = 0  # the number of the next tuple, and of the first that is still here
        self.live = SparseFlags()  # seen by continuous queries
        self.there = SparseFlags()  # not deleted, nor dropped
        self.column_sets = ColumnSets()
        self._came = SegmentedLog()
        self._revised = ValueOverrides()
        self._withheld = ValueOverrides()  # what streams go on seeing where a correction was not for streams
        self._index = TupleIndexes()

    # --- what happens ------------------------------------------------------------------------------------------------

    def add(self, tuples, live, there, column_sets, ordered=False):
        """Tuples that were taken, with the next numbers; masks of which are seen, and which are there; the columns that they came with.

        `ordered`: it is known that they arrive one after another, at the ticks that they are about.
        """
        self._came.add(tuples, ordered)
        self.column_sets.record(self.next, column_sets)
        self.next += len(tuples)
        for excepted, holds in ((self.live, live), (self.there, there)):
            if not all_true(holds):
                excepted.clear(tuples.ident[~holds])

    def enter(self, tuples):
        """Tuples, at least one, take the next indexes, in this order."""
        numbers = tuples.ident
        in_a_row = self._came.is_last(tuples) or bool((numbers[1:] == numbers[:-1] + 1).all())
        self._index.enter(numbers, in_a_row)

    def delete(self, numbers, said):
        """Tuples are there no more; those under the mask `said` are seen no more either."""
        self.live.clear(numbers[said])
        self.there.clear(numbers)

    def revise(self, tuples):
        """Tuples have these values."""
        self._revised.put(tuples)

    def withhold(self, tuples):
        """Streams go on seeing these values. What is not corrected once is never corrected again."""
        self._withheld.put(tuples.take(~self._withheld.holds(tuples.ident)))

    def forget(self, before, watermark):
        """Let go of tuples of earlier ticks that wait for nothing, up to the first that is none of them."""
        number = self._came.forget(before, watermark)
        if number is not None:
            self.first = number
            for by_number in (self._index, self.live, self.there, self.column_sets, self._revised, self._withheld):
                by_number.drop_before(number)

    # --- what is there -----------------------------------------------------------------------------------------------

    def index_of(self, numbers):
        """0 where a tuple has not entered yet."""
        return self._index.of(numbers)

    @property
    def last_index(self):
        return self._index.last

    def indexes(self, tuples, rows):
        """Those of some rows of tuples, at least one."""
        if self._came.is_last(tuples) and (first := self._index.row_of(tuples.ident)):
            return rows + first
        return self.index_of(tuples.ident.take(rows))

    def find(self, indexes):
        """The numbers of the tuples that entered with some indexes; -1 where there is none."""
        return self._index.find(indexes)

    def names(self, numbers):
        """Which numbers are those of tuples that corrections may name."""
        return (numbers >= self.first) & self.there[numbers]

    def sees(self, numbers):
        """Which numbers are those of tuples that are still here and that continuous queries see."""
        return (numbers >= self.first) & self.live[numbers]

    def held(self, numbers):
        """The tuples of these numbers as they are now."""
        return self._revised.over(self._came.of(numbers)) if len(numbers) else self.none

    def rows(self, numbers):
        """The tuples of these numbers as continuous queries see them now."""
        return self._withheld.over(self.held(numbers))

    def known(self):
        """All tuples that corrections may name, as they are now."""
        all_ = self._all()
        return all_.take(self.there[all_.ident])

    def living(self):
        """All tuples that continuous queries may see, as they see them now."""
        all_ = self._all()
        return self._withheld.over(all_.take(self.live[all_.ident]))

    def between(self, low, high):
        """The tuples from tick low to tick high that continuous queries may see, as they see them now."""
        found = self._revised.over(self._came.between(low, high)) if self._came else self.none
        return self._withheld.over(found.take(self.live[found.ident]))

    def row_history(self):
        """(numbers, arrivals) of all tuples that are here and entered, in the order of their indexes."""
        all_ = self._all()
        index = self.index_of(all_.ident)
        order = np.argsort(index)[int((index == 0).sum()) :]
        return all_.ident[order], all_.arrival[order]

    def arrivals(self, numbers):
        return self._came.of(numbers).arrival

    def _all(self):
        return self._revised.over(self._came.all()) if self._came else self.none
