"""Columns of answers as text: one Arrow string for each row, made by column instead of value by value.

Numbers look as Python's `repr` shows them, which is the shortest text that reads back as the same number.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquisition.arrays import AnyArray, FloatArray, IntArray
from acquisition.batch import values_of
from acquisition.sources.arrow_arrays import literal, mask_to_arrow, numbers_to_arrow, strings_to_arrow
from basestation.algebra.vector import Vector
from basestation.updates.update import Interleaved, Update


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of text of one update, each ended by a newline, as an Arrow array.

    `reached` has for each line the highest tick of the update up to it; `last` is the highest one of the whole update.
    """

    reached: IntArray
    text: Any
    last: int


_STRING = pa.string()
_NULL, _NOTHING = pa.nulls(1, _STRING)[0], literal("")
_EMPTY = strings_to_arrow([])
_PLAIN_LEAST, _PLAIN_LIMIT = 1e-4, 1e10
"""Arrow and Python both write doubles with a size from here up to there without an exponent."""


def text_of(vector: Vector, scale: int | None, quote: Callable[[str], str]) -> Any:
    """Return the values of a column as Arrow strings, null where they are null. `quote` encodes a string."""
    values = vector.values
    if values.dtype == object:
        text = _one_by_one(values.tolist(), scale, quote)
    else:
        if scale is not None:
            values = values_of(values, scale)
        text = _doubles(values) if values.dtype.kind == "f" else numbers(values)
    return text if vector.valid is None else pc.if_else(mask_to_arrow(vector.valid), text, _NULL)


def _one_by_one(values: Sequence[Any], scale: int | None, quote: Callable[[str], str]) -> Any:
    """Return strings and integers of more than 64 bits as text; each different value is encoded once."""
    known = {
        value: quote(value) if isinstance(value, str) else repr(value if scale is None else value / 10**scale)
        for value in set(values)
    }
    return strings_to_arrow([known[value] for value in values])


def _doubles(values: FloatArray) -> Any:
    size = np.abs(values)
    if not (((size >= _PLAIN_LEAST) & (size < _PLAIN_LIMIT)) | (size == 0)).all():
        return strings_to_arrow(list(map(repr, values.tolist())))
    text = numbers(values)
    whole = np.trunc(values) == values
    if not whole.any():
        return text
    return pc.if_else(mask_to_arrow(whole), pc.binary_join_element_wise(text, literal(".0"), _NOTHING), text)


def join_columns(pieces: Sequence[Any], null: str) -> Any:
    """Return one string for each row: the pieces, literal text or columns of it, one after the other."""
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    merged = [literal(piece) if isinstance(piece, str) else piece for piece in merged]
    return pc.binary_join_element_wise(*merged, _NOTHING, null_handling="replace", null_replacement=null)


def numbers(values: AnyArray) -> Any:
    """Return numbers as Arrow strings."""
    return numbers_to_arrow(values).cast(_STRING)


def lines_of(ticks: IntArray, which: IntArray | slice, text: Any) -> Lines:
    """Return the lines of an update with these ticks; `which` are the positions in it that the lines belong to."""
    reached = np.maximum.accumulate(ticks)
    return Lines(reached[which], text, int(reached[-1]))


def sequence_of(update: Interleaved) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ticks of tuples and marks in one sequence, and the positions of tuples and of marks in it."""
    tuples = np.arange(len(update.tuples))
    tuples += np.searchsorted(update.at, tuples, "right")
    marks = update.at + np.arange(len(update.at))
    ticks = np.empty(len(update), np.int64)
    ticks[tuples], ticks[marks] = update.tuples.tick, update.marks.tick
    return ticks, tuples, marks


def order_lines(queries: Mapping[int, Sequence[Lines]]) -> Any:
    """Return the lines of several queries in the order of ticks, those of one query in their order.

    A line of an earlier tick than one before it, a revision, keeps its place.
    """
    texts, reached, numbers = [_EMPTY], [], []
    for number, blocks in sorted(queries.items()):
        before = None
        for block in blocks:
            texts.append(block.text)
            reached.append(block.reached if before is None else np.maximum(block.reached, before))
            numbers.append(np.full(len(block.reached), number))
            before = block.last if before is None else max(before, block.last)
    lines = pa.concat_arrays(texts)
    if len(queries) < 2:
        return lines
    return lines.take(numbers_to_arrow(np.lexsort((np.concatenate(numbers), np.concatenate(reached)))))


def write_updates(updates: Iterable[Update], lines_of_update: Callable[[Update], Lines | None]) -> str:
    """Return the lines of updates, those of several queries in the order of ticks."""
    found: dict[int, list[Lines]] = {}
    for update in updates:
        lines = lines_of_update(update)
        if lines is not None:
            found.setdefault(update.query, []).append(lines)
    return to_text(order_lines(found))


def to_text(lines: Any) -> str:
    """Return all lines as one string."""
    if not len(lines):
        return ""
    offsets = np.frombuffer(lines.buffers()[1], np.int32)
    begin, end = offsets[[lines.offset, lines.offset + len(lines)]].tolist()
    return str(memoryview(lines.buffers()[2])[begin:end], "utf-8")
