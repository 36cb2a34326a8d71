"""Text size: the memory that updates take as text, in which stations, replays and clients pass them on."""

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.dictionary_vector import DictionaryVector
from basestation.algebra.vector import Vector
from basestation.updates.update import (
    Interleaved,
    Rows,
    SharedTupleUpdates,
    SharedUpdate,
    SharedWindowUpdates,
    TupleUpdates,
    Update,
    Value,
    WindowUpdates,
)

ROW_BYTES, VALUE_BYTES = 100, 150
"""A row with two integers took up to 400 bytes on its way into a journal: Python's tuple and numbers, the line, and copies of it."""


def estimate_text_bytes(update: Update | SharedUpdate) -> int:
    """Return the bytes that an update takes while it becomes text, beside its columns: of windows, which become so one by one, the largest."""
    match update:
        case WindowUpdates():
            return _bytes(update.added, np.diff(update.added_offsets)) + _bytes(
                update.removed, np.diff(update.removed_offsets)
            )
        case TupleUpdates():
            return _bytes(update.rows, np.array([len(update)]))
        case Interleaved():
            return estimate_text_bytes(update.tuples)
        case SharedTupleUpdates():
            return _bytes(update.rows, update.behind - update.begin)
        case SharedWindowUpdates():
            return _bytes(update.rows, np.diff(update.at))
    return 0


def _bytes(rows: Rows, counts: IntArray) -> int:
    """The bytes of the largest of some parts of rows."""
    most, columns = int(counts.max(initial=0)), rows.whole
    return most * (ROW_BYTES + VALUE_BYTES * len(columns)) + sum(_string_bytes(column, most) for column in columns)


def _string_bytes(column: Vector, most: int) -> int:
    """At most so many bytes are the strings of so many rows of a column."""
    if isinstance(column, DictionaryVector):
        entries = column.dictionary.values
        if entries.dtype != object:
            return 0
        lengths = np.fromiter(map(_length, entries.tolist()), np.int64, len(entries))
        return min(most * int(lengths.max(initial=0)), int(lengths[column.codes].sum()))
    if column.values.dtype != object:
        return 0
    found = [*map(_length, column.values.tolist())]
    return min(most * max(found, default=0), sum(found))


def _length(value: Value) -> int:
    return len(value) if isinstance(value, str) else 0
