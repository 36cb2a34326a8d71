"""AsyncStationClient and AsyncQuery: the client for asyncio. Methods are those of `moteloom.client.station`, to be awaited."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from moteloom.client import jobs, requests
from moteloom.client.answer import Answer, UpdateSum
from moteloom.client.jobs import AsyncStationJob
from moteloom.client.requests import Patience, Request, StationError, get, path_of
from moteloom.client.results import WAIT_SECONDS, ResultReader, ResultsGoneError, Update, updates_of_current
from moteloom.client.station import LIVE_WINDOWS, PATIENCE
from moteloom.station_address import Address, find_station


def connect_async(
    url: str | None = None,
    token: str | None = None,
    *,
    data: str | Path | None = None,
    ca: str | Path | None = None,
    patience: float = 0.0,
) -> "AsyncStationClient":
    """As `connect`: `async with connect_async() as station`."""
    return AsyncStationClient(find_station(url, token, data, ca), patience)


class AsyncStationClient:
    """A running station. Methods raise StationError where it refuses, or cannot be reached."""

    def __init__(
        self, address: Address, patience: float = 0.0, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.url = address.url
        self._patience, self._address, self._transport = patience, address, transport
        self._http: httpx.AsyncClient | None = None

    async def __aenter__(self) -> "AsyncStationClient":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()

    async def send(self, request: Request, patience: float | None = None) -> Any:
        """The JSON of the answer to a request, sent again for `patience` seconds; None: for those of this station."""
        waiting = Patience(self._patience if patience is None else patience)
        while True:
            try:
                return await self.send_once(request)
            except StationError as error:
                await asyncio.sleep(waiting.delay(error))

    async def send_once(self, request: Request) -> Any:
        """The JSON of the answer to a request."""
        try:
            if self._http is None:
                self._http = httpx.AsyncClient(**requests.http_arguments(self._address), transport=self._transport)
            answer = await self._http.request(**request.arguments())
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as why:
            raise requests.unreachable(self.url, why) from None
        return requests.read_answer(answer, self.url)

    async def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a route, for routes without a method here."""
        return await self.send(requests.get(path, **parameters))

    async def post(self, path: str, body: str = "", **parameters: Any) -> Any:
        """The JSON of the answer to a text, for routes without a method here; it is carried out once."""
        return await self.send(requests.post(path, body, requests.new_key(), **parameters))

    async def submit(self, text: str, name: str | None = None) -> "AsyncQuery":
        """Start a query."""
        return AsyncQuery(self, await self.post("/v1/queries", text, name=name))

    async def query(self, query: int | str) -> "AsyncQuery":
        """The query with a number or name."""
        return AsyncQuery(self, await self.get(path_of(query)))

    async def extents(self) -> list[dict[str, Any]]:
        """The extents that queries may read, with their attributes."""
        return list((await self.get("/v1/extents"))["extents"])

    async def latest(self, extent: str) -> list[dict[str, Any]]:
        """The newest value of each attribute at each site."""
        return list((await self.send(requests.latest(extent)))["sites"])

    async def push(
        self, extent: str, rows: Iterable[Mapping[str, Any]] | bytes, media_type: str = requests.LINES
    ) -> dict[str, Any]:
        """Deliver tuples to an extent; the receipt says how many are durable, and why the others were rejected."""
        return dict(await self.send(requests.push(extent, rows, media_type, requests.new_key())))

    async def start_trial(
        self, text: str, span: str = "1h", seed: int = 1, rows: Mapping[str, Iterable[Mapping[str, Any]]] | None = None
    ) -> AsyncStationJob:
        """Try a query in a process beside the station: on simulated motes for `span`, or over `rows` by extent."""
        return AsyncStationJob(self, await self.send(jobs.start_trial(text, span, seed, rows)))

    async def queries(self, state: str | None = None) -> "AsyncIterator[AsyncQuery]":
        """All queries, or those in a state, the oldest first."""
        after = 0
        while page := (await self.get("/v1/queries", after=after, state=state))["queries"]:
            for found in page:
                yield AsyncQuery(self, found)
            after = page[-1]["number"]

    async def job(self, number: int) -> AsyncStationJob:
        """The job with a number."""
        return AsyncStationJob(self, await self.send(jobs.get_job(number)))

    async def jobs(self) -> AsyncIterator[AsyncStationJob]:
        """All jobs that the station keeps, the oldest first."""
        after = 0
        while page := (await self.send(jobs.get_jobs(after)))["jobs"]:
            for found in page:
                yield AsyncStationJob(self, found)
            after = page[-1]["number"]

    async def health(self) -> dict[str, Any]:
        """Whether data makes progress; a station without progress is no error here."""
        try:
            return dict(await self.send_once(requests.get("/v1/health")))
        except StationError as error:
            if "ok" not in error.problem:
                raise
            return error.problem


class AsyncQuery:
    """A query of a station. `description` is what the station said of it last."""

    def __init__(self, station: AsyncStationClient, description: Mapping[str, Any]) -> None:
        self._station = station
        self.description = dict(description)

    def __repr__(self) -> str:
        return f"<AsyncQuery {self.number}, {self.description['state']}: {' '.join(self.description['text'].split())}>"

    @property
    def number(self) -> int:
        return int(self.description["number"])

    async def state(self) -> str:
        """Its state now."""
        self.description = dict(await self._station.get(path_of(self.number)))
        return str(self.description["state"])

    async def updates(
        self, after: int = 0, epoch: str | None = None, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> AsyncIterator[Update]:
        """Its updates behind a number, as they come, to its end; as `Query.updates`."""
        async for page in self.pages(after, epoch, wait=wait, patience=patience):
            for update in page:
                yield update

    async def pages(
        self, after: int = 0, epoch: str | None = None, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> AsyncIterator[list[Update]]:
        """As `updates`, in lists as they arrive; an empty one where `wait` seconds brought none."""
        reader, waiting = ResultReader(self.number, after, epoch, wait), Patience(patience)
        while not reader.is_over:
            try:
                found = await self._station.send_once(reader.request())
            except StationError as error:
                await asyncio.sleep(waiting.delay(reader.take_error(error)))
                continue
            waiting.reset()
            yield reader.take(found)

    async def current(self) -> Answer:
        """The sum of the updates until now that the station keeps; `first` of the answer says where they begin."""
        reader = ResultReader(self.number)
        updates: list[Update] = []
        while True:
            try:
                page = reader.take(await self._station.send(reader.request()))
            except StationError as error:
                if not reader.skip_gone(error):
                    raise reader.take_error(error) from None
                updates.clear()
                continue
            if not page:
                return Answer(reader.columns, updates)
            updates += page

    async def answers(
        self, last: int = LIVE_WINDOWS, *, wait: float = WAIT_SECONDS, patience: float = PATIENCE
    ) -> AsyncIterator[Answer]:
        """Its newest `last` windows or ticks of tuples, now and after each change, to its end; as `Query.answers`."""
        request, is_over = get(f"{path_of(self.number)}/current", last=last), False
        while not is_over:
            found = await self._station.send(request, patience)
            total = UpdateSum(is_cut=True)
            total.add(updates_of_current(found))
            yield Answer.of(found["columns"], total)
            try:
                async for page in self.pages(found["next"], found["epoch"], wait=wait, patience=patience):
                    if page:
                        total.add(page)
                        total.keep_newest(last)
                        yield Answer.of(found["columns"], total)
                is_over = True
            except ResultsGoneError:  # updates were dropped before they were read: the current answer has their sum
                continue

    async def stop(self, drain: bool = False) -> None:
        """End it; with `drain` after the readings that are on their way."""
        await self._change("stop", drain="true" if drain else None)

    async def pause(self) -> None:
        """Let it run no more until it is resumed."""
        await self._change("pause")

    async def resume(self) -> None:
        """Let it run again, for the windows from now on."""
        await self._change("resume")

    async def _change(self, kind: str, **parameters: Any) -> None:
        self.description = dict(await self._station.post(f"{path_of(self.number)}/{kind}", **parameters))
