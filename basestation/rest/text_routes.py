"""The routes about texts that do not run: check and explain."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.query_routes import read_text


def text_routes(control: StationControl) -> APIRouter:
    """The routes that take a text and change nothing."""
    router = APIRouter()

    @router.post("/v1/check", summary="Every error of a text, each with its place; of a correct text, its statements")
    async def check(request: Request) -> Any:
        text, _ = await read_text(request, None)
        return await run_in_threadpool(control.check, text)

    @router.post(
        "/v1/explain", summary="Meaning, rewrites and operators of each statement; as text with Accept: text/plain"
    )
    async def explain(request: Request) -> Any:
        text, _ = await read_text(request, None)
        explained = await run_in_threadpool(control.explain, text)
        if "text/plain" in request.headers.get("accept", ""):
            return PlainTextResponse("\n".join(rendered for _, rendered in explained))
        return {"statements": [each for each, _ in explained]}

    return router
