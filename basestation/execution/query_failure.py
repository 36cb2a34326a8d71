"""Query failure: a query that cannot go on ends with an input error (semantics 14), and gives no update after it."""

from dataclasses import dataclass

from gateway.errors import MoteloomError


@dataclass(frozen=True, slots=True)
class QueryHalt:
    """Why a query ends. Its windows up to `tick` are still answered."""

    tick: int
    code: str
    message: str


class QueryFailedError(MoteloomError):
    """Raised inside the execution of one query. `code` is its number in the catalogue of errors (SN5xx)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message
