"""Parquet: the columns of a file."""

from pathlib import Path

import pyarrow.parquet as pq

from acquisition.errors import InputError
from acquisition.sources.csv import unreadable_error
from acquisition.sources.recorded_table import RecordedTable, unique_names


def read_parquet(path, name=None):
    """The columns of a Parquet file; InputError where it is none."""
    name = name or str(path)
    try:
        open(path, "rb").close()  # says plainly why it cannot be read
        with pq.ParquetFile(path) as file:
            table = file.read()
        table.validate(full=True)  # Arrow trusts what a file says of its texts
    except Exception as why:  # a damaged file fails in many ways, some of them far from what is wrong
        if isinstance(why, OSError) and why.strerror:
            raise unreadable_error(name, why) from None
        raise InputError("SN502", f"is no Parquet file: {(str(why) or repr(why)).splitlines()[0]}", name) from None
    return from_arrow(table, name)


def from_arrow(table, name):
    unique_names(table.column_names, name)
    return RecordedTable(name, dict(zip(table.column_names, table.columns, strict=True)), table.num_rows)


def is_parquet(path):
    """Whether a file is Parquet: by its first bytes, whatever it is called."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return path.suffix == ".parquet"
