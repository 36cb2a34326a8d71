"""The routes of results: pages in several formats, the current answer, and server-sent events that resume."""

import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from basestation.rest.commit_signal import wait_until
from basestation.rest.control import JsonObject, ResultPage
from basestation.rest.current_answer import CurrentAnswer, current_columns, current_rows
from basestation.rest.encoded_pages import Encode, EncodedPages
from basestation.rest.guarded_control import GuardedControl
from basestation.rest.query_routes import no_such_query
from basestation.rest.result_formats import (
    encode_arrow,
    encode_csv,
    encode_json_lines,
    encode_json_page,
    to_arrow,
    to_csv,
)
from basestation.rest.result_streams import ResultStreams
from basestation.rest.wire import (
    EVENT_STREAM,
    LARGEST,
    LOOK_SECONDS,
    HttpProblemError,
    LastEventId,
    check_begin,
    read_last_event,
    read_moment,
)
from basestation.results.feed import UpdatesExpiredError

After = Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last update that you have")]
Limit = Annotated[int, Query(ge=1, le=10_000, description="at most so many updates")]
Wait = Annotated[float, Query(ge=0, le=60, description="seconds to wait for an update where there is none yet")]
Epoch = Annotated[
    str | None,
    Query(max_length=8, description="`epoch` of the page before; 410 where the numbers have begun anew since"),
]
Since = Annotated[
    str | None,
    Query(
        max_length=40,
        description="RFC 3339, or ms since 1970: begin with what the station has answered from then on, if that is later",
    ),
]
Begin = Annotated[
    str | None,
    Query(alias="from", max_length=40, description="RFC 3339, or ms since 1970: no window or tuple of before"),
]
Until = Annotated[
    str | None, Query(alias="to", max_length=40, description="RFC 3339, or ms since 1970: no window or tuple of after")
]
MEDIA = {
    "json": "application/json", "jsonl": "application/x-ndjson", "csv": "text/csv",
    "arrow": "application/vnd.apache.arrow.stream",
}  # fmt: skip
"""The media type of a page by its suffix."""
Current = tuple[ResultPage, dict[str, Any]]
NEWEST = 10_000
"""Updates that the current answer looks back on, and the most windows or ticks of tuples that it has."""
LONGEST_RANGE = 100_000
"""Updates that the current answer of a range of time looks back on."""
Last = Annotated[
    int | None,
    Query(
        ge=1,
        le=NEWEST,
        description=f"the newest so many windows or ticks of tuples; default: 1, or {NEWEST:,} of a range of time",
    ),
]


def result_routes(control: GuardedControl, streams: ResultStreams, is_ending: Callable[[], bool]) -> APIRouter:
    """The routes of the answers of queries."""
    router, pages = APIRouter(), EncodedPages()

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
                {"after": gone.first - 1},
            ) from None

    async def wait_for(query: str, after: int, limit: int, seconds: float, epoch: str | None) -> ResultPage:
        end, committed = time.monotonic() + seconds, streams.next_commit
        page = await read(query, after, limit, epoch)
        while not page.lines and time.monotonic() < end and not is_ending():
            await wait_until(committed, LOOK_SECONDS)
            committed = streams.next_commit
            page = await read(query, after, limit, epoch)
        return page

    async def number_behind(query: str, after: int, since: str | None) -> int:
        """The number to read behind."""
        if (at_ms := read_moment("since", since)) is None:
            return after
        try:
            return max(after, await run_in_threadpool(control.number_before, query, at_ms))
        except KeyError:
            raise no_such_query(query, control) from None

    async def newest_of(query: str) -> int:
        try:
            return await run_in_threadpool(control.number_before, query, None)
        except KeyError:
            raise no_such_query(query, control) from None

    @router.get(
        "/v1/queries/{query}/results", summary="A page of updates; with Accept: text/event-stream, all that come"
    )
    async def results(
        request: Request, query: str, after: After = 0, limit: Limit = 1_000, wait: Wait = 0, epoch: Epoch = None,
        since: Since = None, last_event_id: LastEventId = None,
    ) -> Response:  # fmt: skip
        after = await number_behind(query, after, since)
        if EVENT_STREAM in request.headers.get("accept", ""):
            if last_event_id is not None:
                newest, (of_station, _) = await newest_of(query), await run_in_threadpool(control.event_bounds)
                number = await run_in_threadpool(control.find, query)
                after, epoch = read_last_event(last_event_id, of_station, newest, number), of_station
            first = await read(query, after, 1, epoch)  # a refusal has a status of its own
            check_begin("`after`", after, await newest_of(query))
            return StreamingResponse(follow(first.query, after), media_type=EVENT_STREAM)
        return await send_page(query, after, limit, wait, epoch, "json", encode_json_page)

    async def send_page(
        query: str, after: int, limit: int, wait: float, epoch: str | None, suffix: str, encode: Encode
    ) -> Response:
        page = await wait_for(query, after, limit, wait, epoch)
        body = await pages.encode(suffix, page, encode)
        resume = {"moteloom-next": str(page.next), "moteloom-epoch": page.epoch}
        return Response(body, media_type=MEDIA[suffix], headers=resume)

    def add_format(suffix: str, summary: str, encode: Encode) -> None:
        @router.get(f"/v1/queries/{{query}}/results.{suffix}", summary=summary, name=f"results_{suffix}")
        async def formatted(
            query: str, after: After = 0, limit: Limit = 1_000, wait: Wait = 0, epoch: Epoch = None, since: Since = None
        ) -> Response:
            return await send_page(query, await number_behind(query, after, since), limit, wait, epoch, suffix, encode)

    add_format("json", "A page of updates as JSON", encode_json_page)
    add_format("jsonl", "A page of updates, one JSON object a line", encode_json_lines)
    add_format("csv", "A page of updates as rows with a header", to_csv)
    add_format("arrow", "A page of updates as rows of an Arrow stream", to_arrow)

    async def first_kept(query: str) -> int:
        """The number of the oldest update that retention left."""
        try:
            await run_in_threadpool(control.results, query, 0, 1)
        except UpdatesExpiredError as gone:
            return gone.first
        return 1

    async def read_current(query: str, last: int | None, begin: str | None, until: str | None) -> Current:
        """The page that the current answer goes on behind, without its lines, and that answer."""
        begin_ms, until_ms = read_moment("from", begin), read_moment("to", until)
        if begin_ms is not None and until_ms is not None and begin_ms > until_ms:
            raise HttpProblemError(
                422, "bad-request", f"`from` is after `to`: {begin} and {until}", "send the earlier time as `from`"
            )
        is_range = begin_ms is not None or until_ms is not None
        newest = await newest_of(query)
        query = str(await run_in_threadpool(control.find, query))  # a name may change its query
        before = 0 if begin_ms is None else await run_in_threadpool(control.number_before, query, begin_ms)
        looked = max(0, newest - (LONGEST_RANGE if is_range else NEWEST))
        kept = await first_kept(query)
        after = max(before, looked)
        is_cut = looked > before or 1 < kept > before  # what was dropped may have been in the range
        answer = CurrentAnswer(last or (NEWEST if is_range else 1), begin_ms, until_ms, is_cut)
        while True:
            try:
                page = await run_in_threadpool(control.results, query, after, NEWEST)
            except UpdatesExpiredError as gone:  # fewer are kept
                page = await read(query, gone.first - 1, NEWEST)
            await run_in_threadpool(answer.add, page.lines)
            if page.next >= newest or not page.lines:
                break
            after = page.next
        found = answer.as_json()
        return page, found | {"truncated": is_range and (is_cut or found["truncated"])}

    @router.get("/v1/queries/{query}/current", summary="The windows or tuples after all revisions")
    async def current(query: str, last: Last = None, begin: Begin = None, until: Until = None) -> dict[str, Any]:
        page, found = await read_current(query, last, begin, until)
        return {"query": page.query, "epoch": page.epoch, **page.schema, "next": page.next, **found}

    def add_current(
        suffix: str, summary: str, encode: Callable[[Mapping[str, str], Iterable[JsonObject]], bytes]
    ) -> None:
        @router.get(f"/v1/queries/{{query}}/current.{suffix}", summary=summary, name=f"current_{suffix}")
        async def formatted(query: str, last: Last = None, begin: Begin = None, until: Until = None) -> Response:
            page, found = await read_current(query, last, begin, until)
            body = await run_in_threadpool(lambda: encode(current_columns(page), current_rows(page, found)))
            more = {"moteloom-next": str(page.next), "moteloom-epoch": page.epoch}
            return Response(
                body, media_type=MEDIA[suffix], headers=more | {"moteloom-truncated": str(found["truncated"]).lower()}
            )

    add_current("csv", "The windows or tuples after all revisions, as rows with a header", encode_csv)
    add_current("arrow", "The windows or tuples after all revisions, as rows of an Arrow stream", encode_arrow)

    async def follow(query: int, after: int) -> AsyncIterator[bytes]:
        async def read_behind(after: int, limit: int) -> ResultPage:
            return await read(str(query), after, limit)  # a name may change its query

        try:
            async for part in streams.follow(query, after, read_behind, control.identify_again):
                yield part
        except HttpProblemError as gone:  # the token has ended, or the reader was too slow, and the answer has begun
            yield f"event: problem\ndata: {json.dumps(gone.as_json())}\n\n".encode()

    return router
