"""A table of recorded data as it was found, before its columns are converted to the types of an extent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from acquisition.arrays import IntArray
from acquisition.errors import InputError
from acquisition.sources.arrow_arrays import numbers_to_arrow
from acquisition.sources.value_conversion import quote_value
from gateway.source import did_you_mean

_MOST_SHOWN = 20
"""As many columns as an error names; errors are bounded."""


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """Named columns of equal length: Arrow arrays, numpy arrays, or lists of Python values.

    `name` is how errors refer to the input. With `text`, values are the text of a CSV file, so `12` may become an
    integer; elsewhere a string stays a string. With `parsed`, numbers of such a file were parsed already. With `partial`,
    a row may lack attributes (dictionaries may). `first` is how many rows of the input precede these. `numbers` has the
    position of each row among the rows of the input that follow, where some are missing or stand for several; `omitted` counts those
    that were left out when it was read. With `every_error`, an error names all
    rows of its fault.
    """

    name: str
    columns: Mapping[str, Any]
    length: int
    text: bool = False
    partial: bool = False
    parsed: bool = False
    first: int = 0
    numbers: IntArray | None = None
    omitted: int = 0
    every_error: bool = False

    def __len__(self) -> int:
        return self.length

    def row(self, position: int) -> int:
        """Return the number of a row as errors state it, from 1."""
        return self.first + 1 + (position if self.numbers is None else int(self.numbers[position]))

    def rows(self, positions: Sequence[int] | IntArray) -> tuple[int, ...]:
        """Return the numbers of rows."""
        return tuple(self.row(int(position)) for position in positions)

    def positions(self, rows: Collection[int]) -> list[int]:
        """Return where the rows of these numbers stand."""
        numbers = np.arange(len(self)) if self.numbers is None else self.numbers
        return np.flatnonzero(np.isin(numbers + self.first + 1, list(rows))).tolist()

    def without(self, rows: Collection[int]) -> "RecordedTable":
        """Return the table without the rows of these numbers."""
        numbers = np.arange(len(self)) if self.numbers is None else self.numbers
        return self.take(np.flatnonzero(~np.isin(numbers + self.first + 1, list(rows))))

    def take(self, positions: IntArray) -> "RecordedTable":
        """Return the rows at these positions, which keep their numbers."""
        numbers = positions if self.numbers is None else self.numbers[positions]
        columns = {name: _take(column, positions) for name, column in self.columns.items()}
        return replace(self, columns=columns, length=len(positions), numbers=numbers)

    def expect(self, needed: Collection[str], known: Collection[str], ignored: Collection[str] = ()) -> None:
        """Raise InputError at a column that is not known and may be a misspelt one; other columns are not read.

        It may be misspelt if a needed column is missing, if a row may lack columns, or if it begins with `_` as those of the
        system do.
        """
        missing = [] if self.partial else [name for name in needed if name not in self.columns]
        lacks = self.partial or bool(missing)
        unknown = [
            column
            for column in self.columns
            if column not in known and column not in ignored and (lacks or column.startswith("_"))
        ]
        for column in unknown:
            if (help := did_you_mean(column, known)) is not None:
                raise InputError("SN504", f"unknown column {quote_value(column)}", self.name, help=help)
        if unknown:
            message = f"unknown column {quote_value(unknown[0])}"
            message += f", and `{missing[0]}` is missing" if missing else ""
            raise InputError("SN504", message, self.name, help=f"known {list_columns(known)}")

    def missing(self, column: str, why: str, option: str | None = None) -> InputError:
        """Return the error for a required column that is not there. `option` names another column for it."""
        help = f"{list_columns(self.columns)}; `{option}` of `moteloom replay` names another" if option else None
        return InputError("SN505", f"the column `{column}` is missing: {why}", self.name, help=help)


def _take(column: Any, positions: IntArray) -> Any:
    if isinstance(column, np.ndarray):
        return column[positions]
    if hasattr(column, "take"):
        return column.take(numbers_to_arrow(positions))
    return [column[at] for at in positions]


def list_columns(names: Collection[str]) -> str:
    """Return a help line with the names of all columns, or of the first of many."""
    if not names:
        return "it has no columns"
    shown = ", ".join(f"`{name}`" for name in islice(names, _MOST_SHOWN))
    more = len(names) - _MOST_SHOWN
    return f"columns are {shown}" + (f" and {more} more" if more > 0 else "")


def unique_names(names: Sequence[str], file: str) -> Sequence[str]:
    """Return the names of a header; raises InputError if a name occurs twice, since one column would be lost."""
    seen = set()
    for name in names:
        if name in seen:
            raise InputError("SN503", f"the column `{name}` occurs twice in the header", file)
        seen.add(name)
    return names
