"""The routes of query results."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from basestation.rest.wire import HttpProblemError, results_as_json
from basestation.results.feed import Feed, UpdatesExpiredError


def results_routes(feed: Feed, tick_ms: int) -> APIRouter:
    """A router that serves the feed; ticks of `tick_ms` milliseconds."""
    router = APIRouter()

    @router.get("/v1/queries/{number}/results", summary="The updates of a query's answer")
    def results(
        number: int,
        after: Annotated[int, Query(ge=0, description="the number of the last update that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000,
    ) -> dict[str, Any]:
        try:
            return results_as_json(feed.schema(number), after, feed.read(number, after, limit), tick_ms)
        except KeyError:
            raise HttpProblemError(404, "no-such-query", f"there is no query {number}") from None
        except UpdatesExpiredError as expired:
            remedy = f"begin with after={expired.first - 1}"
            raise HttpProblemError(
                410, "results-gone", f"updates before {expired.first} are no longer retained", remedy
            ) from None

    return router
