"""Updates of a query, and the reader that asks for them page by page: each once, in order, over any number of cuts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moteloom.client.requests import ENDED_STATES, Request, StationError, get, path_of

WAIT_SECONDS = 20.0
PAGE = 1_000


class ResultsGoneError(StationError):
    """The updates that were asked for are not kept any more; `problem["detail"]` says where to begin."""


@dataclass(frozen=True, slots=True)
class Update:
    """A part of an answer. `kind` is window, tuple, epoch, mark or ended.

    `rows` are those that the update adds, `removed` those that it takes back. `coverage` has, by sensed extent, how many of the due
    readings are in the answer. `line` is the update as the station sent it.
    """

    line: Mapping[str, Any]
    epoch: str
    """Of the numbers, for `updates(after=…, epoch=…)`."""

    @property
    def number(self) -> int:
        """Its place in the results of the query; ask for those `after` it to go on."""
        return int(self.line["number"])

    @property
    def kind(self) -> str:
        return str(self.line["type"])

    @property
    def tick(self) -> int:
        return int(self.line["tick"])

    @property
    def time(self) -> datetime:
        """The time of the window or tuple, in UTC."""
        return datetime.fromisoformat(self.line["time"])

    @property
    def revision(self) -> int:
        return int(self.line.get("revision", 0))

    @property
    def coverage(self) -> dict[str, tuple[int, int]]:
        return {name: (of[0], of[1]) for name, of in self.line.get("coverage", {}).items() if of is not None}

    @property
    def rows(self) -> list[list[Any]]:
        if self.kind == "tuple":
            return [self.line["row"]] if self.line["weight"] > 0 else []
        return list(self.line.get("rows", self.line.get("added", ())))

    @property
    def removed(self) -> list[list[Any]]:
        if self.kind == "tuple":
            return [self.line["row"]] if self.line["weight"] < 0 else []
        return list(self.line.get("removed", ()))


def updates_of_current(found: Mapping[str, Any]) -> list[Update]:
    """The windows and tuples of a current answer as the station sends it, each as one update."""
    windows = [{"type": "window", "number": found["next"], **each, "revision": 0} for each in found["windows"]]
    tuples = [{"type": "tuple", "number": found["next"], "weight": 1, **each} for each in found["tuples"]]
    return [Update(line, found["epoch"]) for line in (*windows, *tuples)]


class ResultReader:
    """The requests that follow a query to its end, and the updates in their answers."""

    def __init__(self, query: int, after: int = 0, epoch: str | None = None, wait: float = WAIT_SECONDS) -> None:
        self._query, self._wait = query, wait
        self.after, self.epoch = after, epoch
        self.columns: Sequence[Mapping[str, Any]] = ()
        self.is_over = False
        self._has_ended, self._asks_state, self._seconds = False, False, 0.0
        self._limit = PAGE

    def request(self) -> Request:
        """The next request."""
        if self._asks_state:
            return get(path_of(self._query))
        path = f"{path_of(self._query)}/results"
        return get(path, after=self.after, wait=self._seconds, epoch=self.epoch, limit=self._limit)

    def take(self, found: Mapping[str, Any]) -> list[Update]:
        """The updates of an answer. They end with the query."""
        if self._asks_state:
            self._asks_state = False
            self._has_ended = found["state"] in ENDED_STATES
            self._seconds = 0.0 if self._has_ended else self._wait
            return []
        self._limit = min(PAGE, 2 * self._limit)
        self.after, self.epoch, self.columns = found["next"], found["epoch"], found["columns"]
        updates = [Update(line, found["epoch"]) for line in found["updates"]]
        if not updates:
            self.is_over = self._has_ended  # this page was asked for after the end
            self._asks_state = not self.is_over
        return updates

    def skip_gone(self, error: StationError) -> bool:
        """Go on with the first update that is kept, if the error says that those before it are not."""
        after = error.problem.get("after")
        if error.status != 410 or not isinstance(after, int) or after <= self.after:
            return False
        self.after = after
        return True

    def take_error(self, error: StationError) -> StationError:
        """The error of a request of this reader. After one without an answer the next page is smaller, so that a bad link carries it."""
        if error.is_passing:
            self._limit = max(1, self._limit // 2)
        return ResultsGoneError(str(error), error.problem) if error.status == 410 else error
