"""The routes of results: pages, JSON lines, and server-sent events that resume."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import ResultPage, StationControl
from basestation.rest.query_routes import no_such_query
from basestation.rest.wire import LARGEST, LOOK_SECONDS, HttpProblemError
from basestation.results.feed import UpdatesExpiredError

After = Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last update that you have")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="at most so many updates")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for an update where there is none yet")]
Epoch = Annotated[
    str | None,
    Query(max_length=8, description="`epoch` of the page before; 410 where the numbers have begun anew since"),
]
HEARTBEAT_SECONDS = 15.0
"""How often a silent event stream sends a comment, so that proxies keep it open."""


def result_routes(control: StationControl, is_ending: Callable[[], bool]) -> APIRouter:
    """The routes of the answers of queries."""
    router = APIRouter()

    async def read(query: str, after: int, limit: int, epoch: str | None = None) -> ResultPage:
        try:
            page = await run_in_threadpool(control.results, query, after, limit)
            if epoch not in (None, page.epoch):
                raise HttpProblemError(
                    410, "results-gone", "the station was restored from a backup since: its numbers begin anew",
                    f"begin with after=0&epoch={page.epoch}",
                )  # fmt: skip
            return page
        except KeyError:
            raise no_such_query(query, control) from None
        except UpdatesExpiredError as gone:
            raise HttpProblemError(
                410,
                "results-gone",
                f"updates before {gone.first} are not kept any more",
                f"begin with after={gone.first - 1}",
            ) from None

    async def wait_for(query: str, after: int, limit: int, seconds: float, epoch: str | None) -> ResultPage:
        end = time.monotonic() + seconds
        page = await read(query, after, limit, epoch)
        while not page.lines and time.monotonic() < end and not is_ending():
            await asyncio.sleep(LOOK_SECONDS)
            page = await read(query, after, limit, epoch)
        return page

    @router.get(
        "/v1/queries/{query}/results", summary="A page of updates; with Accept: text/event-stream, all that come"
    )
    async def results(
        request: Request, query: str, after: After = 0, limit: Limit = 1_000, wait: Wait = 0, epoch: Epoch = None,
        last_event_id: Annotated[str | None, Header(pattern=r"^([0-9a-f]{8}-)?[0-9]{1,15}$")] = None,
    ) -> Response:  # fmt: skip
        if "text/event-stream" in request.headers.get("accept", ""):
            if last_event_id is not None:
                given, _, number = last_event_id.rpartition("-")
                after, epoch = int(number), given or epoch
            first = await read(query, after, limit, epoch)
            return StreamingResponse(follow(request, query, first), media_type="text/event-stream")
        page = await wait_for(query, after, limit, wait, epoch)
        head = json.dumps({"query": page.query, "epoch": page.epoch, **page.schema})[:-1]
        return Response(
            f'{head}, "updates": [{", ".join(page.lines)}], "next": {page.next}}}', media_type="application/json"
        )

    @router.get("/v1/queries/{query}/results.jsonl", summary="A page of updates, one JSON object a line")
    async def lines(
        query: str, after: After = 0, limit: Limit = 1_000, wait: Wait = 0, epoch: Epoch = None
    ) -> Response:
        page = await wait_for(query, after, limit, wait, epoch)
        return Response("".join(f"{line}\n" for line in page.lines), media_type="application/x-ndjson")

    async def follow(request: Request, query: str, page: ResultPage) -> AsyncIterator[str]:
        silent_since = time.monotonic()
        while not is_ending() and not await request.is_disconnected():
            for line in page.lines:
                yield f"id: {page.epoch}-{json.loads(line)['number']}\ndata: {line}\n\n"
            if page.lines:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > HEARTBEAT_SECONDS:
                silent_since = time.monotonic()
                yield ": nothing new\n\n"
            if not page.lines:
                await asyncio.sleep(LOOK_SECONDS)
            try:
                page = await read(str(page.query), page.next, 1_000)  # a name may change its query
            except HttpProblemError as gone:  # the reader was too slow, and the answer has begun
                yield f"event: problem\ndata: {json.dumps(gone.as_json())}\n\n"
                return

    return router
