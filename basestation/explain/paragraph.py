"""Paragraph: how text for people is set: a head, lines under it, and tables whose columns end where their heads do."""

from collections.abc import Iterable, Sequence


def paragraph(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(f"  {line}".rstrip() for line in lines), ""])


def table(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Rows of cells as lines, each column as wide as its widest cell; the first `left` columns begin where others end."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(w) if at < left else cell.rjust(w) for at, (cell, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]  # fmt: skip
