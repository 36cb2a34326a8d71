"""Read Parquet files and Arrow tables."""

from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from acquisition.errors import InputError
from acquisition.sources.csv import unreadable_error
from acquisition.sources.recorded_table import RecordedTable, unique_names


def read_parquet(path: str | PathLike[str], name: str | None = None) -> RecordedTable:
    """Return the columns of a Parquet file. Raises InputError."""
    name = name or str(path)
    try:
        open(path, "rb").close()  # explains plainly why a file cannot be read
        with pq.ParquetFile(path) as file:
            table = file.read()
        table.validate(full=True)  # Arrow trusts a file's string offsets without this
    except Exception as error:  # a damaged file fails in many ways, some of them far from the damage
        if isinstance(error, OSError) and error.strerror:
            raise unreadable_error(name, error) from None
        reason = (str(error) or repr(error)).splitlines()[0]
        raise InputError("SN502", f"expected a Parquet file: {reason}", name) from None
    return from_arrow(table, name)


def from_arrow(table: Any, name: str) -> RecordedTable:
    """Return an Arrow table or record batch as a recorded table. Raises InputError if a name occurs twice."""
    unique_names(table.column_names, name)
    return RecordedTable(name, dict(zip(table.column_names, table.columns, strict=True)), table.num_rows)


def is_parquet(path: str | PathLike[str]) -> bool:
    """Return whether a file is Parquet, by its first bytes; by its suffix if it cannot be read."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return path.suffix == ".parquet"
