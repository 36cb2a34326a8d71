"""The dialect of a CSV file: what separates fields, which sign begins decimals, which texts stand for null."""

import re
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

_BLANKS = re.compile(rb"[ \t]+")
_OUTER_BLANKS = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")
_GROUPING = "[.\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}' ]"
"""Signs between thousands where a comma begins the decimals."""


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """`delimiter` is one character; a blank stands for any run of blanks and tabs. `nulls` are further texts of null.

    `columns` are the names of a file without a header; `-` is a column that is not read. `skip_lines` lines before the header
    are not read. With `decimal` a comma, a point separates thousands.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    nulls: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    skip_lines: int = 0

    @property
    def separator(self) -> str:
        """The character between fields of `separate_fields`."""
        return "\t" if self.delimiter == " " else self.delimiter

    @property
    def header(self) -> bytes:
        """The header of a file that has none."""
        names = [f"-{at}" if name == "-" else name for at, name in enumerate(self.columns, 1)]
        return (self.separator.join(f'"{name}"' for name in names) + "\n").encode()

    def separate_fields(self, rows: bytes) -> bytes:
        """Return rows with one character between fields."""
        return rows if self.delimiter != " " else _BLANKS.sub(b"\t", _OUTER_BLANKS.sub(b"", rows))

    def number_text(self, column: Any) -> Any:
        """Return texts of numbers with a decimal point."""
        if self.decimal == ".":
            return column
        return pc.replace_substring(pc.replace_substring_regex(column, _GROUPING, ""), self.decimal, ".")


COMMA = CsvDialect()
"""Fields between commas, as the system writes them."""
