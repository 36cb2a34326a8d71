"""The routes of jobs: long work in a process beside the station.

A trial runs a query on simulated motes or over rows. A question of history asks the archive, or what late arrivals changed in its answer.
"""

import os
from collections.abc import Callable, Iterator
from typing import Annotated, Any, BinaryIO, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from acquisition.units import milliseconds_of
from basestation.rest.control import JsonObject, StationControl
from basestation.rest.query_routes import LONGEST_TEXT, Key, read_body
from basestation.rest.result_streams import PIECE_BYTES
from basestation.rest.wire import LARGEST, HttpProblemError, restore_plus

LONGEST_TRIAL_MS = 366 * 86_400_000
_EXAMPLE = (
    'send a query as text/plain, or JSON such as {"text": "SELECT …", "rows": {"road": [{"_tick": 0, "_site": 1}]}}'
)
_QUESTION = 'send a query as text/plain, or as JSON: {"text": "SELECT …"}'
_MOMENT_FORMS = "a tick, a time such as 2026-11-18T08:00:00Z, `+2h` from the first reading or `-7d` from the last"
_MOMENT = f"window: {_MOMENT_FORMS}"
Found = TypeVar("Found")
Begin = Annotated[str | None, Query(alias="from", max_length=40, description=f"the first {_MOMENT}")]
Until = Annotated[str | None, Query(alias="to", max_length=40, description=f"the last {_MOMENT}")]
SkipDamaged = Annotated[bool, Query(description="leave damaged files out, and note them")]
Number = Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last one that you have")]


def job_routes(control: StationControl) -> APIRouter:
    """The routes that start jobs, and those below /v1/jobs."""
    router = APIRouter()

    @router.post("/v1/trials", status_code=202, summary="Try a query on simulated motes, or over rows, as a job")
    async def start_trial(
        request: Request,
        key: Key = None,
        span: Annotated[
            str, Query(alias="for", max_length=40, description="the simulated time, such as 10min or 24h")
        ] = "1h",
        seed: Annotated[int, Query(ge=0, le=10**18, description="of chance in the simulation")] = 1,
    ) -> Any:
        text, rows = read_trial(await read_body(request, _EXAMPLE, None))
        ms = milliseconds_of(span)
        if not ms or ms > LONGEST_TRIAL_MS:
            raise HttpProblemError(
                422,
                "bad-request",
                f"`for` is no span of time up to 366 days: {span}",
                "send one such as 90s, 30min or 24h",
            )
        return await run_in_threadpool(control.start_trial, text, ms, seed, rows, key, None)

    @router.post("/v1/history", status_code=202, summary="Ask the archive, as a job of Spark")
    async def start_history(
        request: Request,
        key: Key = None,
        begin: Begin = None,
        until: Until = None,
        skip_damaged: SkipDamaged = False,
    ) -> Any:
        text = read_question_text(await read_body(request, _QUESTION, None))
        return await run_in_threadpool(
            control.start_history, text, restore_plus(begin), restore_plus(until), None, skip_damaged, key, None
        )

    @router.post("/v1/history/recompute", status_code=202, summary="Ask what late arrivals changed, as a job of Spark")
    async def start_recomputation(
        request: Request,
        since: Annotated[str, Query(max_length=40, description=f"the moment of the earlier answer: {_MOMENT_FORMS}")],
        key: Key = None,
        begin: Begin = None,
        until: Until = None,
        skip_damaged: SkipDamaged = False,
    ) -> Any:
        text = read_question_text(await read_body(request, _QUESTION, None))
        moments = restore_plus(begin), restore_plus(until), restore_plus(since)
        return await run_in_threadpool(control.start_history, text, *moments, skip_damaged, key, None)

    @router.get("/v1/jobs", summary="Jobs, the oldest first")
    def jobs(after: Number = 0, limit: Annotated[int, Query(ge=1, le=1_000)] = 100) -> dict[str, Any]:
        found = control.jobs(after, limit)
        return {"jobs": found, "next": found[-1]["number"] if found else after}

    @router.get("/v1/jobs/{job}", summary="One job: its state, progress, and why it failed")
    def job(job: int) -> Any:
        return find(job, control.job)

    @router.get("/v1/jobs/{job}/results", summary="Lines of the results of a job, also while it runs")
    def results(job: int, after: Number = 0, limit: Annotated[int, Query(ge=1, le=100_000)] = 10_000) -> Response:
        page = find(job, lambda number: control.job_results(number, after, limit))
        headers = {"moteloom-next": str(page.next), "moteloom-complete": "true" if page.is_complete else "false"}
        return Response("".join(page.lines), media_type="application/x-ndjson", headers=headers)

    @router.get("/v1/jobs/{job}/results.csv", summary="The answer of the archive as CSV, once the job is done")
    def results_csv(job: int) -> Response:
        return send(job, ".csv", "text/csv")

    @router.get("/v1/jobs/{job}/results.arrow", summary="The answer of the archive as an Arrow IPC stream")
    def results_arrow(job: int) -> Response:
        return send(job, ".arrow", "application/vnd.apache.arrow.stream")

    @router.post("/v1/jobs/{job}/cancel", summary="End a job; the results that it has stay")
    def cancel(job: int) -> Any:
        return find(job, control.cancel_job)

    @router.delete("/v1/jobs/{job}", status_code=204, summary="End a job, and forget it with its results")
    def delete(job: int) -> Response:
        find(job, control.delete_job)
        return Response(status_code=204)

    def send(job: int, suffix: str, media: str) -> Response:
        file = find(job, lambda number: control.open_job_file(number, suffix))
        if file is None:
            raise HttpProblemError(
                409, "no-such-format", f"job {job} has no results as {suffix[1:]}",
                f"a question of history has them once its state is `done`; lines of JSON: /v1/jobs/{job}/results",
            )  # fmt: skip
        size = os.fstat(file.fileno()).st_size
        return StreamingResponse(_read_pieces(file), media_type=media, headers={"content-length": str(size)})

    def find(job: int, call: Callable[[int], Found]) -> Found:
        try:
            return call(job)
        except KeyError:
            known = [str(each["number"]) for each in control.jobs(0, 1_000)]
            remedy = f"yours are {', '.join(known)}" if known else "you have none: POST /v1/trials or /v1/history"
            raise HttpProblemError(
                404, "no-such-job", f"there is no job {job}", f"{remedy}; a restart of the station forgets jobs"
            ) from None

    return router


def _read_pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def read_question_text(given: str | JsonObject) -> str:
    """The text of a body that asks the archive. HttpProblemError where it has none, or anything else."""
    text = given if isinstance(given, str) else given.get("text")
    if not isinstance(text, str) or (not isinstance(given, str) and given.keys() - {"text"}):
        raise HttpProblemError(422, "bad-request", "the body is no question", _QUESTION)
    if len(text) > LONGEST_TEXT:
        raise HttpProblemError(413, "too-long", f"a text has at most {LONGEST_TEXT:,} characters")
    return text


def read_trial(given: str | JsonObject) -> tuple[str, dict[str, list[JsonObject]] | None]:
    """The text and the rows of a body; None for rows where the query is for simulated motes."""
    found: JsonObject = {"text": given} if isinstance(given, str) else given
    text, rows = found.get("text"), found.get("rows")
    if not isinstance(text, str) or found.keys() - {"text", "rows"}:
        raise HttpProblemError(422, "bad-request", "the body is no trial", _EXAMPLE)
    if len(text) > LONGEST_TEXT:
        raise HttpProblemError(413, "too-long", f"a text has at most {LONGEST_TEXT:,} characters")
    if rows is None:
        return text, None
    is_table = isinstance(rows, dict) and all(
        isinstance(of, list) and all(isinstance(row, dict) for row in of) for of in rows.values()
    )
    if not is_table:  # a text here would be the path of a file
        raise HttpProblemError(422, "bad-request", "`rows` is no list of objects for each extent", _EXAMPLE)
    return text, rows
