"""The dialect of a CSV file: what separates fields, which sign begins decimals, which texts stand for null."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """`delimiter` is one character; a blank stands for any run of blanks and tabs. `nulls` are further texts of null.

    `columns` are the names of a file without a header. `skip_lines` lines before the header are not read.
    """

    delimiter: str = ","
    decimal: str = "."
    nulls: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    skip_lines: int = 0


COMMA = CsvDialect()
