"""Read CSV files: a header, then rows. An empty field is null, a quoted empty field is the empty string.

Arrow reads about three million rows a second and keeps the two apart, which Python's reader does not. Arrow is lenient
about one thing that this module checks: an unclosed quote would swallow the rest of the file as one value.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from errno import EILSEQ, ESPIPE
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc_functions
import pyarrow.csv as pc

from acquisition.errors import InputError
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.csv_dialect import COMMA, CsvDialect
from acquisition.sources.csv_rows import find_header_end
from acquisition.sources.recorded_table import RecordedTable, unique_names

# Arrow's threads may outlive the interpreter, and one that then releases Python's memory aborts the process (exit 134). So files
# are read without threads. Nor does Arrow receive signals: Ctrl-C interrupts Python between two blocks.
pa.enable_signal_handlers(False)

_NOT_UTF_8 = "save the file in UTF-8, or give its encoding, such as `--encoding latin-1`"
_MOST_COLUMNS = 4096
_SUFFIXES = (".gz", ".bz2", ".zst", ".lz4")
"""Of compressed files, as Arrow knows them."""
_MARKS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of a compressed file, and its codec."""
_END = b"\x02end\x03"
"""The values of a row that is added after the last one. If it does not come out again, a quote is open at the end."""


def read_csv(source: str | PathLike[str] | bytes, name: str | None = None) -> RecordedTable:
    """Return the columns of a CSV file, given as a path or as bytes. Raises InputError."""
    name = name or (str(source) if not isinstance(source, bytes) else "input")
    return read_table(source if isinstance(source, bytes) else read_bytes(source, name), name)


def read_table(
    data: bytes, name: str, first: int = 0, dialect: CsvDialect = COMMA, bad: BadRows | None = None
) -> RecordedTable:
    """Return the columns of a header and rows, as text; `first` rows of the file precede these. Raises InputError.

    Rows of another width than the header, or that are not UTF-8, are left out with `bad`.
    """
    if not data[:4096].strip(b"\r\n") and not data.strip(b"\r\n"):
        raise no_header(name)
    data = data if data.endswith((b"\n", b"\r")) else data + b"\n"
    form = _Form(dialect)
    skipped: list[int] = []
    mark = None
    if bad is not None and not _is_decodable(data):
        data, mark = _mark_bytes(data)
    table = _table(data, name, first, form, bad, skipped)
    if table.num_columns == 1 and any(blank in data for blank in (b"\n\n", b"\r\n\r\n", b"\r\r")):
        form = _Form(dialect, blank_is_null=True)  # in a single column, an empty line is an empty field
        table = _table(data, name, first, form)
    header = (
        read_header(data[: find_header_end(data, dialect.separator) or len(data)], name, dialect)
        if dialect.nulls
        else _names(table, name)
    )
    rows = table.slice(1)
    numbers = np.delete(np.arange(rows.num_rows + len(skipped)), skipped) if skipped else None
    columns = dict(zip(header, rows.columns, strict=True))
    found = RecordedTable(name, columns, rows.num_rows, text=True, first=first, numbers=numbers, omitted=len(skipped))
    return found if mark is None or bad is None else _leave_out_marked(found, mark, bad)


def _is_decodable(data: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _mark_bytes(data: bytes) -> tuple[bytes, str]:
    """Return (the data with a mark in place of each byte that is not UTF-8, the mark), a character that it does not have."""
    text = data.decode(errors="surrogateescape")
    mark = next(sign for sign in map(chr, range(0xFDD0, 0xFDF0)) if sign not in text)
    return _ESCAPED.sub(mark, text).encode(), mark


_ESCAPED = re.compile("[\udc80-\udcff]")


def _leave_out_marked(table: RecordedTable, mark: str, bad: BadRows) -> RecordedTable:
    """Return the table without rows that have the mark of bytes that are not UTF-8."""
    for field in table.columns:
        if mark in field:
            raise InputError("SN502", "the header is not UTF-8", table.name, help=_NOT_UTF_8)
    marked = np.zeros(len(table), bool)
    for field, column in table.columns.items():
        found = pc_functions.fill_null(pc_functions.match_substring(column, mark), False).to_numpy() & ~marked
        rows = table.rows(np.flatnonzero(found))
        if rows:
            bad.add(InputError("SN502", "is not UTF-8", table.name, rows[0], field, _NOT_UTF_8, rows), rows)
        marked |= found
    kept = table.take(np.flatnonzero(~marked))
    return replace(kept, omitted=table.omitted + int(marked.sum()))


def read_header(header: bytes, name: str, dialect: CsvDialect = COMMA) -> list[str]:
    """Return the names of the columns. Raises InputError."""
    form = _Form(replace(dialect, nulls=()))
    return _names(_table(header if header.endswith((b"\n", b"\r")) else header + b"\n", name, 0, form), name)


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
    """Return the content of a file, decompressed if it is compressed. Raises InputError."""
    try:
        with open_stream(path) as stream:
            content: bytes = stream.read()
            return content
    except (OSError, pa.ArrowInvalid) as error:
        raise unreadable_error(name, error) from None


def open_stream(source: str | PathLike[str] | bytes, encoding: str = "utf-8") -> Any:
    """Open a file, or bytes, for reading in UTF-8; decompressed if its suffix or first bytes say so. Raises OSError."""
    if isinstance(source, bytes):
        stream = pa.BufferReader(source)
        codec = _find_codec(source[:4])
    else:
        if not Path(source).is_file():
            if Path(source).exists() and not Path(source).is_dir():
                raise OSError(ESPIPE, "a pipe or device cannot be read twice; `-` reads standard input")
            open(source, "rb").close()  # explains why not
        if not _is_utf_8(str(source)):
            raise OSError(EILSEQ, "its name is not UTF-8; rename it")
        with open(source, "rb") as file:
            codec = None if Path(source).suffix in _SUFFIXES else _find_codec(file.read(4))
        stream = pa.input_stream(str(source), compression="detect")
    if codec is not None:
        stream = pa.CompressedInputStream(stream, codec)
    return stream if encoding == "utf-8" else pa.transcoding_input_stream(stream, encoding, "utf-8")


def _find_codec(begin: bytes) -> str | None:
    """Return the codec of a compressed file by its first bytes; None if it is not compressed."""
    return next((codec for mark, codec in _MARKS.items() if begin.startswith(mark)), None)


def _is_utf_8(name: str) -> bool:
    """Whether the name of a file is UTF-8: Arrow opens no others."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def unreadable_error(name: str, error: Exception) -> InputError:
    """Return the error for a file that the system cannot read."""
    reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
    return InputError("SN501", f"cannot be read: {reason}", name)


@dataclass(frozen=True, slots=True)
class _Form:
    """How Arrow reads the text. `blank_is_null`: an empty line is a row with a null."""

    dialect: CsvDialect
    blank_is_null: bool = False


def _table(
    data: bytes, name: str, first: int, form: _Form, bad: BadRows | None = None, skipped: list[int] | None = None
) -> Any:
    """Return all rows as strings, the header as the first row, checked for an unclosed quote.

    With `bad`, rows of another width are left out, and `skipped` gets their positions among the rows.
    """
    wrong: list[Any] = []

    def leave_out(row: Any) -> str:
        wrong.append(row)
        return "skip"

    try:
        # As many end marks as the first row has columns, so only a lost mark is an error.
        width = _count_columns(data, form)
        mark = form.dialect.separator.encode().join([_END] * width)
        table = _read(data + mark + b"\n", form, None if bad is None else leave_out)
    except pa.ArrowInvalid as error:
        raise _malformed(data, name, first, form, error) from None
    if bad is not None and skipped is not None:
        for row in wrong:
            bad.add(_wrong_width(row, name, first, form), [first + row.number - 1])
            skipped.append(row.number - 2)
    last = table.slice(table.num_rows - 1)
    if any(column[0].as_py() != _END.decode() for column in last.columns):
        raise _open_quote(data, name, first, form)
    return table.slice(0, table.num_rows - 1)


def _count_columns(data: bytes, form: _Form) -> int:
    """Return the number of columns of the first row."""
    count: int = _read(data[: find_header_end(data, form.dialect.separator)], form, binary=True).num_columns
    return count


def _read(data: bytes, form: _Form, skip: Callable[[Any], str] | None = None, binary: bool = False) -> Any:
    """Read with Arrow, all columns as text (or bytes). `skip` is called with each row of another width."""
    reading, parse, convert = _options(data, form, skip, binary)
    try:
        return pc.read_csv(pa.BufferReader(data), reading, parse, convert)
    except pa.ArrowInvalid as error:
        if "straddl" not in str(error) and "out of sync" not in str(error):
            raise
        reading.block_size = len(data) + 1  # a row larger than a block
        return pc.read_csv(pa.BufferReader(data), reading, parse, convert)


def _options(
    data: bytes, form: _Form, skip: Callable[[Any], str] | None = None, binary: bool = False
) -> tuple[Any, Any, Any]:
    parse = pc.ParseOptions(
        delimiter=form.dialect.separator,
        newlines_in_values=True,
        ignore_empty_lines=not form.blank_is_null,
        invalid_row_handler=skip,
    )
    block = 1 << 20 if len(data) < 1 << 24 else 1 << 23
    if b"\n" not in data[:block] and b"\r" not in data[:block]:
        block = len(data) + 1  # the header alone is larger than a block
    reading = pc.ReadOptions(use_threads=False, autogenerate_column_names=True, block_size=block)
    convert = pc.ConvertOptions(
        column_types=_TYPES[binary],
        null_values=["", *form.dialect.nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    return reading, parse, convert


_TYPES = {b: {f"f{i}": pa.binary() if b else pa.string() for i in range(_MOST_COLUMNS)} for b in (False, True)}


_ASCII = bytes(range(128)) + b"?" * 128


# --- errors ----------------------------------------------------------------------------------------------------------


def _malformed(data: bytes, name: str, first: int, form: _Form, error: Exception) -> InputError:
    """Return the error behind one of Arrow's, which has no row: read again, slowly, to find the place."""
    unreadable = InputError("SN502", f"is not a CSV file: {str(error).splitlines()[0]}", name)
    wrong = []

    def keep(row: Any) -> str:
        wrong.append(row)
        return "skip"

    try:
        # Arrow passes invalid rows as text, so bytes that are not ASCII are replaced while it looks for them.
        _read(data.translate(_ASCII), form, skip=keep, binary=True)
        table: Any = None if wrong else _read(data, form, binary=True)
    except pa.ArrowInvalid:
        return unreadable
    if wrong:
        return _wrong_width(wrong[0], name, first, form)
    header = [(column[0].as_py() or b"").decode(errors="replace") for column in table.columns]
    for column, field in zip(table.columns, header, strict=True):
        for number, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                if not first + number:
                    return InputError("SN502", "the header is not UTF-8", name, help=_NOT_UTF_8)
                return InputError("SN502", "is not UTF-8", name, first + number, field, _NOT_UTF_8)
    return unreadable


def _wrong_width(row: Any, name: str, first: int, form: _Form) -> InputError:
    message = f"expected {row.expected_columns} fields, as in the header; found {row.actual_columns}"
    sign = {",": "comma", "\t": "tab"}.get(form.dialect.separator, form.dialect.separator)
    return InputError("SN502", message, name, first + row.number - 1, help=f"quote a value that contains a {sign}")


def _open_quote(data: bytes, name: str, first: int, form: _Form) -> InputError:
    """Return the error for an unclosed quote: it opens in the last row that Arrow sees."""
    rows = _read(data, form, binary=True).num_rows
    return InputError("SN502", "a quote is never closed", name, first + rows - 1, help="double a quote inside quotes")
