"""Read Python values and files by path: rows as dictionaries, columns as lists or arrays, Arrow tables, data frames."""

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from acquisition.errors import InputError
from acquisition.sources.bad_rows import BadRows
from acquisition.sources.blocks import BlockSource, TableSource
from acquisition.sources.csv_dialect import COMMA, CsvDialect
from acquisition.sources.csv_file import CsvFile
from acquisition.sources.parquet import ParquetFile, from_arrow, is_parquet
from acquisition.sources.recorded_table import RecordedTable


def to_recorded_table(data: Any, name: str) -> RecordedTable:
    """Return any kind of input as a recorded table. A string is a path; `name` is how errors refer to other inputs.

    Raises InputError.
    """
    match data:
        case RecordedTable():
            return data
        case str() | PathLike():
            return read_file(data)
        case pa.Table() | pa.RecordBatch():
            return from_arrow(data, name)
        case Mapping():
            return _columns(data, name)
    if hasattr(data, "__arrow_c_stream__"):  # data frames of pandas, polars and others
        return from_arrow(pa.table(data), name)
    if hasattr(data, "iterrows") and hasattr(data, "columns"):  # an older pandas
        return from_arrow(pa.Table.from_pandas(data, preserve_index=False), name)
    return _rows(data, name)


def to_blocks(data: Any, name: str, dialect: CsvDialect = COMMA, bad: BadRows | None = None) -> BlockSource:
    """Return any kind of input as a source of blocks of rows. Bytes are the content of a file.

    Arguments and errors as of `to_recorded_table` and `CsvFile`.
    """
    if isinstance(data, str | PathLike | bytes):
        return open_file(data, name if isinstance(data, bytes) else None, dialect, bad)
    return TableSource(to_recorded_table(data, name))


def read_file(path: str | PathLike[str], name: str | None = None) -> RecordedTable:
    """Return the columns of a CSV or Parquet file. Raises InputError."""
    return open_file(path, name).whole()


def open_file(
    path: str | PathLike[str] | bytes, name: str | None = None, dialect: CsvDialect = COMMA, bad: BadRows | None = None
) -> BlockSource:
    """Return a CSV or Parquet file, or its content, as a source of blocks of rows. Raises InputError."""
    return ParquetFile(path, name) if is_parquet(path) else CsvFile(path, name, dialect=dialect, bad=bad)


def _columns(data: Mapping[str, Any], name: str) -> RecordedTable:
    columns = {key: column if isinstance(column, _ARRAYS) else list(column) for key, column in data.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    first = next(iter(lengths.values()), 0)
    for key, length in lengths.items():
        if length != first:
            raise InputError(
                "SN502", f"expected {first} values, as in the first column; found {length}", name, column=key
            )
    return RecordedTable(name, columns, first)


_ARRAYS = (np.ndarray, pa.Array, pa.ChunkedArray)


def _rows(data: Any, name: str) -> RecordedTable:
    """Return rows given as dictionaries; a key that a row lacks is a null."""
    rows = list(data)
    names: dict[str, None] = {}
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError("SN502", f"expected a dictionary for a row, found {type(row).__name__}", name, number)
        names |= dict.fromkeys(row)
    return RecordedTable(name, {key: [row.get(key) for row in rows] for key in names}, len(rows), partial=True)
