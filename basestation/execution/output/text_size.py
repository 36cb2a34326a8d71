"""Text size: the memory that updates take as text, in which stations, replays and clients pass them on."""

import numpy as np

from acquisition.arrays import AnyArray, IntArray
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
    WindowUpdates,
)

ROW_BYTES, VALUE_BYTES = 100, 150
"""A row with two integers took up to 400 bytes on its way into a journal: Python's tuple and numbers, the line, and copies of it."""


def estimate_text_bytes(update: Update | SharedUpdate) -> int:
    """Return the bytes that an update takes while it becomes text, beside its columns: of windows, which become so one by one, the largest."""
    match update:
        case WindowUpdates():
            rows = np.diff(update.added_offsets) * _row_bytes(update.added)
            return _largest(rows + np.diff(update.removed_offsets) * _row_bytes(update.removed))
        case TupleUpdates():
            return len(update) * _row_bytes(update.rows)
        case Interleaved():
            return estimate_text_bytes(update.tuples)
        case SharedTupleUpdates():
            return _largest(update.behind - update.begin) * _row_bytes(update.rows)
        case SharedWindowUpdates():
            return _largest(np.diff(update.at)) * _row_bytes(update.rows)
    return 0


def _largest(counts: IntArray) -> int:
    return int(counts.max(initial=0))


def _row_bytes(rows: Rows) -> int:
    return ROW_BYTES + sum(VALUE_BYTES + _longest_text(column) for column in rows.whole)


def _longest_text(column: Vector) -> int:
    """The length of the longest string in a column; of one with a dictionary, in that."""
    entries: AnyArray = column.dictionary.values if isinstance(column, DictionaryVector) else column.values
    if entries.dtype != object:
        return 0
    return max((len(entry) for entry in entries.tolist() if isinstance(entry, str)), default=0)
