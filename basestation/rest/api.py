"""The application: its routes, the check of the access token, and errors as problem details."""

import hmac

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from basestation.rest.result_routes import results_routes
from basestation.rest.wire import PROBLEM, HttpProblemError
from basestation.results.feed import Feed


def make_api(feed: Feed, tick_ms: int, token: str | None) -> FastAPI:
    """The REST application. `token` None disables the check of the access token; the caller must decide that."""

    def authorised(request: Request) -> None:
        given = request.headers.get("authorization", "")
        if token is not None and not hmac.compare_digest(given.encode(), f"Bearer {token}".encode()):
            raise HttpProblemError(
                401, "no-token", "this station asks for its token", "send `Authorization: Bearer <token>`"
            )

    api = FastAPI(title="Moteloom", docs_url=None, redoc_url=None, dependencies=[Depends(authorised)])
    api.include_router(results_routes(feed, tick_ms))
    api.add_exception_handler(HttpProblemError, lambda _, problem: _respond(problem))
    api.add_exception_handler(RequestValidationError, lambda _, error: _respond(_misused(error)))
    api.add_exception_handler(HTTPException, lambda _, error: _respond(_refused(error)))
    return api


def _respond(problem: HttpProblemError) -> JSONResponse:
    headers = {"www-authenticate": "Bearer"} if problem.status == 401 else None
    return JSONResponse(problem.as_json(), problem.status, headers, media_type=PROBLEM)


def _misused(error: RequestValidationError) -> HttpProblemError:
    first = error.errors()[0]
    return HttpProblemError(422, "bad-request", f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}")


def _refused(error: HTTPException) -> HttpProblemError:
    return HttpProblemError(
        error.status_code, "no-such-route" if error.status_code == 404 else "refused", str(error.detail)
    )
