"""Paragraph: how text for people is set: a head, lines under it, tables whose columns end where their heads do, and prose."""

from collections.abc import Iterable, Sequence
from textwrap import wrap

WIDTH = 78
"""What a terminal of 80 columns has left under a head."""


def format_paragraph(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(f"  {line}".rstrip() for line in lines), ""])


def wrap_prose(text: str, indent: str = "") -> list[str]:
    """A sentence as lines that a terminal has room for; those after the first are indented further."""
    return wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_long_words=False,
                break_on_hyphens=False)  # fmt: skip


def format_table(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell; the first `left` columns begin where others end."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]  # fmt: skip
