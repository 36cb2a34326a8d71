"""Placed: a column whose entries stand in another one, at places; they are looked up when somebody wants them.

A string is dear to copy, each copy is counted. So joins and windows pass places on, rows that are equal are told by the
strings of a table and not by those of all rows, and the strings of an answer are written when all else is done.
"""

import numpy as np

from basestation.algebra.vector import Vector, as_positions, take_at


class Dictionary(Vector):
    """A column that others stand in; `numbers` tells its entries apart, once somebody has asked."""

    __slots__ = ("entry_ids",)

    def __init__(self, values, valid=None):
        super().__init__(values, valid)
        self.entry_ids = None


class DictionaryVector(Vector):
    """`some` are the Entries, which do not change; a place among them for each entry here."""

    __slots__ = ("_valid", "_values", "codes", "dictionary")

    def __init__(self, dictionary, codes):
        self.dictionary, self.codes, self._values, self._valid = dictionary, codes, None, None

    def __len__(self):
        return len(self.codes)

    @property
    def values(self):
        if self._values is None:
            self._values = self.dictionary.values.take(self.codes)
        return self._values

    @property
    def valid(self):
        if self._valid is None and self.dictionary.valid is not None:
            self._valid = self.dictionary.valid.take(self.codes)
        return self._valid

    def __reduce__(self):
        return Vector, (self.values, self.valid)

    def take(self, which):
        return DictionaryVector(self.dictionary, take_at(self.codes, as_positions(which)))

    @property
    def has_few_entries(self):
        """Whether there are less entries than places."""
        return len(self.dictionary) <= len(self.codes)


def decode(vector):
    """A column with its entries written out."""
    return Vector(vector.values, vector.valid) if isinstance(vector, DictionaryVector) else vector


def concatenate_encoded(vectors):
    """Columns that stand in one other column, one after another; None where they do not."""
    if not all(
        isinstance(vector, DictionaryVector) and vector.dictionary is vectors[0].dictionary for vector in vectors
    ):
        return None
    return DictionaryVector(vectors[0].dictionary, np.concatenate([vector.codes for vector in vectors]))
