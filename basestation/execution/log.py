"""Log: every tuple that was taken of an extent, by its number, for as long as a correction may name it.

Tuples are numbered 0, 1, 2, … as they are taken. The log knows of each its values, its index, whether continuous queries see
it and whether it is still there.
"""

from dataclasses import replace

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.numbered import Numbered
from basestation.execution.tuples import Growing

_NONE = np.empty(0, np.int64)


class Log:
    def __init__(self, none):
        """`none` are no tuples, with all columns."""
        self.none = none
        self.next = 0
        self.live = Numbered(bool)  # seen by continuous queries
        self.there = Numbered(bool)  # not deleted, nor dropped
        self._index = Numbered(np.int64)  # 0: not entered yet
        self._held = Growing()
        self._withheld = Growing()  # tuples as streams go on seeing them where a correction was not for streams
        self._entered = 0

    # --- what happens ------------------------------------------------------------------------------------------------

    def add(self, tuples, live, there):
        """Tuples that were taken, with the next numbers."""
        new = slice(self.next, self.next + len(tuples))
        self._held.add(tuples)
        self.next = new.stop
        self._index[new] = 0
        self.live[new], self.there[new] = live, there

    def enter(self, numbers):
        """Tuples take the next indexes, in this order."""
        indexes = np.arange(self._entered + 1, self._entered + 1 + len(numbers))
        self._index[numbers] = indexes
        self._entered += len(numbers)
        return indexes

    def delete(self, numbers, said):
        """Tuples are there no more; those under the mask `said` are seen no more either."""
        self.live[numbers[said]] = False
        self.there[numbers] = False

    def revise(self, numbers, columns):
        """Tuples have other values."""
        held = self._held.all()
        changed = {name: _with(held.columns[name], numbers - self._base, v) for name, v in columns.items()}
        self._held = Growing()
        self._held.add(replace(held, columns=changed))

    def withhold(self, tuples):
        """Streams go on seeing these values. What is not corrected once is never corrected again."""
        held = self._withheld.all()
        self._withheld.add(tuples if held is None else tuples.take(~np.isin(tuples.ident, held.ident)))

    def forget(self, before):
        """Let go of tuples of earlier ticks that wait for nothing, up to the first that is none of them."""
        held = self._held.all()
        if held is None:
            return
        young = np.flatnonzero((held.tick >= before) | ~self._done(held))
        first = int(young[0]) if len(young) else len(held)
        if first:
            number = int(held.ident[0]) + first
            self._held.keep(np.arange(len(held)) >= first)
            if (withheld := self._withheld.all()) is not None:
                self._withheld.keep(withheld.ident >= number)
            for by_number in (self._index, self.live, self.there):
                by_number.drop_before(number)

    def _done(self, tuples):
        """Tuples that wait for nothing: entered, or never to enter."""
        return (self._index[tuples.ident] > 0) | ~self.live[tuples.ident]

    # --- what is there -----------------------------------------------------------------------------------------------

    @property
    def first(self):
        """The number of the first tuple that is still here."""
        return self.live.base

    def index_of(self, numbers):
        """0 where a tuple has not entered yet."""
        return self._index[numbers]

    def find(self, index):
        """The number of the tuple that entered with an index; -1 where there is none."""
        return self._index.find(index)

    def names(self, number):
        """Whether a number is that of a tuple that corrections may name."""
        return number >= self.there.base and bool(self.there[number])

    def held(self, numbers):
        """The tuples of these numbers as they are now."""
        return self._held.all().take(numbers - self._base)

    def rows(self, numbers):
        """The tuples of these numbers as continuous queries see them now."""
        return self._as_said(self.held(numbers)) if len(numbers) else self.none

    def known(self):
        """All tuples that corrections may name, as they are now; None where there never were any."""
        held = self._held.all()
        return None if held is None else held.take(self.there[held.ident])

    def living(self):
        """All tuples that continuous queries may see, as they see them now."""
        held = self._held.all()
        return self.none if held is None else self._as_said(held.take(self.live[held.ident]))

    def rows_ever(self):
        """(numbers, arrivals) of all tuples that are here and entered, in the order of their indexes."""
        held = self._held.all()
        if held is None:
            return _NONE, _NONE
        index = self._index[held.ident]
        order = np.argsort(index)[int((index == 0).sum()) :]
        return held.ident[order], held.arrival[order]

    def arrivals(self, numbers):
        return self._held.all().arrival[numbers - self._base]

    def _as_said(self, tuples):
        """With the values that streams go on seeing."""
        held = self._withheld.all()
        if held is None or not len(held):
            return tuples
        which = np.isin(tuples.ident, held.ident)
        place = np.searchsorted(held.ident, tuples.ident[which], sorter=(order := np.argsort(held.ident)))
        said = held.take(order[place])
        columns = {name: _with(v, which, said.columns[name]) for name, v in tuples.columns.items()}
        return tuples.with_columns(columns)

    @property
    def _base(self):
        return self._held.all().ident[0]


def _with(vector, positions, new):
    """A Vector with some entries changed; the old one stays as it was."""
    values, valid = vector.values.copy(), vector.there.copy()
    values[positions], valid[positions] = new.values, new.there
    return Vector(values, None if valid.all() else valid)
