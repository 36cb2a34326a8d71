"""OpenAPI: the document of the interface, with every status, bodies and examples.

FastAPI knows paths and parameters. Bodies that routes read themselves, problem documents and examples are added here.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from basestation.rest.access import NAME_PATTERN, PUBLIC, needed_scope
from basestation.rest.upload_routes import FORMATS
from basestation.rest.wire import PROBLEM

Json = dict[str, Any]
VERSION = "1"
DESCRIPTION = """Submit SNEEql queries to a station, read their answers, push data. Errors are problem documents (RFC 9457).

Send `Authorization: Bearer TOKEN`; `moteloom token create` makes tokens. Results have numbers: a client that asks `after` the last one
that it has misses none and gets none twice."""
_QUERY = {
    "number": 1, "name": "mean", "text": "SELECT AVG(temp) AS mean FROM road [NOW]", "state": "running", "reason": "",
    "kind": "window", "columns": [{"name": "mean", "type": "float"}], "extents": ["road"], "submitted": "2026-11-19T08:00:00Z", "ends": None,
    "owner": None, "active": None, "awaited": [], "lifetime_violation": None,
}  # fmt: skip
_UPDATE = {
    "number": 7, "type": "window", "query": 1, "tick": 1795075200, "n": 7, "revision": 0, "coverage": {"road": [4, 4]},
    "rows": [[-2.25]], "time": "2026-11-19T08:00:00Z",
}  # fmt: skip
_PAGE = {"query": 1, "epoch": "0f3a91c2", "kind": "window", "columns": _QUERY["columns"]}
_RECEIPT = {
    "extent": "traffic", "accepted": 1, "rejected": 1,
    "errors": [{"row": 2, "column": "weight", "code": "SN506", "message": "expected an integer, found `heavy`"}],
    "repeated": False, "time": "2026-11-19T08:00:00.250Z",
}  # fmt: skip
_JOB = {
    "number": 1, "kind": "trial", "state": "running", "progress": 0.25, "owner": None, "doing": None, "notes": [],
    "request": {"text": _QUERY["text"], "for_ms": 3_600_000, "seed": 1}, "submitted": "2026-11-19T08:00:00.000Z",
    "begun": "2026-11-19T08:00:00.100Z", "ended": None, "problem": None,
}  # fmt: skip
EXAMPLES: Mapping[tuple[str, str], Any] = {
    ("post", "/v1/queries"): _QUERY,
    ("get", "/v1/queries"): {"queries": [_QUERY], "next": 1},
    ("get", "/v1/queries/{query}"): _QUERY,
    ("post", "/v1/queries/{query}/stop"): _QUERY | {"state": "stopped"},
    ("post", "/v1/queries/{query}/pause"): _QUERY | {"state": "paused"},
    ("post", "/v1/queries/{query}/resume"): _QUERY | {"state": "deploying"},
    ("post", "/v1/queries/{query}/replace"): _QUERY | {"number": 2, "state": "deploying"},
    ("get", "/v1/queries/{query}/results"): _PAGE | {"updates": [_UPDATE], "next": 7},
    ("get", "/v1/queries/{query}/current"): _PAGE | {"next": 7, "tuples": [], "windows": [
        {key: value for key, value in _UPDATE.items() if key not in ("number", "type", "query")}], "truncated": False},
    ("post", "/v1/check"): {"ok": True, "diagnostics": [], "statements": [
        {"type": "query", "kind": "window", "once": False, "columns": _QUERY["columns"]}]},
    ("post", "/v1/complete"): {"start": 17, "completions": [
        {"text": "road", "kind": "extent", "detail": "sensed (site, temp)"}]},
    ("post", "/v1/extents/{name}/tuples"): _RECEIPT,
    ("put", "/v1/extents/{name}/rows"): _RECEIPT | {"extent": "names", "rejected": 0, "errors": []},
    ("put", "/v1/extents/{name}"): {
        "name": "lorries", "kind": "pushed", "repeated": False,
        "attributes": [{"name": "lane", "type": "integer"}, {"name": "weight", "type": "integer", "unit": "kg"}]},
    ("get", "/v1/tables"): {"tables": [{"extent": "names", "versions": [
        {"tick": 1795075200, "time": "2026-11-19T08:00:00Z", "rows": 101}]}]},
    ("post", "/v1/statements"): {"statements": [{"how": "delete", "extent": "traffic"}], "repeated": False,
                                 "time": "2026-11-19T08:00:00.250Z"},
    ("post", "/v1/trials"): _JOB,
    ("post", "/v1/history"): _JOB | {
        "kind": "history", "progress": 0.0, "doing": "starting Spark, which takes some 7 s",
        "request": {"text": _QUERY["text"], "from": "-7d", "to": None, "skip_damaged": False}},
    ("post", "/v1/history/recompute"): _JOB | {
        "kind": "history", "progress": 0.0, "doing": "reading the query and the files of its range",
        "request": {"text": _QUERY["text"], "since": "-1d", "from": "-7d", "to": None, "skip_damaged": False}},
    ("get", "/v1/jobs"): {"jobs": [_JOB], "next": 1},
    ("get", "/v1/jobs/{job}"): _JOB,
    ("post", "/v1/jobs/{job}/cancel"): _JOB | {"state": "cancelled"},
    ("get", "/v1/ready"): {"ready": True},
    ("post", "/v1/tickets"): {"ticket": "pX1…", "path": "/login#pX1…", "seconds": 60.0},
}  # fmt: skip
"""By method and path, an answer; a test compares its keys with those of real answers."""
_TEXT = "SELECT AVG(temp) AS mean FROM road [NOW]"
_TEXT_ROUTES = (
    "/v1/queries",
    "/v1/queries/{query}/replace",
    "/v1/check",
    "/v1/complete",
    "/v1/explain",
    "/v1/statements",
    "/v1/trials",
    "/v1/history",
    "/v1/history/recompute",
    "/v1/extents/{name}",
)
_DATA_ROUTES = "/v1/extents/{name}/tuples", "/v1/extents/{name}/rows"
_WAITING = "/v1/queries", "/v1/queries/{query}/replace", "/v1/statements"
_DATA = {
    "jsonl": '{"site": 1, "weight": 1200}\n{"site": 2, "weight": 900}\n',
    "json": [{"site": 1, "weight": 1200}], "csv": "site,weight\n1,1200\n",
    "senml": [{"bn": "strip/1/", "n": "weight", "u": "kg", "v": 1200}],
}  # fmt: skip
_PROBLEM_SCHEMA: Json = {
    "type": "object",
    "description": "RFC 9457. `code` is stable; `detail` says what would be accepted.",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "code": {"type": "string"},
        "detail": {"type": "string"},
        "diagnostics": {"type": "array", "items": {"type": "object"}, "description": "each error of a text, with its place"},
        "errors": {"type": "array", "items": {"type": "object"}, "description": "rows that are wrong"},
    },
}  # fmt: skip
_MEANINGS = {
    400: "the request cannot be read", 401: "no token that is valid", 403: "the token lacks the scope, or a page of another site asks",
    408: "the body comes too slowly", 404: "there is no such thing",
    409: "its state or kind does not allow that, or several users have a query of this name", 410: "these results are not kept any more",
    412: "it has changed meanwhile", 413: "the body is too long", 415: "no format that is known", 422: "a value or text is wrong",
    429: "too many requests", 503: "not now: repeat it later",
}  # fmt: skip
_MEDIA = {
    "/v1/queries/{query}/results.jsonl": "application/x-ndjson", "/v1/queries/{query}/results.csv": "text/csv",
    "/v1/queries/{query}/results.arrow": "application/vnd.apache.arrow.stream", "/v1/metrics": "text/plain",
    "/v1/queries/{query}/current.csv": "text/csv",
    "/v1/queries/{query}/current.arrow": "application/vnd.apache.arrow.stream",
    "/v1/jobs/{job}/results": "application/x-ndjson", "/v1/jobs/{job}/results.csv": "text/csv",
    "/v1/jobs/{job}/results.arrow": "application/vnd.apache.arrow.stream", "/login": "text/html",
}  # fmt: skip


def make_document(api: FastAPI) -> Json:
    """The OpenAPI 3.1 document of the routes of an application."""
    document = get_openapi(title="Moteloom", version=VERSION, description=DESCRIPTION, routes=api.routes)
    schemas = {
        name: schema
        for name, schema in document.get("components", {}).get("schemas", {}).items()
        if name not in ("HTTPValidationError", "ValidationError")
    }
    schemas["Problem"] = _PROBLEM_SCHEMA
    document["components"] = {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
    document["security"] = [{"token": []}]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _complete(operation, method, path)
    return document


def _complete(operation: Json, method: str, path: str) -> None:
    needs = f"Needs a token with the scope `{needed_scope(method.upper(), path).value}`."
    if (method.upper(), path) in PUBLIC:
        needs, operation["security"] = "Needs no token, so no scope `…`: it is for browsers that have a ticket.", []
    operation["description"] = f"{operation.get('description', operation['summary'])}.\n\n{needs}"
    responses = operation["responses"] = {
        status: response for status, response in operation["responses"].items() if status.startswith("2")
    }
    for response in responses.values():
        response["description"] = operation["summary"]
        if path in _MEDIA:
            response["content"] = {_MEDIA[path]: {"schema": {"type": "string"}}}
        elif (example := EXAMPLES.get((method, path))) is not None:
            response["content"] = {"application/json": {"schema": {"type": "object"}, "example": example}}
    _add_other_answers(responses, path)
    for status in _statuses(method, path):
        content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        if path in ("/v1/health", "/v1/ready") and status == 503:
            content = {"application/json": {"schema": {"type": "object"}}} | content
        responses[str(status)] = {"description": _MEANINGS[status], "content": content}
    if path in _TEXT_ROUTES and method != "get":
        operation["requestBody"] = _text_body(path)
    elif (method, path) == ("post", "/v1/session"):
        operation["requestBody"] = {"required": True, "content": {"text/plain": {"schema": {"type": "string"}}}}
    elif path in _DATA_ROUTES:
        operation["requestBody"] = {"required": True, "content": {
            media: {"schema": {"type": "array", "items": {"type": "object"}} if form in ("json", "senml") else {"type": "string"}}
            | ({"example": _DATA[form]} if form in _DATA else {})
            for media, form in FORMATS.items()
        }}  # fmt: skip


def _add_other_answers(responses: Json, path: str) -> None:
    """Answers in other formats, or with another status, that a parameter or header asks for."""
    content = responses["200"]["content"] if "200" in responses else {}
    if path in ("/v1/queries/{query}/results", "/v1/events"):
        content["text/event-stream"] = {"schema": {"type": "string"}}
    elif path in ("/v1/explain", "/v1/queries/{query}/plan"):
        content["text/plain"] = {"schema": {"type": "string"}}
    elif path == "/v1/extents/{name}" and "201" in responses:
        responses["200"] = responses["201"] | {"description": "It was declared by the same text before"}
    elif path == "/v1/queries" and "201" in responses:
        responses["200"] = {
            "description": "With `dry_run`: the plan, the costs now and with the query, and the motes that would change",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }


def _statuses(method: str, path: str) -> list[int]:
    """The statuses of problems that a route may answer with."""
    found = {400, 401, 403, 413, 422, 429, 503}
    if method in ("post", "put"):
        found.add(408)
    if "{" in path:
        found.add(404)
    if path.startswith(("/v1/queries/{query}/results", "/v1/queries/{query}/current")) or path == "/v1/events":
        found.add(410)
    if method != "get" or path.startswith(("/v1/jobs/{job}/results.", "/v1/queries/{query}")):
        found.add(409)
    if path.endswith("/replace"):
        found.add(412)
    if path in _DATA_ROUTES:
        found.add(415)
    return sorted(found)


def _text_body(path: str) -> Json:
    examples = {
        "/v1/statements": "DELETE FROM traffic WHERE weight > 70000",
        "/v1/extents/{name}": "lorries: pushed (lane:integer, weight:integer {unit 'kg'}) wait 5 sec",
    }
    text = examples.get(path, _TEXT)
    name = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
    properties: Json = {"text": {"type": "string"}, "name": name}
    if path.startswith("/v1/queries"):
        limits = {
            "type": "object",
            "additionalProperties": False,
            "properties": {"results": {"type": "integer", "minimum": 1}},
        }
        properties |= {"limits": limits} | ({"owner": name} if path == "/v1/queries" else {})
    elif path == "/v1/trials":
        table = {"type": "array", "items": {"type": "object"}}
        properties = {"text": {"type": "string"}, "rows": {"type": "object", "additionalProperties": table}}
    elif path.startswith("/v1/history"):
        properties = {"text": {"type": "string"}}
    schema: Json = {"type": "object", "required": ["text"], "additionalProperties": False, "properties": properties}
    return {
        "required": True,
        "content": {
            "text/plain": {"schema": {"type": "string"}, "example": text},
            "application/json": {"schema": schema, "example": {"text": text}},
        },
    }
