"""The routes about texts that do not run: check, complete and explain."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import PlainTextResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.control import StationControl
from basestation.rest.query_routes import read_text
from basestation.rest.wire import LARGEST, HttpProblemError

LONGEST_COMPLETED = 10_000
"""Characters of a text to complete, which the parser reads in 0.02 s at each key."""


def text_routes(control: StationControl) -> APIRouter:
    """The routes that take a text and change nothing."""
    router = APIRouter()

    @router.post("/v1/check", summary="Every error of a text, each with its place; of a correct text, its statements")
    async def check(request: Request) -> Any:
        text = await read_text(request)
        return await run_in_threadpool(control.check, text)

    @router.post("/v1/complete", summary="The words that can stand at a cursor in a text, from the parser itself")
    async def complete(
        request: Request,
        cursor: Annotated[
            int | None, Query(ge=0, le=LARGEST, description="offset in code points; default: the end of the text")
        ] = None,
    ) -> Any:
        text = await read_text(request)
        if len(text) > LONGEST_COMPLETED:
            raise HttpProblemError(413, "too-long", f"a text to complete has at most {LONGEST_COMPLETED:,} characters")
        return await run_in_threadpool(control.complete, text, len(text) if cursor is None else min(cursor, len(text)))

    @router.post(
        "/v1/explain", summary="Meaning, rewrites and operators of each statement; as text with Accept: text/plain"
    )
    async def explain(request: Request) -> Any:
        text = await read_text(request)
        explained = await run_in_threadpool(control.explain, text)
        if "text/plain" in request.headers.get("accept", ""):
            return PlainTextResponse("\n".join(rendered for _, rendered in explained))
        return {"statements": [each for each, _ in explained]}

    return router
