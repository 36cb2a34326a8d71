"""Halting: a query that cannot go on ends with an error of kind input (semantics 14), and nothing is said of it any more."""

from dataclasses import dataclass

from gateway.errors import MoteloomError


@dataclass(frozen=True, slots=True)
class QueryHalt:
    """Why a query ends. Its windows up to `tick` are still answered."""

    tick: int
    code: str
    message: str


class QueryFailedError(MoteloomError):
    """Raised inside the execution of one query. `code` is a number of the catalogue of errors (SN5xx)."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message
