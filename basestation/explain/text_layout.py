"""Layout of text for a terminal: paragraphs with a heading, aligned tables, wrapped prose."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

WIDTH = 78
"""Columns of a terminal with 80 columns, without the indentation under a heading."""


def format_paragraph(head: str, lines: Iterable[str]) -> str:
    """A heading and indented lines."""
    return "\n".join([head, *(f"  {line}".rstrip() for line in lines), ""])


def wrap_prose(text: str, indent: str = "") -> list[str]:
    """A text as lines that fit a terminal; lines after the first are indented further."""
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def format_table(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Rows of cells as lines with aligned columns; the first `left` columns are aligned to the left, others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]  # fmt: skip
