"""The application: routes behind a guard, and errors in one form."""

import secrets
import traceback
from collections.abc import Callable
from functools import cache

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from basestation.rest.access import AccessStore
from basestation.rest.audit_routes import audit_routes
from basestation.rest.control import StationControl
from basestation.rest.event_routes import event_routes
from basestation.rest.guard import HEADERS, Guard, check_access, check_parameters
from basestation.rest.guarded_control import GuardedControl
from basestation.rest.job_routes import job_routes
from basestation.rest.limits import RequestLimits
from basestation.rest.openapi import make_document
from basestation.rest.query_routes import query_routes
from basestation.rest.request_body import BodyRefusedError
from basestation.rest.result_routes import result_routes
from basestation.rest.result_streams import ResultStreams
from basestation.rest.session_routes import session_routes
from basestation.rest.sessions import Sessions
from basestation.rest.station_routes import station_routes
from basestation.rest.text_routes import text_routes
from basestation.rest.upload_routes import upload_routes
from basestation.rest.wire import PROBLEM, HttpProblemError
from gateway.diagnostics import DiagnosticError
from gateway.errors import MoteloomError
from gateway.log import get_log

log = get_log(__name__)


def make_api(
    control: StationControl,
    access: AccessStore | None,
    is_ending: Callable[[], bool] = lambda: False,
    limits: RequestLimits = RequestLimits(),
) -> FastAPI:
    """The application in front of a station. `access` of None admits every request of this machine.

    Streams and requests that wait end as soon as `is_ending`.
    """

    sessions = Sessions()
    api = FastAPI(
        title="Moteloom", docs_url=None, redoc_url=None, openapi_url=None, dependencies=[Depends(check_access), Depends(check_parameters)],
        middleware=[Middleware(Guard, store=access, limits=limits, sessions=sessions, respond=_respond)],
    )  # fmt: skip
    api.state.access, api.state.limits = access, limits
    streams = ResultStreams(control, is_ending)
    control = guarded = GuardedControl(control)
    routers = (query_routes(guarded), text_routes(control), upload_routes(control), job_routes(control))
    for router in (
        *routers,
        result_routes(guarded, streams, is_ending),
        station_routes(control),
        event_routes(control, is_ending),
        audit_routes(access),
        session_routes(access, sessions),
    ):
        api.include_router(router)
    make_once = cache(lambda: make_document(api))
    api.get("/v1/openapi.json", summary="This interface as OpenAPI 3.1")(make_once)
    api.add_exception_handler(HttpProblemError, lambda _, problem: _respond(problem))
    api.add_exception_handler(DiagnosticError, lambda _, refused: _respond_refused(refused))
    api.add_exception_handler(MoteloomError, lambda _, error: _respond(_failed(error)))
    api.add_exception_handler(RequestValidationError, lambda request, error: _respond(_misused(request, error)))
    api.add_exception_handler(Exception, lambda request, error: _respond(_broken(request, error)))
    api.add_exception_handler(BodyRefusedError, lambda _, error: _respond(_refused_body(error)))
    api.add_exception_handler(HTTPException, lambda _, error: _respond(_rejected(error)))
    return api


def _respond(problem: Exception) -> JSONResponse:
    assert isinstance(problem, HttpProblemError)
    headers = problem.headers | ({"www-authenticate": "Bearer"} if problem.status == 401 else {})
    return JSONResponse(problem.as_json(), problem.status, headers, media_type=PROBLEM)


def _respond_refused(refused: Exception) -> JSONResponse:
    """Every diagnostic of a text, each with code, place, what was expected and help."""
    assert isinstance(refused, DiagnosticError)
    found = [diagnostic.as_json() | {"rendered": diagnostic.render()} for diagnostic in refused.diagnostics]
    problem = {"type": "about:blank", "title": found[0]["message"], "status": 422, "code": found[0]["code"],
               "diagnostics": found}  # fmt: skip
    return JSONResponse(problem, 422, media_type=PROBLEM)


def _failed(error: Exception) -> HttpProblemError:
    return HttpProblemError(503, "not-now", str(error), getattr(error, "help", None))


def _broken(request: Request, error: Exception) -> HttpProblemError:
    """A fault of the program: the log has where it happened, the answer has the number under which the log has it.

    Its answer does not pass the guard, so the headers of security are added here.
    """
    reference = secrets.token_hex(4)
    trace = "".join(traceback.format_exception(error))
    log.error("request failed", reference=reference, path=request.url.path, trace=trace)
    return HttpProblemError(
        500, "internal-error", f"the station could not answer this: {type(error).__name__}",
        f"this is a fault of the program: report it with the lines of the station's log that have reference={reference}",
        headers={name.decode(): value.decode() for name, value in HEADERS},
    )  # fmt: skip


def _misused(request: Request, error: Exception) -> HttpProblemError:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    taken = request.scope["route"].dependant
    fields = (*taken.query_params, *taken.header_params, *taken.path_params)
    remedy = next((field.field_info.description for field in fields if field.alias == first["loc"][-1]), None)
    return HttpProblemError(
        422, "bad-request", f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}", remedy
    )


def _refused_body(error: Exception) -> HttpProblemError:
    assert isinstance(error, BodyRefusedError)
    return error.problem


def _rejected(error: Exception) -> HttpProblemError:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return HttpProblemError(
            404, "no-such-route", "there is no such path", "/v1/openapi.json lists all", headers=headers
        )
    remedy = f"it takes {headers['Allow']}" if "Allow" in headers else None
    return HttpProblemError(error.status_code, "refused", str(error.detail), remedy, headers=headers)
