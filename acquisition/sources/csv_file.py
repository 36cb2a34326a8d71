"""Read a CSV file block by block: numbers are parsed as numbers, and as text where that would not be exact.

Arrow's parser takes more for a number than a recording may contain: blanks around it, `0x1f`, `nan`. So a block that holds such
bytes is read as text, and `column_conversion` decides what each value is. So is a block in which anything fails: its text has
the answer, or the error with its row.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.csv as pc

from acquisition.errors import InputError
from acquisition.schema import Attribute, Type
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.blocks import Block, TableBlock
from acquisition.sources.column_conversion import TextNeededError
from acquisition.sources.csv import no_header, open_stream, read_header, read_table, unreadable_error
from acquisition.sources.csv_dialect import COMMA, CsvDialect
from acquisition.sources.csv_rows import find_header_end, find_row_end
from acquisition.sources.recorded_table import RecordedTable
from acquisition.sources.value_conversion import quote_value

ConvertedT = TypeVar("ConvertedT")

BLOCK_BYTES = 1 << 20
"""About how much of a file is read at once; a row that is longer is read whole."""
_LOOSE = (b" ", b"\t", b"x", b"X")
_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8. Arrow leaves it out at the beginning of anything that it reads."""
_STRING = pa.string()


class CsvFile:
    """A CSV file, maybe compressed, in blocks of whole rows."""

    def __init__(
        self,
        path: str | PathLike[str] | bytes,
        name: str | None = None,
        block: int = BLOCK_BYTES,
        dialect: CsvDialect = COMMA,
        bad: BadRows | None = None,
    ) -> None:
        """`path` may be the content itself. Rows of another width than the header, or that are not UTF-8, are left out with `bad`."""
        self._path, self._block = path, block
        self.name = name or ("input" if isinstance(path, bytes) else str(path))
        self._dialect, self._bad = dialect, bad

    @property
    def size(self) -> int:
        """The bytes of the file: a number and its comma take about 8. Nothing for bytes, which are in memory."""
        if isinstance(self._path, bytes):
            return 0
        try:
            return Path(self._path).stat().st_size
        except OSError:
            return 0

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        """Yield blocks of about `block` bytes. Raises InputError."""
        header, first = self._dialect.header if self._dialect.columns else b"", 0
        names: Sequence[str] = ()
        types: dict[str, Any] = {}
        for rows in self._rows():
            if not names:
                if not header:
                    if not rows.strip(b"\r\n"):
                        continue
                    end = find_header_end(rows, self._dialect.separator)
                    if end is None:
                        yield TableBlock(self._clean(self.whole(), attributes))
                        return
                    header, rows = rows[:end], rows[end:]
                names = read_header(header, self.name, self._dialect)
                self._expect_delimiter(names, attributes)
                types = {name: _TYPES[attributes[name].type] for name in names if name in attributes}
            kept = [name for name in names if wanted is None or name in wanted]
            if rows or not first:
                block = _CsvBlock(self, header, rows, names, types, kept, first, attributes)
                yield block
                first += block.length
        if not names:
            raise no_header(self.name)

    def whole(self) -> RecordedTable:
        """Return all rows as text. Raises InputError."""
        return self.read_text(self._dialect.header * bool(self._dialect.columns) + b"".join(self._rows()), 0)

    def read_text(self, data: bytes, first: int, attributes: Mapping[str, Attribute] | None = None) -> RecordedTable:
        """Return a header and rows as text; `first` rows precede them. Raises InputError."""
        return self._clean(read_table(data, self.name, first, self._dialect, self._bad), attributes or {})

    def parse(self, rows: bytes, names: Sequence[str], wanted: Sequence[str], types: Mapping[str, Any]) -> Any:
        """Return wanted columns of rows as an Arrow table; None if a row or a value does not fit, or may not be as it stands."""
        if rows.startswith(_MARK):
            return None
        reading = pc.ReadOptions(use_threads=False, column_names=names, block_size=len(rows) + 1)
        parse = pc.ParseOptions(delimiter=self._dialect.separator, newlines_in_values=b'"' in rows)
        convert = pc.ConvertOptions(
            column_types={name: types.get(name, _STRING) for name in names},
            include_columns=wanted,
            null_values=["", *self._dialect.nulls],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        try:
            return pc.read_csv(pa.BufferReader(rows), reading, parse, convert)
        except pa.ArrowInvalid:
            return None

    def advise(self, text: str) -> str | None:
        """Return the option that reads a text as a number, or as null; None where no option does."""
        return self._dialect.advise(text)

    @property
    def loose(self) -> list[bytes]:
        """Bytes that Arrow allows in a number, and a recording does not."""
        return [sign for sign in _LOOSE if sign != self._dialect.separator.encode()]

    @property
    def is_parsed(self) -> bool:
        """Whether numbers are written as Arrow reads them."""
        return self._dialect.decimal == "."

    def _clean(self, table: RecordedTable, attributes: Mapping[str, Attribute]) -> RecordedTable:
        """Return the table with numbers that have a decimal point."""
        if self.is_parsed:
            return table
        numeric = {name for name in table.columns if name in attributes and attributes[name].type.numeric}
        number_text = self._dialect.number_text
        columns = {name: number_text(column) if name in numeric else column for name, column in table.columns.items()}
        return replace(table, columns=columns)

    def _expect_delimiter(self, names: Sequence[str], attributes: Mapping[str, Attribute]) -> None:
        """Raise InputError if the header is one column that looks like several."""
        if len(names) == 1 and names[0] not in attributes:
            for sign in ";\t|":
                if sign in names[0]:
                    written = "'\\t'" if sign == "\t" else f"'{sign}'"
                    help = f"fields seem to be separated by {written}: give `--delimiter {written}`"
                    raise InputError(
                        "SN502", f"the header is one column, {quote_value(names[0])}", self.name, help=help
                    )

    def _rows(self) -> Iterator[bytes]:
        """Yield the bytes of the file, cut where a row ends; at least one piece."""
        rest, size, skip = b"", self._block, self._dialect.skip_lines
        try:
            with open_stream(self._path, self._dialect.encoding) as stream:
                rest = stream.read(2)
                self._expect_utf_8(rest)
                while chunk := stream.read(size):
                    data = rest + chunk if rest else chunk
                    while skip and b"\n" in data:
                        data, skip = data[data.index(b"\n") + 1 :], skip - 1
                    if skip:
                        rest = data
                        continue
                    end = find_row_end(data, self._dialect.delimiter)
                    size = self._block if end else 2 * size
                    if end:
                        yield self._dialect.separate_fields(data[:end])
                    rest = data[end:]
        except UnicodeDecodeError as error:
            raise InputError(
                "SN501", f"cannot be read as {self._dialect.encoding}: {error.reason}", self.name
            ) from None
        except (OSError, pa.ArrowInvalid) as error:
            raise unreadable_error(self.name, error) from None
        yield b"" if skip else self._dialect.separate_fields(rest)

    def _expect_utf_8(self, data: bytes) -> None:
        """Raise InputError if the bytes begin as UTF-16 does."""
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            help = "give `--encoding utf-16`, or save the file in UTF-8"
            raise InputError("SN502", "is UTF-16, not UTF-8", self.name, help=help)


_TYPES = {Type.INTEGER: pa.int64(), Type.TIME: pa.int64(), Type.FLOAT: pa.float64(), Type.STRING: _STRING}


class _CsvBlock:
    """Rows of a CSV file. `types` are those in which numbers are parsed; a column that fails loses its own."""

    def __init__(
        self,
        file: CsvFile,
        header: bytes,
        rows: bytes,
        names: Sequence[str],
        types: dict[str, Any],
        wanted: Sequence[str],
        first: int,
        attributes: Mapping[str, Attribute],
    ) -> None:
        self._file, self._attributes = file, attributes
        self._header, self._rows, self._names, self._types = header, rows, names, types
        self._wanted, self._first = wanted, first
        self._text: RecordedTable | None = None
        self._length: int | None = None

    @property
    def length(self) -> int:
        """How many rows the block has."""
        if self._length is None:
            self._length = len(self._as_text()) + self._as_text().omitted
        return self._length

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        """Return what a conversion makes of the parsed numbers, or of their text. Raises InputError."""
        recorded = self._parse()
        if recorded is not None:
            self._length = len(recorded)
            try:
                return conversion(recorded)
            except (TextNeededError, InputError):
                pass
        try:
            return conversion(self._as_text())
        except InputError as error:
            raise self._with_advice(error) from None

    def _with_advice(self, error: InputError) -> InputError:
        """Return the error of a value, with the option that would read it."""
        text, column = self._as_text(), error.column
        if error.code != "SN506" or error.help or error.row is None or column is None or column not in text.columns:
            return error
        [position] = text.positions([error.row])
        help = self._file.advise(text.columns[column][position].as_py())
        return InputError(error.code, error.message, error.file, error.row, column, help, error.rows)

    def _as_text(self) -> RecordedTable:
        if self._text is None:
            self._text = self._file.read_text(self._header + self._rows, self._first, self._attributes)
        return self._text

    def _parse(self) -> RecordedTable | None:
        """Return the rows with numbers; None if only their text can be trusted."""
        trusted = self._file.is_parsed and not any(loose in self._rows for loose in self._file.loose)
        if len(self._names) == 1 or not self._wanted or not trusted:
            return None
        table = self._read(self._types)
        if table is None and any(type_ != _STRING for type_ in self._types.values()):
            self._forget_failing()
            table = self._read(self._types)
        if table is None:
            return None
        columns = dict(zip(self._wanted, table.columns, strict=True))
        return RecordedTable(self._file.name, columns, table.num_rows, text=True, parsed=True, first=self._first)

    def _forget_failing(self) -> None:
        """Read columns as text from now on that hold something else than numbers, such as times."""
        table = self._read({})
        for name, type_ in self._types.items() if table is not None else ():
            if name in self._wanted:
                try:
                    table.column(name).cast(type_)
                except pa.ArrowInvalid:
                    self._types[name] = _STRING

    def _read(self, types: Mapping[str, Any]) -> Any:
        return self._file.parse(self._rows, self._names, self._wanted, types)
