"""DictionaryVector: a column as codes into a dictionary of values; it is decoded when its values are needed.

Copying a string costs a reference count. So joins and windows pass codes on, equality of rows is decided by the
entries of the dictionary, and the strings of an answer are decoded last.
"""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.vector import Selection, Vector, as_positions, take_at


class Dictionary(Vector):
    """The values that codes stand for.

    `entry_ids` is None until it is needed: (a number for each entry, equal for equal entries; how many numbers there are).
    """

    __slots__ = ("entry_ids",)

    def __init__(self, values: AnyArray, valid: BoolArray | None = None) -> None:
        super().__init__(values, valid)
        self.entry_ids: tuple[IntArray, int] | None = None


class DictionaryVector(Vector):
    """`codes` has for each tuple the position of its value in `dictionary`, which never changes."""

    __slots__ = ("_valid", "_values", "codes", "dictionary")

    def __init__(self, dictionary: Dictionary, codes: IntArray) -> None:
        self.dictionary, self.codes = dictionary, codes
        self._values: AnyArray | None = None
        self._valid: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def values(self) -> AnyArray:  # type: ignore[override]  # computed when it is first read; records are never written to
        if self._values is None:
            self._values = self.dictionary.values.take(self.codes)
        return self._values

    @property
    def valid(self) -> BoolArray | None:  # type: ignore[override]  # as `values`
        if self._valid is None and self.dictionary.valid is not None:
            self._valid = self.dictionary.valid.take(self.codes)
        return self._valid

    def __reduce__(self) -> tuple[type[Vector], tuple[AnyArray, BoolArray | None]]:
        return Vector, (self.values, self.valid)

    def take(self, which: Selection) -> Vector:
        return DictionaryVector(self.dictionary, take_at(self.codes, as_positions(which)))

    @property
    def has_few_entries(self) -> bool:
        """Whether the dictionary is no longer than the column."""
        return len(self.dictionary) <= len(self.codes)


def decode(vector: Vector) -> Vector:
    """The column as a plain Vector."""
    return Vector(vector.values, vector.valid) if isinstance(vector, DictionaryVector) else vector


def concatenate_encoded(vectors: Sequence[Vector]) -> DictionaryVector | None:
    """Columns over one dictionary, one after another; None if they do not all share it."""
    encoded = [vector for vector in vectors if isinstance(vector, DictionaryVector)]
    if len(encoded) < len(vectors) or any(vector.dictionary is not encoded[0].dictionary for vector in encoded):
        return None
    return DictionaryVector(encoded[0].dictionary, np.concatenate([vector.codes for vector in encoded]))
