"""The errors of this package, each with what it concerns.

AcquisitionError
 ├─ ScheduleError   no schedule can meet what was asked for: our caller's fault
 └─ PayloadError    a frame whose payload makes no sense: the sender's fault, counted, never fatal
"""


class AcquisitionError(Exception):
    """Everything this package raises on purpose."""


class ScheduleError(AcquisitionError):
    """What was asked of an extent cannot be scheduled."""

    def __init__(self, extent: str, message: str) -> None:
        super().__init__(f"extent `{extent}`: {message}")
        self.extent = extent


class PayloadError(AcquisitionError):
    """A payload that says something impossible. `code` is one word to count by."""

    def __init__(self, code: str, mote: int, message: str) -> None:
        super().__init__(f"mote {mote}: {message}")
        self.code = code
        self.mote = mote
