"""StationJob and AsyncStationJob: work that a station does in a process beside it, such as the trial of a query."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from moteloom.client import requests
from moteloom.client.requests import LINES, LinePage, Patience, Request, StationError

if TYPE_CHECKING:
    from moteloom.client.async_station import AsyncStationClient
    from moteloom.client.station import StationClient

ENDED_JOBS = "done", "failed", "cancelled"
LOOK_SECONDS = 0.3
"""How long a reader waits before it asks for lines again."""
PAGE = 10_000
PATIENCE = 3_600.0
"""Seconds for which a reader of lines waits for a station that does not answer."""


def start_trial(text: str, span: str, seed: int, rows: Mapping[str, Iterable[Mapping[str, Any]]] | None) -> Request:
    """A request that tries a query on simulated motes for a span such as `10min`, or over rows by extent."""
    order: dict[str, Any] = {"text": text}
    parameters: dict[str, Any] = {"for": span, "seed": seed}
    if rows is not None:
        order["rows"] = {extent: [dict(row) for row in of] for extent, of in rows.items()}
        parameters = {}
    headers = {"content-type": requests.JSON, "idempotency-key": requests.new_key()}
    return Request("POST", "/v1/trials", parameters, json.dumps(order, allow_nan=False).encode(), headers)


def get_job(number: int) -> Request:
    """A request for the state of a job."""
    return requests.get(f"/v1/jobs/{number}")


def get_jobs(after: int) -> Request:
    """A request for the jobs with numbers above `after`."""
    return requests.get("/v1/jobs", after=after)


class LineReader:
    """The requests that follow a job to its end, and the lines in their answers."""

    def __init__(self, number: int, after: int) -> None:
        self._number, self._after = number, after
        self.is_over, self.is_idle = False, False

    def request(self) -> Request:
        """The next request."""
        parameters = {"after": self._after, "limit": PAGE}
        return Request("GET", f"/v1/jobs/{self._number}/results", parameters, None, {"accept": LINES})

    def take(self, page: LinePage) -> list[dict[str, Any]]:
        """The lines of an answer; `is_idle` says to wait before the next request."""
        self._after, self.is_over = page.next, page.is_complete
        self.is_idle = not page.lines and not page.is_complete
        return list(page.lines)


class _JobDescription:
    """`description` is what the station said of the job last."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.description = dict(description)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.number}, {self.description['kind']}, {self.description['state']}>"

    @property
    def number(self) -> int:
        return int(self.description["number"])

    def _cancel(self) -> Request:
        return requests.post(f"/v1/jobs/{self.number}/cancel")

    def _delete(self) -> Request:
        return Request("DELETE", f"/v1/jobs/{self.number}")

    def _take_end(self, description: Mapping[str, Any]) -> None:
        """Keep the description of a job that is over. StationError where it has failed, or was cancelled."""
        self.description = dict(description)
        if self.description["state"] == "failed":
            problem = self.description["problem"]
            raise StationError(f"job {self.number} failed: {problem['title']}", problem)
        if self.description["state"] == "cancelled":
            title = f"job {self.number} was cancelled"
            raise StationError(title, {"code": "cancelled", "title": title})


class StationJob(_JobDescription):
    """A job of a station."""

    def __init__(self, station: "StationClient", description: Mapping[str, Any]) -> None:
        super().__init__(description)
        self._station = station

    @property
    def state(self) -> str:
        """Its state now: waiting, running, done, failed or cancelled."""
        self.description = dict(self._station.send(get_job(self.number)))
        return str(self.description["state"])

    @property
    def progress(self) -> float:
        """How much of it is done now, from 0 to 1."""
        self.description = dict(self._station.send(get_job(self.number)))
        return float(self.description["progress"])

    def page(self, after: int = 0) -> LinePage:
        """The lines of its results that it has now, behind the first `after`; at most 10,000."""
        found: LinePage = self._station.send(LineReader(self.number, after).request())
        return found

    def lines(self, after: int = 0, *, patience: float = PATIENCE) -> Iterator[dict[str, Any]]:
        """The lines of its results as they come, to its end.

        Raises StationError where the job fails or is cancelled, and after `patience` seconds without an answer.
        """
        for page in self.pages(after, patience=patience):
            yield from page

    def pages(self, after: int = 0, *, patience: float = PATIENCE) -> Iterator[list[dict[str, Any]]]:
        """As `lines`, in lists as they arrive; an empty one where there was none. `description` is as new as the list."""
        reader, waiting = LineReader(self.number, after), Patience(patience)
        while not reader.is_over:
            try:
                described = self._station.send_once(get_job(self.number))
                found = reader.take(self._station.send_once(reader.request()))
            except StationError as error:
                time.sleep(waiting.delay(error))
                continue
            waiting.reset()
            self.description = dict(described)
            yield found
            if reader.is_idle:
                time.sleep(LOOK_SECONDS)
        self._take_end(self._station.send(get_job(self.number)))

    def cancel(self) -> None:
        """End it; the results that it has stay."""
        self.description = dict(self._station.send(self._cancel()))

    def delete(self) -> None:
        """End it, and forget it with its results."""
        self._station.send(self._delete())


class AsyncStationJob(_JobDescription):
    """A job of a station; methods are those of `StationJob`, to be awaited."""

    def __init__(self, station: "AsyncStationClient", description: Mapping[str, Any]) -> None:
        super().__init__(description)
        self._station = station

    async def state(self) -> str:
        """Its state now: waiting, running, done, failed or cancelled."""
        self.description = dict(await self._station.send(get_job(self.number)))
        return str(self.description["state"])

    async def progress(self) -> float:
        """How much of it is done now, from 0 to 1."""
        self.description = dict(await self._station.send(get_job(self.number)))
        return float(self.description["progress"])

    async def lines(self, after: int = 0, *, patience: float = PATIENCE) -> AsyncIterator[dict[str, Any]]:
        """The lines of its results as they come, to its end; as `StationJob.lines`."""
        reader, waiting = LineReader(self.number, after), Patience(patience)
        while not reader.is_over:
            try:
                found = reader.take(await self._station.send_once(reader.request()))
            except StationError as error:
                await asyncio.sleep(waiting.delay(error))
                continue
            waiting.reset()
            for line in found:
                yield line
            if reader.is_idle:
                await asyncio.sleep(LOOK_SECONDS)
        self._take_end(await self._station.send(get_job(self.number)))

    async def cancel(self) -> None:
        """End it; the results that it has stay."""
        self.description = dict(await self._station.send(self._cancel()))

    async def delete(self) -> None:
        """End it, and forget it with its results."""
        await self._station.send(self._delete())
