"""The route of the audit."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from basestation.rest.access import AccessStore
from basestation.rest.wire import LARGEST


def audit_routes(access: AccessStore | None) -> APIRouter:
    """The route below /v1/audit; a station without tokens has an empty audit."""
    router = APIRouter()

    @router.get("/v1/audit", summary="Actions of users, and requests that were refused, the oldest first")
    def audit(
        after: Annotated[int, Query(ge=0, le=LARGEST, description="the number of the last entry that you have")] = 0,
        limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
        user: Annotated[str | None, Query(max_length=64, description="only this user's")] = None,
    ) -> dict[str, Any]:
        found = [] if access is None else access.audit(after, limit, user)
        return {"entries": [each.as_json() for each in found], "next": found[-1].number if found else after}

    return router
