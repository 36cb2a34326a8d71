"""Exceptions of this package.

AcquisitionError
 ├─ ScheduleError   no schedule can meet the needs of the queries: the caller's fault
 ├─ PayloadError    a frame has an invalid payload: the sender's fault; counted, never fatal
 └─ InputError      recorded data cannot be read: ends the replay
"""

from gateway.errors import MoteloomError

_LONGEST_NAME = 60


class AcquisitionError(MoteloomError):
    """Base of the exceptions of this package."""


class ScheduleError(AcquisitionError):
    """An extent cannot be scheduled as needed. `code` is a code of the error catalogue (`basestation.errors`)."""

    def __init__(self, extent: str, message: str, code: str = "SN601") -> None:
        super().__init__(f"extent `{extent}`: {message}")
        self.extent, self.code = extent, code


class PayloadError(AcquisitionError):
    """A payload from a mote, or for one, is invalid. `code` is one word under which the error is counted."""

    def __init__(self, code: str, mote: int, message: str) -> None:
        super().__init__(f"mote {mote}: {message}")
        self.code = code
        self.mote = mote


def shorten_name(name: str) -> str:
    """Return the name of a column as an error shows it; a file that is no table may have one of any length."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


class InputError(AcquisitionError):
    """Recorded data cannot be read; with the place: a file or input, a row (1 is the first after the header), a column.

    `code` is a code of the error catalogue, SN5xx. `rows` are all rows with the same fault, where they were looked for.
    """

    def __init__(
        self,
        code: str,
        message: str,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        help: str | None = None,
        rows: tuple[int, ...] = (),
    ) -> None:
        place = [file] if file else []
        place += [f"row {row}"] if row is not None else []
        place += [f"column {shorten_name(column)}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.code, self.message, self.file, self.row, self.column, self.help = code, message, file, row, column, help
        self.rows = rows or (() if row is None else (row,))

    def __reduce__(self) -> tuple[type["InputError"], tuple[object, ...]]:
        return type(self), (self.code, self.message, self.file, self.row, self.column, self.help, self.rows)
