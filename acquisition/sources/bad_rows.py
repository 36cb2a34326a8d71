"""Rows of a recording that are left out because they are wrong, up to a limit."""

from collections.abc import Iterable

from acquisition.errors import InputError


class BadRows:
    """The wrong rows of one input. A row that is found twice, because a file is read twice, counts once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: set[int] = set()
        self._kinds: dict[tuple[str, str | None], list[InputError]] = {}
        self._counts: dict[tuple[str, str | None], set[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, error: InputError, rows: Iterable[int]) -> None:
        """Leave rows out, all with this error. Raises it where there are more than the limit."""
        kind = error.code, error.column
        found = set(rows)
        if not self._rows >= found:
            self._rows |= found
            self._kinds.setdefault(kind, []).append(error)
        self._counts.setdefault(kind, set()).update(found)
        if len(self._rows) > self._limit:
            help = f"more than {self._limit:,} rows are wrong; --skip-bad allows more"
            raise InputError(error.code, error.message, error.file, error.row, error.column, help)

    def report(self, name: str) -> list[str]:
        """Lines: how many rows were left out, and the first of each kind of error."""
        if not self._rows:
            return []
        lines = [f"{name}: {len(self._rows):,} bad {'row' if len(self._rows) == 1 else 'rows'} left out"]
        for kind, errors in self._kinds.items():
            lines.append(f"  {len(self._counts[kind]):,} x {errors[0].code}: {errors[0]}")
        return lines
