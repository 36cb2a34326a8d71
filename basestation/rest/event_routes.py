"""The route of operational events: pages, a long poll, and server-sent events that resume."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.wire import (
    EVENT_STREAM,
    HEARTBEAT_SECONDS,
    LARGEST,
    LOOK_SECONDS,
    HttpProblemError,
    LastEventId,
    check_begin,
    read_last_event,
)


def event_routes(control: StationControl, is_ending: Callable[[], bool]) -> APIRouter:
    """The route of operational events."""
    router = APIRouter()

    @router.get(
        "/v1/events", summary="Operational events, the oldest first; with Accept: text/event-stream, all that come"
    )
    async def events(
        request: Request,
        after: Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last event that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        query: Annotated[int | None, Query(ge=0, le=LARGEST, description="only events about this query")] = None,
        event: Annotated[
            str | None, Query(max_length=100, description="only events of this kind, such as `mote lost`")
        ] = None,
        wait: Annotated[float, Query(ge=0, le=60, description="seconds to wait for an event")] = 0,
        last_event_id: LastEventId = None,
    ) -> Response:
        if EVENT_STREAM in request.headers.get("accept", ""):
            epoch, newest = await run_in_threadpool(control.event_bounds)
            if last_event_id is not None:
                after = read_last_event(last_event_id, epoch, newest)
            check_begin("`after`", after, newest)
            return StreamingResponse(follow(request, after, query, event, epoch), media_type=EVENT_STREAM)
        end = time.monotonic() + wait
        while True:
            found, behind = await run_in_threadpool(control.events, after, limit, query, None, event)
            if found or time.monotonic() >= end or is_ending():
                return JSONResponse({"events": found, "next": behind})
            await asyncio.sleep(LOOK_SECONDS)

    async def follow(
        request: Request, after: int, query: int | None, event: str | None, epoch: str
    ) -> AsyncIterator[str]:
        silent_since = time.monotonic()
        while not is_ending() and not await request.is_disconnected():
            try:
                found, after = await run_in_threadpool(control.events, after, 1_000, query, None, event)
            except HttpProblemError as gone:  # the token has ended
                yield f"event: problem\ndata: {json.dumps(gone.as_json())}\n\n"
                return
            for each in found:
                yield f"id: {epoch}-{each['number']}\ndata: {json.dumps(each)}\n\n"
            if found:
                silent_since = time.monotonic()
                continue
            if time.monotonic() - silent_since > HEARTBEAT_SECONDS:
                silent_since = time.monotonic()
                yield ": nothing new\n\n"
            await asyncio.sleep(LOOK_SECONDS)

    return router
