"""Answers: what the engine says at the end of a clock tick: windows and their revisions, tuples of streams, marks, ends.

An answer is a history of these (SEMANTICS 12.1); the current answer is their sum. Rows are columnar: a tuple of Vectors
in the order of the SELECT list, so that two columns may have one name. A column with a scale holds whole multiples.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from basestation.algebra.vector import Vector

Coverage = Mapping[str, tuple[int, int] | None]
"""For each extent below: (used, due), or None for a pushed one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Tuples as columns; the length is told apart because there may be no columns."""

    columns: tuple[Vector, ...]
    length: int

    def __len__(self):
        return self.length

    def take(self, positions):
        return Rows(tuple(c.take(positions) for c in self.columns), len(positions))

    def to_lists(self, scales=None):
        """The rows as Python tuples, None for null; scaled columns as the doubles they stand for."""
        scales = scales or [None] * len(self.columns)
        listed = [_values(c, scale) for c, scale in zip(self.columns, scales, strict=True)]
        return list(zip(*listed, strict=True)) if listed else [()] * self.length


def _values(vector, scale):
    if scale is None:
        return vector.to_list()
    return [None if v is None else v / 10**scale for v in vector.to_list()]


@dataclass(frozen=True, slots=True)
class WindowUpdate:
    """Revision 0 is the first answer of the window (tick, n); later ones take rows back and give rows."""

    query: int
    tick: int
    n: int
    t: int | tuple | None  # the variable of a loop
    revision: int
    coverage: Coverage
    added: Rows
    removed: Rows


@dataclass(frozen=True, slots=True)
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
        return TupleUpdates(self.query, *tags, self.rows.take(np.arange(len(self))[positions]))


@dataclass(frozen=True, slots=True)
class EpochMark:
    """The epoch at a tick of a stream is complete, or its coverage has changed (12.3)."""

    query: int
    tick: int
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Ended:
    """The query has ended with an error of kind input (14); nothing follows. `code` is one of the catalogue (SN5xx)."""

    query: int
    code: str
    message: str
    clock: int


Update = WindowUpdate | TupleUpdates | EpochMark | Ended
