"""The routes of the station itself: motes, extents, events, health."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from basestation.rest.control import StationControl
from basestation.rest.wire import LARGEST


def station_routes(control: StationControl) -> APIRouter:
    """The routes that are about no single query."""
    router = APIRouter()

    @router.get("/v1/motes", summary="State, parent and reading counts of each mote")
    def motes() -> dict[str, Any]:
        return {"motes": control.motes()}

    @router.get("/v1/extents", summary="The extents that queries may read")
    def extents() -> dict[str, Any]:
        return {"extents": control.extents()}

    @router.get("/v1/events", summary="Operational events, the oldest first")
    def events(
        after: Annotated[int, Query(ge=0, le=LARGEST)] = 0, limit: Annotated[int, Query(ge=1, le=1_000)] = 100
    ) -> dict[str, Any]:
        found = control.events(after, limit)
        return {"events": found, "next": found[-1]["number"] if found else after}

    @router.get("/v1/health", summary="Whether data makes progress; 503 where it does not")
    def health() -> JSONResponse:
        found = control.health()
        return JSONResponse(dict(found), 200 if found["ok"] else 503)

    return router
