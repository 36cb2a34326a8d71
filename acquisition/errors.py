"""The errors of this package, each with what it concerns.

AcquisitionError
 ├─ ScheduleError   no schedule can meet what was asked for: our caller's fault
 ├─ PayloadError    a frame whose payload makes no sense: the sender's fault, counted, never fatal
 └─ InputError      recorded data that cannot be taken: the fault of whoever recorded it, ends the replay
"""

from gateway.errors import MoteloomError


class AcquisitionError(MoteloomError):
    """Everything this package raises on purpose."""


class ScheduleError(AcquisitionError):
    """What was asked of an extent cannot be scheduled. `code` is of the catalogue of errors, which is kept above."""

    def __init__(self, extent: str, message: str, code: str = "SN601") -> None:
        super().__init__(f"extent `{extent}`: {message}")
        self.extent, self.code = extent, code


class PayloadError(AcquisitionError):
    """A payload that says something impossible. `code` is one word to count by."""

    def __init__(self, code: str, mote: int, message: str) -> None:
        super().__init__(f"mote {mote}: {message}")
        self.code = code
        self.mote = mote


class InputError(AcquisitionError):
    """Recorded data that cannot be taken, and where: a file or input, a row counted from 1 behind the header, a column.

    `code` is a number of the catalogue of errors (SN5xx), which is kept above this package.
    """

    def __init__(
        self,
        code: str,
        message: str,
        file: str | None = None,
        row: int | None = None,
        column: str | None = None,
        help: str | None = None,
    ) -> None:
        place = [file] if file else []
        place += [f"row {row}"] if row is not None else []
        place += [f"column {column}"] if column is not None else []
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.code, self.message, self.file, self.row, self.column, self.help = code, message, file, row, column, help
