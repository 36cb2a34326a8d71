"""CSV: a header and rows; an empty field is null, a quoted empty field is the empty string.

Arrow reads, at about a million rows in a third of a second, and keeps the two apart, which Python's reader does not.
What it is lenient about is checked here: a quote without an end would swallow the rest of the file as one value.
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc

from acquisition.errors import InputError
from acquisition.sources.recorded_table import RecordedTable, unique_names

_MOST_COLUMNS = 4096
_END = b"\x02end\x03"
"""A row of these is put behind the last one and must come out again; it does not if a quote is open at the end."""


def read_csv(source, name=None):
    """The columns of a CSV file, given as a path or as bytes; InputError where it is none."""
    name = name or (str(source) if not isinstance(source, bytes) else "input")
    data = source if isinstance(source, bytes) else read_bytes(source, name)
    if not data[:4096].strip(b"\r\n") and not data.strip(b"\r\n"):
        raise InputError("SN502", "there is no header", name, help="the first line names the columns")
    data = data if data.endswith((b"\n", b"\r")) else data + b"\n"
    table = _table(data, name)
    if table.num_columns == 1 and any(blank in data for blank in (b"\n\n", b"\r\n\r\n", b"\r\r")):
        table = _table(data, name, blank_is_null=True)  # in a single column, an empty line is an empty field
    header = [column[0].as_py() for column in table.columns]
    if None in header or "" in header:
        position = header.index(None) + 1 if None in header else header.index("") + 1
        raise InputError("SN502", f"column {position} has no name in the header", name)
    header = unique_names(header, name)
    rows = table.slice(1)
    return RecordedTable(name, dict(zip(header, rows.columns, strict=True)), rows.num_rows, text=True)


def read_bytes(path, name):
    """A file as it is; one that is compressed is told by the end of its name."""
    try:
        if not Path(path).is_file():
            open(path, "rb").close()  # says why not
        with pa.input_stream(str(path), compression="detect") as stream:
            return stream.read()
    except (OSError, pa.ArrowInvalid) as why:
        raise unreadable_error(name, why) from None


def unreadable_error(name, why):
    return InputError("SN501", f"cannot be read: {getattr(why, 'strerror', None) or str(why).splitlines()[0]}", name)


def _table(data, name, blank_is_null=False):
    """All of the file as strings, the header as the first row, checked to be whole."""
    try:
        # As many end marks as the first row has columns, whatever that row is: so only a lost one is an error.
        width = _read(data, blank_is_null, first_block=True)
        table = _read(data + b",".join([_END] * width) + b"\n", blank_is_null)
    except pa.ArrowInvalid as why:
        raise _malformed(data, name, blank_is_null, why) from None
    last = table.slice(table.num_rows - 1)
    if any(column[0].as_py() != _END.decode() for column in last.columns):
        raise _open_quote(data, name)
    return table.slice(0, table.num_rows - 1)


def _read(data, blank_is_null=False, first_block=False, skip=None, binary=False, threads=True):
    """Arrow's reader with everything as text. With `first_block`, only how many columns there are."""
    parse = pc.ParseOptions(newlines_in_values=True, ignore_empty_lines=not blank_is_null, invalid_row_handler=skip)
    block = 1 << 20 if len(data) < 1 << 24 else 1 << 23
    if b"\n" not in data[:block] and b"\r" not in data[:block]:
        block = len(data) + 1  # the header alone is larger than a block
    reading = pc.ReadOptions(use_threads=threads, autogenerate_column_names=True, block_size=block)
    convert = pc.ConvertOptions(
        column_types=_TYPES[binary], null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    source = pa.BufferReader(data)
    if first_block:
        with pc.open_csv(source, reading, parse, convert) as reader:
            return len(reader.schema)
    try:
        return pc.read_csv(source, reading, parse, convert)
    except pa.ArrowInvalid as why:
        if "straddl" not in str(why) and "out of sync" not in str(why):
            raise
        reading.block_size = len(data) + 1  # a row larger than a block
        return pc.read_csv(pa.BufferReader(data), reading, parse, convert)


_TYPES = {b: {f"f{i}": pa.binary() if b else pa.string() for i in range(_MOST_COLUMNS)} for b in (False, True)}


_ASCII = bytes(range(128)) + b"?" * 128


# --- what is wrong with a file ---------------------------------------------------------------------------------------


def _malformed(data, name, blank_is_null, why):
    """The error behind Arrow's, which has no row or tells of a block: found by reading once more, slowly."""
    wrong = []

    def keep(row):
        wrong.append(row)
        return "skip"

    try:
        # Rows that do not fit are handed over as text, so what is not ASCII is blotted out while they are looked for.
        _read(data.translate(_ASCII), blank_is_null, skip=keep, binary=True, threads=False)
        table = None if wrong else _read(data, blank_is_null, binary=True)
    except pa.ArrowInvalid:
        return InputError("SN502", f"is no CSV file: {str(why).splitlines()[0]}", name)
    if wrong:
        row = wrong[0]
        message = f"{row.actual_columns} fields, but the header has {row.expected_columns}"
        return InputError(
            "SN502", message, name, row.number - 1, help="a comma inside a value needs quotes around the value"
        )
    header = [(column[0].as_py() or b"").decode(errors="replace") for column in table.columns]
    for column, field in zip(table.columns, header, strict=True):
        for row, value in enumerate(column.to_pylist()):
            try:
                (value or b"").decode()
            except UnicodeDecodeError:
                return InputError("SN502", "is not UTF-8", name, row, field, "save the file in UTF-8")
    return InputError("SN502", f"is no CSV file: {str(why).splitlines()[0]}", name)


def _open_quote(data, name):
    """Where the quote that swallows the end was opened: the last row that Arrow sees is the one it stands in."""
    rows = _read(data, threads=False, binary=True).num_rows
    return InputError(
        "SN502", "a quote is opened and never closed", name, rows - 1, help="a quote inside quotes is doubled"
    )
