"""Placed: a column whose entries stand in another one, at places; they are looked up when somebody wants them.

A string is dear to copy, each copy is counted. So joins and windows pass places on, rows that are equal are told by the
strings of a table and not by those of all rows, and the strings of an answer are written when all else is done.
"""

import numpy as np

from basestation.algebra.vector import Vector, places, taken


class Entries(Vector):
    """A column that others stand in; `numbers` tells its entries apart, once somebody has asked."""

    __slots__ = ("numbers",)

    def __init__(self, values, valid=None):
        super().__init__(values, valid)
        self.numbers = None


class Placed(Vector):
    """`some` are the Entries, which do not change; a place among them for each entry here."""

    __slots__ = ("_valid", "_values", "at", "some")

    def __init__(self, some, at):
        self.some, self.at, self._values, self._valid = some, at, None, None

    def __len__(self):
        return len(self.at)

    @property
    def values(self):
        if self._values is None:
            self._values = self.some.values.take(self.at)
        return self._values

    @property
    def valid(self):
        if self._valid is None and self.some.valid is not None:
            self._valid = self.some.valid.take(self.at)
        return self._valid

    def __reduce__(self):
        return Vector, (self.values, self.valid)

    def take(self, which):
        return Placed(self.some, taken(self.at, places(which)))

    @property
    def few(self):
        """Whether there are less entries than places."""
        return len(self.some) <= len(self.at)


def written(vector):
    """A column with its entries written out."""
    return Vector(vector.values, vector.valid) if isinstance(vector, Placed) else vector


def in_a_row(vectors):
    """Columns that stand in one other column, one after another; None where they do not."""
    if not all(isinstance(vector, Placed) and vector.some is vectors[0].some for vector in vectors):
        return None
    return Placed(vectors[0].some, np.concatenate([vector.at for vector in vectors]))
