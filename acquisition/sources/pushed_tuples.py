"""Tuples that clients push, as bytes: JSON lines, CSV, an Arrow stream or SenML. Wrong rows are rejected one by one.

A row has the attributes of its extent, and `_tick` (or `_time`) if it has a time stamp of its own. An attribute that an object
does not have is null. Times are ticks or RFC 3339.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.errors import InputError
from acquisition.extent import Extent
from acquisition.schema import Attribute, Type
from acquisition.sources.batch_conversion import table_of
from acquisition.sources.column_conversion import convert_column
from acquisition.sources.csv import read_csv
from acquisition.sources.csv_rows import find_header_end
from acquisition.sources.json_rows import read_json_lines
from acquisition.sources.parquet import from_arrow
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.senml import read_senml

FORMATS = "jsonl", "json", "csv", "arrow", "senml"
MOST_REJECTED = 1_000
"""Rows of a push that may be wrong; one with more is refused as a whole, because its producer is wrong."""
MOST_ROWS = 100_000_000
MOST_ARROW_BYTES = 1 << 30
"""Of an Arrow body when it is unpacked: a compressed one, or one of nulls, has much more than it is long."""
_CHUNK = 1_024
"""Rows that are converted again, one part after the other, where one of them is wrong."""
_TICK = Attribute("_tick", Type.TIME)
_LAST_MS = 253_402_300_799_000
"""The end of the year 9999, behind which there is no RFC 3339 time."""
Part = tuple[RecordedTable, IntArray]
"""Rows, and the number of each in the body, from 1."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row that is not taken; `column` is None where it concerns the whole row."""

    row: int
    column: str | None
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class PushedTuples:
    """The tuples that are right, in the order of the body, and the rows that are wrong.

    `tick` has the time stamps; where `has_tick` is false a tuple has none of its own, so that its delivery is its time.
    """

    tick: IntArray
    has_tick: BoolArray
    columns: dict[str, AnyArray]
    valid: dict[str, BoolArray]
    rejected: tuple[RejectedRow, ...] = ()

    def __len__(self) -> int:
        return len(self.tick)


def read_tuples(body: bytes, form: str, extent: Extent, tick_ms: int, now_ms: int = 0) -> PushedTuples:
    """Read the tuples of a body in one of FORMATS. Relative times of SenML count from `now_ms`.

    Raises InputError where the whole body cannot be read, or more than MOST_REJECTED rows are wrong.
    """
    reader = _Reader(extent, tick_ms)
    for recorded, rows in _READERS[form](body, extent, reader.reject, tick_ms, now_ms):
        reader.take(recorded, rows)
    return reader.result()


Reject = Callable[[RejectedRow], None]


def _read_jsonl(body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int) -> Iterator[Part]:
    return read_json_lines(body, extent, lambda *wrong: reject(RejectedRow(*wrong)))


def _read_senml(body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int) -> Iterator[Part]:
    return read_senml(body, extent, lambda *wrong: reject(RejectedRow(*wrong)), tick_ms, now_ms)


def _read_csv(body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int) -> Iterator[Part]:
    try:
        recorded = read_csv(body, "body")
    except InputError as wrong:
        end = find_header_end(body)
        if not wrong.row or end is None:
            raise
        found = _read_csv_rows(body, end, reject)
        if found is None:
            raise
        yield found
        return
    yield recorded, np.arange(1, len(recorded) + 1)


def _read_csv_rows(body: bytes, header_end: int, reject: Reject) -> Part | None:
    """The rows of a CSV text that have as many fields as its header, the others are rejected; None if something else is wrong."""
    skipped: list[int] = []

    def skip(wrong: Any) -> str:
        row = wrong.number - 1  # the first is the header
        skipped.append(row)
        message = f"expected {wrong.expected_columns} fields, as in the header; found {wrong.actual_columns}"
        reject(RejectedRow(row, None, "SN502", message))
        return "skip"

    header = read_csv(body[:header_end], "body").columns
    try:
        table = pc.read_csv(
            pa.BufferReader(body),
            pc.ReadOptions(use_threads=False, block_size=len(body) + 1),
            pc.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            pc.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), null_values=[""], strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )  # fmt: skip
    except pa.ArrowInvalid:
        return None
    rows = np.setdiff1d(np.arange(1, table.num_rows + len(skipped) + 1), skipped)
    return RecordedTable("body", dict(zip(header, table.columns, strict=True)), table.num_rows, text=True), rows


def _read_arrow(body: bytes, extent: Extent, reject: Reject, tick_ms: int, now_ms: int) -> Iterator[Part]:
    first, size = 1, 0
    try:
        with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
            for batch in stream:
                plain = (column for column in batch.columns if not pa.types.is_dictionary(column.type))
                size += sum(column.get_total_buffer_size() for column in plain)  # batches share their dictionaries
                if first - 1 + len(batch) > MOST_ROWS or size > MOST_ARROW_BYTES:
                    raise InputError(
                        "SN502", f"expected at most {MOST_ROWS:,} rows and {MOST_ARROW_BYTES:,} bytes when unpacked",
                        "body", help="send it in parts",
                    )  # fmt: skip
                batch.validate(full=True)  # Arrow trusts string offsets without this
                yield from_arrow(batch, "body"), np.arange(first, first + len(batch))
                first += len(batch)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise InputError("SN502", f"expected an Arrow stream: {str(error).splitlines()[0]}", "body") from None


_READERS: dict[str, Callable[[bytes, Extent, Reject, int, int], Iterable[Part]]] = {
    "jsonl": _read_jsonl, "json": _read_jsonl, "csv": _read_csv, "arrow": _read_arrow, "senml": _read_senml,
}  # fmt: skip


@dataclass(slots=True)
class _Reader:
    """Converts rows of an extent, part by part."""

    extent: Extent
    tick_ms: int
    _parts: list[PushedTuples] = field(default_factory=list)
    _rejected: list[RejectedRow] = field(default_factory=list)

    def take(self, recorded: RecordedTable, rows: IntArray) -> None:
        """Convert rows; where one is wrong, the part that has it again in smaller parts."""
        pending: list[Part] = [(recorded, rows)]
        while pending:
            recorded, rows = pending.pop()
            try:
                self._parts.append(self._convert(recorded))
                continue
            except InputError as error:
                if error.row is None:
                    raise
                at = error.row - 1
                if len(rows) <= _CHUNK:
                    self.reject(RejectedRow(int(rows[at]), error.column, error.code, error.message))
                    cuts = [(at + 1, len(rows)), (0, at)]
                else:
                    cuts = [(begin, min(begin + _CHUNK, len(rows))) for begin in range(0, len(rows), _CHUNK)][::-1]
            pending += [(_slice(recorded, *cut), rows[slice(*cut)]) for cut in cuts if cut[0] < cut[1]]

    def reject(self, wrong: RejectedRow) -> None:
        self._rejected.append(wrong)
        if len(self._rejected) > MOST_REJECTED:
            first = min(self._rejected, key=lambda each: each.row)
            raise InputError(
                first.code, first.message, "body", first.row, first.column,
                f"more than {MOST_REJECTED:,} rows are wrong, so none is taken; this is the first",
            )  # fmt: skip

    def result(self) -> PushedTuples:
        """All tuples that are right."""
        parts = self._parts or [self._convert(RecordedTable("body", {}, 0))]
        names = parts[0].columns
        valid = {
            name: np.concatenate([part.valid.get(name, np.ones(len(part), bool)) for part in parts])
            for name in names
            if any(name in part.valid for part in parts)
        }
        return PushedTuples(
            np.concatenate([part.tick for part in parts]),
            np.concatenate([part.has_tick for part in parts]),
            {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
            valid,
            tuple(sorted(self._rejected, key=lambda each: each.row)),
        )

    def _convert(self, recorded: RecordedTable) -> PushedTuples:
        columns = dict(recorded.columns)
        if "_time" in columns and "_tick" not in columns:
            columns["_tick"] = columns.pop("_time")
            recorded = replace(recorded, columns=columns)
        recorded.expect(self.extent.schema.names, [*self.extent.schema.names, "_tick"])
        tick, present = np.zeros(len(recorded), np.int64), np.zeros(len(recorded), bool)
        if "_tick" in columns:
            tick, mask = convert_column(recorded, "_tick", _TICK, self.tick_ms)
            present = np.ones(len(recorded), bool) if mask is None else mask
            wrong = present & ((tick < 0) | (tick > _LAST_MS // self.tick_ms))
            if wrong.any():
                row = recorded.row(int(np.argmax(wrong)))
                raise InputError("SN506", "a time is between 1970 and 9999", "body", row, "_tick")
            del columns["_tick"]
        values, valid = table_of(replace(recorded, columns=columns), self.extent, self.tick_ms)
        return PushedTuples(tick, present, values, valid)


def _slice(recorded: RecordedTable, begin: int, end: int) -> RecordedTable:
    columns: dict[str, Sequence[object]] = {name: column[begin:end] for name, column in recorded.columns.items()}
    return replace(recorded, columns=columns, length=end - begin)
