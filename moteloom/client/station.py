"""StationClient and Query: the client that blocks."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from moteloom.client import jobs, requests
from moteloom.client.answer import Answer, UpdateSum
from moteloom.client.jobs import StationJob
from moteloom.client.requests import Patience, Request, StationError, get, path_of
from moteloom.client.results import WAIT_SECONDS, ResultReader, ResultsGoneError, Update, updates_of_current
from moteloom.station_address import Address, find_station

PATIENCE = 3_600.0
"""Seconds for which a reader of updates waits for a station that does not answer."""
LIVE_WINDOWS = 500
"""Windows or ticks of tuples that a live answer has."""


def connect(
    url: str | None = None,
    token: str | None = None,
    *,
    data: str | Path | None = None,
    ca: str | Path | None = None,
    patience: float = 0.0,
) -> "StationClient":
    """The station at a URL, or of a data directory on this machine (`moteloom-data`); MOTELOOM_URL and MOTELOOM_TOKEN count as given.

    `ca` is a PEM file with the certificates to trust; the station of a data directory is known by its own. `patience`: seconds for which a request is sent again while no
    station answers; requests with an effect have a key, so that they are carried out once. The first request shows whether
    there is a station.
    """
    return StationClient(find_station(url, token, data, ca), patience)


class StationClient:
    """A running station. Methods raise StationError where it refuses, or cannot be reached."""

    def __init__(self, address: Address, patience: float = 0.0, transport: httpx.BaseTransport | None = None) -> None:
        self.url = address.url
        self._patience, self._address, self._transport = patience, address, transport
        self._http: httpx.Client | None = None

    def __enter__(self) -> "StationClient":
        return self

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            self._http.close()

    def send(self, request: Request, patience: float | None = None) -> Any:
        """The JSON of the answer to a request, sent again for `patience` seconds; None: for those of this station."""
        waiting = Patience(self._patience if patience is None else patience)
        while True:
            try:
                return self.send_once(request)
            except StationError as error:
                time.sleep(waiting.delay(error))

    def send_once(self, request: Request) -> Any:
        """The JSON of the answer to a request."""
        try:
            if self._http is None:
                self._http = httpx.Client(**requests.http_arguments(self._address), transport=self._transport)
            answer = self._http.request(**request.arguments())
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as why:
            raise requests.unreachable(self.url, why) from None
        return requests.read_answer(answer, self.url)

    def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a route, for routes without a method here."""
        return self.send(requests.get(path, **parameters))

    def post(self, path: str, body: str = "", **parameters: Any) -> Any:
        """The JSON of the answer to a text, for routes without a method here; it is carried out once."""
        return self.send(requests.post(path, body, requests.new_key(), **parameters))

    def submit(self, text: str, name: str | None = None) -> "Query":
        """Start a query."""
        return Query(self, self.post("/v1/queries", text, name=name))

    def query(self, query: int | str) -> "Query":
        """The query with a number or name."""
        return Query(self, self.get(path_of(query)))

    def queries(self, state: str | None = None) -> Iterator["Query"]:
        """All queries, or those in a state, the oldest first."""
        after = 0
        while page := self.get("/v1/queries", after=after, state=state)["queries"]:
            yield from (Query(self, found) for found in page)
            after = page[-1]["number"]

    def extents(self) -> list[dict[str, Any]]:
        """The extents that queries may read, with their attributes."""
        return list(self.get("/v1/extents")["extents"])

    def latest(self, extent: str) -> list[dict[str, Any]]:
        """The newest value of each attribute at each site."""
        return list(self.send(requests.latest(extent))["sites"])

    def push(
        self, extent: str, rows: Iterable[Mapping[str, Any]] | bytes, media_type: str = requests.LINES
    ) -> dict[str, Any]:
        """Deliver tuples to an extent; the receipt says how many are durable, and why the others were rejected.

        `rows` are mappings, or a body of a media type such as `text/csv` or `application/vnd.apache.arrow.stream`.
        """
        return dict(self.send(requests.push(extent, rows, media_type, requests.new_key())))

    def start_trial(
        self, text: str, span: str = "1h", seed: int = 1, rows: Mapping[str, Iterable[Mapping[str, Any]]] | None = None
    ) -> StationJob:
        """Try a query in a process beside the station: on simulated motes for `span`, or over `rows` by extent."""
        return StationJob(self, self.send(jobs.start_trial(text, span, seed, rows)))

    def job(self, number: int) -> StationJob:
        """The job with a number."""
        return StationJob(self, self.send(jobs.get_job(number)))

    def jobs(self) -> Iterator[StationJob]:
        """All jobs that the station keeps, the oldest first."""
        after = 0
        while page := self.send(jobs.get_jobs(after))["jobs"]:
            yield from (StationJob(self, found) for found in page)
            after = page[-1]["number"]

    def health(self) -> dict[str, Any]:
        """Whether data makes progress; a station without progress is no error here."""
        try:
            return dict(self.send_once(requests.get("/v1/health")))
        except StationError as error:
            if "ok" not in error.problem:
                raise
            return error.problem


class Query:
    """A query of a station. `description` is what the station said of it last."""

    def __init__(self, station: StationClient, description: Mapping[str, Any]) -> None:
        self._station = station
        self.description = dict(description)

    def __repr__(self) -> str:
        return f"<Query {self.number}, {self.description['state']}: {' '.join(self.description['text'].split())}>"

    @property
    def number(self) -> int:
        return int(self.description["number"])

    @property
    def state(self) -> str:
        """Its state now."""
        self.description = dict(self._station.get(path_of(self.number)))
        return str(self.description["state"])

    def updates(
        self, after: int = 0, epoch: str | None = None, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> Iterator[Update]:
        """Its updates behind a number, as they come, to its end. A cut connection or a restart of the station shows in no update.

        `number` and `epoch` of the last update are the place to go on, also in another process. Raises ResultsGoneError where
        the place is not kept any more, StationError after `patience` seconds without an answer.
        """
        for page in self.pages(after, epoch, wait=wait, patience=patience):
            yield from page

    def pages(
        self, after: int = 0, epoch: str | None = None, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> Iterator[list[Update]]:
        """As `updates`, in lists as they arrive; an empty one where `wait` seconds brought none."""
        reader, waiting = ResultReader(self.number, after, epoch, wait), Patience(patience)
        while not reader.is_over:
            try:
                found = self._station.send_once(reader.request())
            except StationError as error:
                time.sleep(waiting.delay(reader.take_error(error)))
                continue
            waiting.reset()
            yield reader.take(found)

    def current(self) -> Answer:
        """The sum of the updates until now that the station keeps; `first` of the answer says where they begin."""
        reader = ResultReader(self.number)
        updates: list[Update] = []
        while True:
            try:
                page = reader.take(self._station.send(reader.request()))
            except StationError as error:
                if not reader.skip_gone(error):
                    raise reader.take_error(error) from None
                updates.clear()
                continue
            if not page:
                return Answer(reader.columns, updates)
            updates += page

    def answers(
        self, last: int = LIVE_WINDOWS, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> Iterator[Answer]:
        """Its newest `last` windows or ticks of tuples, now and after each change, to its end: what a notebook shows live.

        The first answer has those of the last 10,000 updates. A cut connection or a restart of the station shows in no answer. A
        reader so slow that the station drops updates before it reads them goes on with the answer as it is then; so it does after
        a restore. Raises StationError after `patience` seconds without an answer of the station.
        """
        request, is_over = get(f"{path_of(self.number)}/current", last=last), False
        while not is_over:
            found = self._station.send(request, patience)
            total = UpdateSum(is_cut=True)
            total.add(updates_of_current(found))
            yield Answer.of(found["columns"], total)
            try:
                for page in self.pages(found["next"], found["epoch"], wait=wait, patience=patience):
                    if page:
                        total.add(page)
                        total.keep_newest(last)
                        yield Answer.of(found["columns"], total)
                is_over = True
            except ResultsGoneError:  # updates were dropped before they were read: the current answer has their sum
                continue

    def show(self, last: int = LIVE_WINDOWS) -> None:
        """Show `answers` in a notebook, one in the place of the other, until the query ends or the cell is interrupted. Needs IPython."""
        from IPython.display import display

        shown: Any = None
        with suppress(KeyboardInterrupt):
            for answer in self.answers(last):
                if shown is None:
                    shown = display(answer, display_id=True)
                else:
                    shown.update(answer)

    def stop(self, drain: bool = False) -> None:
        """End it; with `drain` after the readings that are on their way."""
        self._change("stop", drain="true" if drain else None)

    def pause(self) -> None:
        """Let it run no more until it is resumed."""
        self._change("pause")

    def resume(self) -> None:
        """Let it run again, for the windows from now on."""
        self._change("resume")

    def _change(self, kind: str, **parameters: Any) -> None:
        self.description = dict(self._station.post(f"{path_of(self.number)}/{kind}", **parameters))
