"""Read CSV files: a header, then rows. An empty field is null, a quoted empty field is the empty string.

Arrow reads about three million rows a second and keeps the two apart, which Python's reader does not. Arrow is lenient
about one thing that this module checks: an unclosed quote would swallow the rest of the file as one value.
"""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from acquisition.errors import InputError
from acquisition.sources.csv_rows import find_header_end
from acquisition.sources.recorded_table import RecordedTable, unique_names

# Arrow's threads may outlive the interpreter, and one that then releases Python's memory aborts the process (exit 134). So files
# are read without threads. Nor does Arrow receive signals: Ctrl-C interrupts Python between two blocks.
pa.enable_signal_handlers(False)

_MOST_COLUMNS = 4096
_END = b"\x02end\x03"
"""The values of a row that is added after the last one. If it does not come out again, a quote is open at the end."""


def read_csv(source: str | PathLike[str] | bytes, name: str | None = None) -> RecordedTable:
    """Return the columns of a CSV file, given as a path or as bytes. Raises InputError."""
    name = name or (str(source) if not isinstance(source, bytes) else "input")
    return read_table(source if isinstance(source, bytes) else read_bytes(source, name), name)


def read_table(data: bytes, name: str, first: int = 0) -> RecordedTable:
    """Return the columns of a header and rows, as text; `first` rows of the file precede these. Raises InputError."""
    if not data[:4096].strip(b"\r\n") and not data.strip(b"\r\n"):
        raise no_header(name)
    data = data if data.endswith((b"\n", b"\r")) else data + b"\n"
    table = _table(data, name, first)
    if table.num_columns == 1 and any(blank in data for blank in (b"\n\n", b"\r\n\r\n", b"\r\r")):
        table = _table(data, name, first, blank_is_null=True)  # in a single column, an empty line is an empty field
    header = _names(table, name)
    rows = table.slice(1)
    return RecordedTable(name, dict(zip(header, rows.columns, strict=True)), rows.num_rows, text=True, first=first)


def read_header(header: bytes, name: str) -> list[str]:
    """Return the names of the columns. Raises InputError."""
    return _names(_table(header if header.endswith((b"\n", b"\r")) else header + b"\n", name, 0), name)


def no_header(name: str) -> InputError:
    """Return the error for a file without a header."""
    return InputError("SN502", "there is no header", name, help="the first line names the columns")


def _names(table: Any, name: str) -> list[str]:
    header: list[str] = [column[0].as_py() or "" for column in table.columns]
    if "" in header:
        position = header.index("") + 1
        raise InputError("SN502", f"column {position} has no name in the header", name)
    unique_names(header, name)
    return header


def read_bytes(path: str | PathLike[str], name: str) -> bytes:
    """Return the content of a file, decompressed if its suffix says so. Raises InputError."""
    try:
        with open_stream(path) as stream:
            content: bytes = stream.read()
            return content
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable_error(name, error) from None


def open_stream(path: str | PathLike[str]) -> Any:
    """Open a file for reading, decompressed if its suffix says so. Raises OSError."""
    if not Path(path).is_file():
        open(path, "rb").close()  # explains why not
    return pa.input_stream(str(path), compression="detect")


def unreadable_error(name: str, error: Exception) -> InputError:
    """Return the error for a file that the system cannot read."""
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return InputError("SN501", f"cannot be read: {reason}", name)


def _table(data: bytes, name: str, first: int, blank_is_null: bool = False) -> Any:
    """Return all rows as strings, the header as the first row, checked for an unclosed quote."""
    try:
        # As many end marks as the first row has columns, so only a lost mark is an error.
        width = _count_columns(data, blank_is_null)
        table = _read(data + b",".join([_END] * width) + b"\n", blank_is_null)
    except pa.ArrowInvalid as error:
        raise _malformed(data, name, first, blank_is_null, error) from None
    last = table.slice(table.num_rows - 1)
    if any(column[0].as_py() != _END.decode() for column in last.columns):
        raise _open_quote(data, name, first)
    return table.slice(0, table.num_rows - 1)


def _count_columns(data: bytes, blank_is_null: bool) -> int:
    """Return the number of columns of the first row."""
    count: int = _read(data[: find_header_end(data)], blank_is_null, binary=True).num_columns
    return count


def _read(
    data: bytes, blank_is_null: bool = False, skip: Callable[[Any], str] | None = None, binary: bool = False
) -> Any:
    """Read with Arrow, all columns as text (or bytes). `skip` is called with each row of another width."""
    reading, parse, convert = _options(data, blank_is_null, skip, binary)
    try:
        return pc.read_csv(pa.BufferReader(data), reading, parse, convert)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error) and "out of sync" not in str(error):
            raise
        reading.block_size = len(data) + 1  # a row larger than a block
        return pc.read_csv(pa.BufferReader(data), reading, parse, convert)


def _options(
    data: bytes, blank_is_null: bool, skip: Callable[[Any], str] | None = None, binary: bool = False
) -> tuple[Any, Any, Any]:
    parse = pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=not blank_is_null, invalid_row_handler=skip)
    block = 1 << 20 if len(data) < 1 << 24 else 1 << 23
    if b"\n" not in data[:block] and b"\r" not in data[:block]:
        block = len(data) + 1  # the header alone is larger than a block
    reading = pc.ReadOptions(use_threads=False, autogenerate_column_names=True, block_size=block)
    convert = pc.ConvertOptions(
        column_types=_TYPES[binary], null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    return reading, parse, convert


_TYPES = {b: {f"f{i}": pa.binary() if b else pa.string() for i in range(_MOST_COLUMNS)} for b in (False, True)}


_ASCII = bytes(range(128)) + b"?" * 128


# --- errors ----------------------------------------------------------------------------------------------------------


def _malformed(data: bytes, name: str, first: int, blank_is_null: bool, error: Exception) -> InputError:
    """Return the error behind one of Arrow's, which has no row: read again, slowly, to find the place."""
    unreadable = InputError("SN502", f"is not a CSV file: {str(error).splitlines()[0]}", name)
    wrong = []

    def keep(row: Any) -> str:
        wrong.append(row)
        return "skip"

    try:
        # Arrow passes invalid rows as text, so bytes that are not ASCII are replaced while it looks for them.
        _read(data.translate(_ASCII), blank_is_null, skip=keep, binary=True)
        table: Any = None if wrong else _read(data, blank_is_null, binary=True)
    except pa.ArrowInvalid:
        return unreadable
    if wrong:
        row = wrong[0]
        message = f"expected {row.expected_columns} fields, as in the header; found {row.actual_columns}"
        return InputError("SN502", message, name, first + row.number - 1, help="quote a value that contains a comma")
    header = [(column[0].as_py() or b"").decode(errors="replace") for column in table.columns]
    for column, field in zip(table.columns, header, strict=True):
        for number, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                return InputError("SN502", "is not UTF-8", name, first + number, field, "save the file in UTF-8")
    return unreadable


def _open_quote(data: bytes, name: str, first: int) -> InputError:
    """Return the error for an unclosed quote: it opens in the last row that Arrow sees."""
    rows = _read(data, binary=True).num_rows
    return InputError("SN502", "a quote is never closed", name, first + rows - 1, help="double a quote inside quotes")
