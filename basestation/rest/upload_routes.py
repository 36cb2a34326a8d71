"""The routes that take data: tuples of pushed extents, tables, and statements that correct what was delivered."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import JsonObject, StationControl
from basestation.rest.query_routes import read_text
from basestation.rest.wire import HttpProblemError

LARGEST_BODY = 128 * 1024 * 1024
"""Bytes of a push: about two million tuples as JSON lines."""
FORMATS = {
    "application/x-ndjson": "jsonl", "application/jsonl": "jsonl", "application/json": "json", "text/csv": "csv",
    "application/senml+json": "senml", "application/vnd.apache.arrow.stream": "arrow",
}  # fmt: skip
"""The format of a body by its media type."""
Key = Annotated[str | None, Header(alias="Idempotency-Key", max_length=200)]
Upload = Callable[[str, bytes, str, str | None], JsonObject]


def upload_routes(control: StationControl) -> APIRouter:
    """The routes that take data."""
    router = APIRouter()

    async def take(request: Request, extent: str, key: str | None, upload: Upload) -> Any:
        form = _format_of(request)
        body = await _read_body(request)
        try:
            return await run_in_threadpool(upload, extent, body, form, key)
        except KeyError:
            raise no_such_extent(extent, control) from None

    @router.post("/v1/extents/{name}/tuples", summary="Push tuples; the receipt comes when they are durable")
    async def push(request: Request, name: str, key: Key = None) -> Any:
        return await take(request, name, key, control.push)

    @router.put("/v1/extents/{name}/rows", summary="Give a stored extent a new version, valid from now on")
    async def load(request: Request, name: str, key: Key = None) -> Any:
        return await take(request, name, key, control.load)

    @router.put("/v1/extents/{name}", status_code=201, summary="Declare a pushed or stored extent")
    async def declare(request: Request, response: Response, name: str, key: Key = None) -> Any:
        text = await read_text(request)
        found = await run_in_threadpool(control.declare, name, text, key)
        response.status_code = 200 if found["repeated"] else 201
        return found

    @router.get("/v1/tables", summary="The versions of each stored extent")
    def tables() -> dict[str, Any]:
        return {"tables": control.tables()}

    @router.post("/v1/statements", summary="Carry out REVISE, DELETE and INSERT")
    async def correct(request: Request, key: Key = None) -> Any:
        text = await read_text(request)
        return await run_in_threadpool(control.correct, text, key)

    return router


def no_such_extent(name: str, control: StationControl) -> HttpProblemError:
    """The problem of a name that no extent has."""
    known = ", ".join(str(each["name"]) for each in control.extents())
    return HttpProblemError(404, "no-such-extent", f"there is no extent {name[:80]}", f"extents are {known}")


def _format_of(request: Request) -> str:
    given = request.headers.get("content-type", "application/x-ndjson").partition(";")[0].strip().lower()
    if given not in FORMATS:
        raise HttpProblemError(
            415, "unknown-format", f"expected a body of tuples, found {given[:80]}", "send " + ", ".join(FORMATS)
        )
    return FORMATS[given]


async def _read_body(request: Request) -> bytes:
    parts, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > LARGEST_BODY:
            raise HttpProblemError(
                413, "too-long", f"a body has at most {LARGEST_BODY:,} bytes", "send the tuples in several requests"
            )
        parts.append(chunk)
    return b"".join(parts)
