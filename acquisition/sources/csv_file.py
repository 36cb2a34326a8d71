"""Read a CSV file block by block: numbers are parsed as numbers, and as text where that would not be exact.

Arrow's parser takes more for a number than a recording may contain: blanks around it, `0x1f`, `nan`. So a block that holds such
bytes is read as text, and `column_conversion` decides what each value is. So is a block in which anything fails: its text has
the answer, or the error with its row.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv as pc

from acquisition.errors import InputError
from acquisition.schema import Attribute, Type
from acquisition.sources.blocks import Block, TableBlock
from acquisition.sources.column_conversion import TextNeededError
from acquisition.sources.csv import no_header, open_stream, read_csv, read_header, read_table, unreadable_error
from acquisition.sources.csv_rows import find_header_end, find_row_end
from acquisition.sources.recorded_table import RecordedTable

ConvertedT = TypeVar("ConvertedT")

BLOCK_BYTES = 1 << 20
"""About how much of a file is read at once; a row that is longer is read whole."""
_LOOSE = (b" ", b"\t", b"x", b"X")
"""Bytes that Arrow allows in a number, and a recording does not."""
_STRING = pa.string()


class CsvFile:
    """A CSV file, maybe compressed, in blocks of whole rows."""

    def __init__(self, path: str | PathLike[str], name: str | None = None, block: int = BLOCK_BYTES) -> None:
        self._path, self.name, self._block = path, name or str(path), block

    @property
    def size(self) -> int:
        """The bytes of the file: a number and its comma take about 8."""
        try:
            return Path(self._path).stat().st_size
        except OSError:
            return 0

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        """Yield blocks of about `block` bytes. Raises InputError."""
        header, first = b"", 0
        names: Sequence[str] = ()
        types: dict[str, Any] = {}
        for rows in self._rows():
            if not names:
                if not rows.strip(b"\r\n"):
                    continue
                end = find_header_end(rows)
                if end is None:
                    yield TableBlock(self.whole())
                    return
                header, rows = rows[:end], rows[end:]
                names = read_header(header, self.name)
                types = {name: _TYPES[attributes[name].type] for name in names if name in attributes}
            kept = [name for name in names if wanted is None or name in wanted]
            if rows or not first:
                block = _CsvBlock(header, rows, names, types, kept, self.name, first)
                yield block
                first += block.length
        if not names:
            raise no_header(self.name)

    def whole(self) -> RecordedTable:
        """Return all rows as text. Raises InputError."""
        return read_csv(self._path, self.name)

    def _rows(self) -> Iterator[bytes]:
        """Yield the bytes of the file, cut where a row ends; at least one piece."""
        rest, size = b"", self._block
        try:
            with open_stream(self._path) as stream:
                while chunk := stream.read(size):
                    data = rest + chunk if rest else chunk
                    end = find_row_end(data)
                    size = self._block if end else 2 * size
                    if end:
                        yield data[:end]
                    rest = data[end:]
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable_error(self.name, error) from None
        yield rest


_TYPES = {Type.INTEGER: pa.int64(), Type.TIME: pa.int64(), Type.FLOAT: pa.float64(), Type.STRING: _STRING}


class _CsvBlock:
    """Rows of a CSV file. `types` are those in which numbers are parsed; a column that fails loses its own."""

    def __init__(
        self,
        header: bytes,
        rows: bytes,
        names: Sequence[str],
        types: dict[str, Any],
        wanted: Sequence[str],
        name: str,
        first: int,
    ) -> None:
        self._header, self._rows, self._names, self._types = header, rows, names, types
        self._wanted, self._name, self._first = wanted, name, first
        self._text: RecordedTable | None = None
        self._length: int | None = None

    @property
    def length(self) -> int:
        """How many rows the block has."""
        return len(self._as_text()) if self._length is None else self._length

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        """Return what a conversion makes of the parsed numbers, or of their text. Raises InputError."""
        recorded = self._parse()
        if recorded is not None:
            self._length = len(recorded)
            try:
                return conversion(recorded)
            except (TextNeededError, InputError):
                pass
        return conversion(self._as_text())

    def _as_text(self) -> RecordedTable:
        if self._text is None:
            self._text = read_table(self._header + self._rows, self._name, self._first)
        return self._text

    def _parse(self) -> RecordedTable | None:
        """Return the rows with numbers; None if only their text can be trusted."""
        if len(self._names) == 1 or not self._wanted or any(loose in self._rows for loose in _LOOSE):
            return None
        parse = pc.ParseOptions(newlines_in_values=b'"' in self._rows)
        table = self._read(parse, self._types)
        if table is None and any(type_ != _STRING for type_ in self._types.values()):
            self._forget_failing(parse)
            table = self._read(parse, self._types)
        if table is None:
            return None
        columns = dict(zip(self._wanted, table.columns, strict=True))
        return RecordedTable(self._name, columns, table.num_rows, text=True, parsed=True, first=self._first)

    def _forget_failing(self, parse: Any) -> None:
        """Read columns as text from now on that hold something else than numbers, such as times."""
        table = self._read(parse, {})
        for name, type_ in self._types.items() if table is not None else ():
            if name in self._wanted:
                try:
                    table.column(name).cast(type_)
                except pa.ArrowInvalid:
                    self._types[name] = _STRING

    def _read(self, parse: Any, types: Mapping[str, Any]) -> Any:
        """Return the wanted columns; None if a row or a value does not fit."""
        reading = pc.ReadOptions(use_threads=False, column_names=self._names, block_size=len(self._rows) + 1)
        convert = pc.ConvertOptions(
            column_types={name: types.get(name, _STRING) for name in self._names},
            include_columns=self._wanted,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            return pc.read_csv(pa.BufferReader(self._rows), reading, parse, convert)
        except pa.ArrowInvalid:
            return None
