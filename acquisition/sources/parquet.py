"""Read Parquet files and Arrow tables."""

from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import pyarrow as pa

from acquisition.errors import InputError
from acquisition.schema import Attribute
from acquisition.sources.blocks import Block, TableBlock
from acquisition.sources.csv import unreadable_error
from acquisition.sources.recorded_table import RecordedTable, unique_names

ROWS = 1 << 16
"""Rows of a block. A block of less is left where a row group ends."""


class ParquetFile:
    """A Parquet file in blocks of rows."""

    def __init__(self, path: str | PathLike[str] | bytes, name: str | None = None) -> None:
        """Read the schema. `path` may be the content itself. Raises InputError."""
        self._path = path
        self.name = name or ("input" if isinstance(path, bytes) else str(path))
        try:
            if not isinstance(path, bytes):
                open(path, "rb").close()  # explains plainly why a file cannot be read
            with self._open() as file:
                self._names: list[str] = file.schema_arrow.names
                self._rows: int = file.metadata.num_rows
        except Exception as error:  # a damaged file fails in many ways, some of them far from the damage
            raise self._unreadable(error) from None
        unique_names(self._names, self.name)

    def _open(self) -> Any:
        import pyarrow.parquet as pq  # here, because it takes longer than to read most CSV files

        # Reading ahead would start a thread, which may outlive the interpreter; see `csv`.
        source = pa.BufferReader(self._path) if isinstance(self._path, bytes) else self._path
        return pq.ParquetFile(source, pre_buffer=False)

    def _unreadable(self, error: Exception) -> InputError:
        if isinstance(error, OSError) and error.strerror:
            return unreadable_error(self.name, error)
        reason = (str(error) or repr(error)).splitlines()[0]
        return InputError("SN502", f"expected a Parquet file: {reason}", self.name)

    @property
    def size(self) -> int:
        return 8 * self._rows * len(self._names)

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        """Yield blocks of at most ROWS rows. Raises InputError."""
        names = [name for name in self._names if wanted is None or name in wanted]
        first = 0
        try:
            with self._open() as file:
                for batch in file.iter_batches(ROWS, columns=names, use_threads=False):
                    batch.validate(full=True)  # Arrow trusts a file's string offsets without this
                    table = from_arrow(batch, self.name, first)
                    first += len(table)
                    yield TableBlock(table)
        except InputError:
            raise
        except Exception as error:
            raise self._unreadable(error) from None

    def whole(self) -> RecordedTable:
        """Return all rows. Raises InputError."""
        try:
            with self._open() as file:
                table = file.read(use_threads=False)
            table.validate(full=True)
        except Exception as error:
            raise self._unreadable(error) from None
        return from_arrow(table, self.name)


def from_arrow(table: Any, name: str, first: int = 0) -> RecordedTable:
    """Return an Arrow table or record batch as a recorded table. Raises InputError if a name occurs twice."""
    names = table.schema.names
    unique_names(names, name)
    return RecordedTable(name, dict(zip(names, table.columns, strict=True)), table.num_rows, first=first)


def is_parquet(path: str | PathLike[str] | bytes) -> bool:
    """Return whether a file, or its content, is Parquet, by its first bytes; by its suffix if it cannot be read."""
    if isinstance(path, bytes):
        return path[:4] == b"PAR1"
    path = Path(path)
    if not path.is_file():
        return path.suffix == ".parquet"  # the first bytes of a pipe come once
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PAR1"
    except OSError:
        return path.suffix == ".parquet"
