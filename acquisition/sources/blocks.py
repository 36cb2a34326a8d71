"""Recorded data in blocks of rows, so that a recording of any size is read in bounded memory."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from acquisition.schema import Attribute
from acquisition.sources.recorded_table import RecordedTable

ConvertedT = TypeVar("ConvertedT")


class Block(Protocol):
    """Some rows of an input."""

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        """Return what a conversion makes of the rows."""


class BlockSource(Protocol):
    """An input that can be read several times."""

    @property
    def name(self) -> str:
        """How errors refer to the input."""

    @property
    def size(self) -> int:
        """About how many bytes its columns take in memory."""

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        """Yield the rows in their order. `attributes` are the types of columns by name. Raises InputError.

        Only `wanted` columns are read (None: all); there may be more.
        """

    def whole(self) -> RecordedTable:
        """Return all rows at once. Raises InputError."""


@dataclass(frozen=True, slots=True)
class TableBlock:
    """Rows whose columns are converted as they are."""

    table: RecordedTable

    def convert(self, conversion: Callable[[RecordedTable], ConvertedT]) -> ConvertedT:
        return conversion(self.table)


@dataclass(frozen=True, slots=True)
class TableSource:
    """A table that is in memory: one block."""

    table: RecordedTable

    @property
    def name(self) -> str:
        return self.table.name

    @property
    def size(self) -> int:
        """Nothing: it is in memory, however it is read."""
        return 0

    def blocks(self, attributes: Mapping[str, Attribute], wanted: Collection[str] | None = None) -> Iterator[Block]:
        yield TableBlock(self.table)

    def whole(self) -> RecordedTable:
        return self.table
