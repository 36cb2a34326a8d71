"""The routes of the station itself: motes, extents, events, health."""

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.exposition import MEDIA_TYPE, to_text
from basestation.rest.upload_routes import no_such_extent
from basestation.rest.wire import LARGEST, LOOK_SECONDS


def station_routes(control: StationControl, is_ending: Callable[[], bool]) -> APIRouter:
    """The routes that are about no single query."""
    router = APIRouter()

    @router.get("/v1/motes", summary="Each mote as its data shows it: health, times, links, reading counts")
    def motes() -> dict[str, Any]:
        return {"motes": control.motes()}

    @router.get("/v1/extents", summary="The extents that queries may read")
    def extents() -> dict[str, Any]:
        return {"extents": control.extents()}

    @router.get("/v1/extents/{name}/latest", summary="The newest value of each attribute at each site")
    def latest(name: str) -> JSONResponse:
        try:
            return JSONResponse({"extent": name, "sites": control.latest(name)})
        except KeyError:
            raise no_such_extent(name, control) from None

    @router.get("/v1/topology", summary="The routing tree, and the links that motes report")
    def topology() -> Any:
        return control.topology()

    @router.get("/v1/events", summary="Operational events, the oldest first")
    async def events(
        after: Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last event that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        query: Annotated[int | None, Query(ge=0, le=LARGEST, description="only events about this query")] = None,
        wait: Annotated[float, Query(ge=0, le=60, description="seconds to wait for an event")] = 0,
    ) -> dict[str, Any]:
        end = time.monotonic() + wait
        while True:
            found, behind = await run_in_threadpool(control.events, after, limit, query)
            if found or time.monotonic() >= end or is_ending():
                return {"events": found, "next": behind}
            await asyncio.sleep(LOOK_SECONDS)

    @router.get("/v1/ready", summary="Whether the station takes queries and data now; 503 where it does not")
    def ready() -> JSONResponse:
        found = control.health()
        return JSONResponse({"ready": found["takes_commands"]}, 200 if found["takes_commands"] else 503)

    @router.get("/v1/metrics", summary="Figures for Prometheus", response_class=Response)
    def metrics() -> Response:
        return Response(to_text(control.metrics()), media_type=MEDIA_TYPE)

    @router.get("/v1/health", summary="Whether data makes progress; 503 where it does not")
    def health() -> JSONResponse:
        found = control.health()
        return JSONResponse(dict(found), 200 if found["ok"] else 503)

    return router
