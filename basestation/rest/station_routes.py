"""The routes of the station itself: motes, extents, health."""

from typing import Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.exposition import MEDIA_TYPE, to_text
from basestation.rest.prepared_answers import PreparedAnswers
from basestation.rest.upload_routes import no_such_extent
from basestation.rest.wire import encode_json


def station_routes(control: StationControl) -> APIRouter:
    """The routes that are about no single query."""
    router, prepared = APIRouter(), PreparedAnswers()

    @router.get("/v1/motes", summary="Each mote as its data shows it: health, times, links, reading counts")
    def motes() -> dict[str, Any]:
        return {"motes": control.motes()}

    @router.get("/v1/extents", summary="The extents that queries may read")
    def extents() -> dict[str, Any]:
        return {"extents": control.extents()}

    @router.get("/v1/extents/{name}/latest", summary="The newest value of each attribute at each site")
    async def latest(name: str) -> Response:
        _, version = control.versions()
        body = prepared.find(name, version)
        if body is None:
            try:
                sites = await run_in_threadpool(control.latest, name)
            except KeyError:
                raise no_such_extent(name, control) from None
            body = prepared.keep(name, version, encode_json({"extent": name, "sites": sites}))
        return Response(body, media_type="application/json")

    @router.get("/v1/topology", summary="The routing tree, and the links that motes report")
    def topology() -> Any:
        return control.topology()

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
