"""A table of recorded data as it was found, before its columns are converted to the types of an extent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from acquisition.errors import InputError
from gateway.source import did_you_mean


@dataclass(frozen=True, slots=True)
class RecordedTable:
    """Named columns of equal length: Arrow arrays, numpy arrays, or lists of Python values.

    `name` is how errors refer to the input. With `text`, values are the text of a CSV file, so `12` may become an
    integer; elsewhere a string stays a string. With `parsed`, numbers of such a file were parsed already. With `partial`,
    a row may lack attributes (dictionaries may). `first` is how many rows of the input precede these.
    """

    name: str
    columns: Mapping[str, Any]
    length: int
    text: bool = False
    partial: bool = False
    parsed: bool = False
    first: int = 0

    def __len__(self) -> int:
        return self.length

    def row(self, position: int) -> int:
        """Return the number of a row as errors state it, from 1."""
        return self.first + position + 1

    def expect(self, needed: Collection[str], known: Collection[str], ignored: Collection[str] = ()) -> None:
        """Raise InputError at the first column that is not known and may be a misspelt one; other columns are not read.

        It may be misspelt if a needed column is missing, if a row may lack columns, or if it begins with `_` as those of the
        system do.
        """
        lacks = self.partial or any(name not in self.columns for name in needed)
        for column in self.columns:
            if column not in known and column not in ignored and (lacks or column.startswith("_")):
                help = did_you_mean(column, known) or list_columns(known)
                raise InputError("SN504", f"unknown column `{column}`", self.name, help=help)

    def missing(self, column: str, why: str) -> InputError:
        """Return the error for a required column that is not there."""
        return InputError("SN505", f"the column `{column}` is missing: {why}", self.name)


def list_columns(names: Collection[str]) -> str:
    """Return a help line with the names of all columns."""
    return "columns are " + ", ".join(f"`{name}`" for name in names)


def unique_names(names: Sequence[str], file: str) -> Sequence[str]:
    """Return the names of a header; raises InputError if a name occurs twice, since one column would be lost."""
    seen = set()
    for name in names:
        if name in seen:
            raise InputError("SN503", f"the column `{name}` occurs twice in the header", file)
        seen.add(name)
    return names
