"""The dialect of a CSV file: what separates fields, which sign begins decimals, which texts stand for null."""

import codecs
import re
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

_BLANKS = re.compile(rb"[ \t]+")
_OUTER_BLANKS = re.compile(rb"(?m)^[ \t]+|[ \t]+(?=\r?$)")
_GROUPING = "[.\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}' ]"
"""Signs between thousands where a comma begins the decimals."""

_DECIMAL_COMMA = re.compile(r"[+-]?([0-9]+|[0-9]{1,3}([. '][0-9]{3})+),[0-9]+")
_NO_VALUES = frozenset(
    ("na", "n/a", "#n/a", "nan", "null", "none", "nil", "missing", "-", "--", "---", "?", ".", "\\n")
)
"""Texts that programs write for a value that is missing, in small letters."""


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

    def advise(self, text: str) -> str | None:
        """Return the option that reads a text as a number, or as null; None where no option does."""
        if self.decimal == "." and _DECIMAL_COMMA.fullmatch(text):
            return "where a comma begins the decimals, give `--decimal ,`"
        if text.lower() in _NO_VALUES:
            return f"`--null '{text}'` reads this text as null"
        return None


def check_encoding(name: str) -> str:
    """Return the name of an encoding of text as Python writes it. Raises ValueError if there is none."""
    try:
        "a".encode(name)  # others than those of text, such as rot13, have a name too
        return codecs.lookup(name).name
    except (LookupError, ValueError):
        raise ValueError(f"there is no encoding `{name}` of text") from None


COMMA = CsvDialect()
"""Fields between commas, as the system writes them."""
