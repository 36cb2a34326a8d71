"""Requests and answers as values: what both clients send and how they read it. No request is made here."""

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

from gateway.errors import MoteloomError
from moteloom.station_address import Address, is_here

if TYPE_CHECKING:
    import ssl

ENDED_STATES = "finished", "stopped", "failed"
TEXT, LINES, JSON = "text/plain; charset=utf-8", "application/x-ndjson", "application/json"
SECONDS = 70.0
"""Of the longest request; longer than the longest wait that the interface allows."""
BUSY = 429, 502, 503, 504
"""Statuses of a station that may answer the same request later."""
FIRST_DELAY, LONGEST_DELAY = 0.02, 5.0


class StationError(MoteloomError):
    """The station refused a request, or cannot be reached. `problem` is its problem document (RFC 9457), empty without an answer."""

    def __init__(self, message: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem: dict[str, Any] = dict(problem or {})

    @property
    def status(self) -> int | None:
        """The status of the answer; None without one."""
        return self.problem.get("status")

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed later: there was no answer, or the station is busy."""
        return not self.problem or self.status in BUSY


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a station."""

    method: str
    path: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """The arguments of `httpx.Client.request`."""
        parameters = {name: value for name, value in self.parameters.items() if value is not None}
        headers = {"accept": JSON, **self.headers}
        return {"method": self.method, "url": self.path, "params": parameters, "content": self.body, "headers": headers}


def get(path: str, **parameters: Any) -> Request:
    """A request that changes nothing."""
    return Request("GET", path, parameters)


def post(path: str, body: str = "", key: str | None = None, **parameters: Any) -> Request:
    """A request with a text. Sent again with the same `key`, it is carried out once."""
    headers = {"content-type": TEXT} | ({"idempotency-key": key} if key else {})
    return Request("POST", path, parameters, body.encode(), headers)


def push(extent: str, rows: Iterable[Mapping[str, Any]] | bytes, media_type: str, key: str) -> Request:
    """A request that delivers tuples to an extent: mappings, or a body of a media type."""
    if not isinstance(rows, bytes):
        rows = "".join(f"{json.dumps(dict(row), allow_nan=False)}\n" for row in rows).encode()
        media_type = LINES
    headers = {"content-type": media_type, "idempotency-key": key}
    return Request("POST", f"/v1/extents/{quote(extent, safe='')}/tuples", {}, rows, headers)


def path_of(query: int | str) -> str:
    """The path of a query by its number or name."""
    return f"/v1/queries/{quote(str(query), safe='')}"


def latest(extent: str) -> Request:
    """A request for the newest values of an extent."""
    return get(f"/v1/extents/{quote(extent, safe='')}/latest")


def new_key() -> str:
    """A key for a request that must be carried out once, however often it is sent."""
    return secrets.token_hex(16)


def read_answer(answer: httpx.Response, url: str) -> Any:
    """The JSON of an answer, a LinePage of lines, None of an answer without a body. StationError where it is a problem, or does not come from a station."""
    if answer.status_code == 204:
        return None
    if answer.is_success and answer.headers.get("content-type", "").startswith(LINES):
        return _read_lines(answer, url)
    try:
        found = answer.json()
    except ValueError:
        found = None
    if answer.is_success:
        if found is None:
            raise StationError(f"no station answers at {url}: the answer is no JSON")
        return found
    if answer.is_redirect:
        raise StationError(f"no station answers at {url}: it leads to {answer.headers.get('location', 'nowhere')}")
    if not isinstance(found, dict):
        found = {"status": answer.status_code, "title": f"{url} answers {answer.status_code} {answer.reason_phrase}"}
    raise StationError(str(found.get("title", answer.status_code)), {"status": answer.status_code} | found)


@dataclass(frozen=True, slots=True)
class LinePage:
    """Lines of the results of a job, the number to ask for `after` next time, and whether no more will come."""

    lines: tuple[dict[str, Any], ...]
    next: int
    is_complete: bool


def _read_lines(answer: httpx.Response, url: str) -> LinePage:
    try:
        lines = tuple(json.loads(line) for line in answer.text.split("\n") if line)
        return LinePage(lines, int(answer.headers["moteloom-next"]), answer.headers["moteloom-complete"] == "true")
    except (KeyError, ValueError) as why:
        raise StationError(f"no station answers at {url}: the lines are none of a job") from why


def unreachable(url: str, why: Exception) -> StationError:
    """The error of a request without an answer."""
    return StationError(f"no station answers at {url}: {str(why) or type(why).__name__}")


def http_arguments(address: Address) -> dict[str, Any]:
    """The arguments of `httpx.Client` for a station. The proxies of the environment are not for this machine."""
    headers = {} if address.token is None else {"authorization": f"Bearer {address.token}"}
    return {"base_url": address.url, "headers": headers, "timeout": SECONDS, "verify": _trust(address),
            "trust_env": not is_here(address.url)}  # fmt: skip


def _trust(address: Address) -> "ssl.SSLContext | bool":
    """The certificates to trust. StationError where their file cannot be used."""
    if address.ca is None:
        return True
    import ssl

    try:
        context = ssl.create_default_context(cafile=address.ca)
    except (OSError, ssl.SSLError) as why:
        raise StationError(f"the certificates in {address.ca} cannot be used: {why.strerror or why}") from why
    if address.has_own_certificate:
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


class Patience:
    """How long to wait before a request is sent again, and when to give up: after `seconds` without an answer."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._delay, self._waited = FIRST_DELAY, 0.0

    def delay(self, error: StationError) -> float:
        """The seconds until the next try. Raises the error where the same request cannot succeed, or the patience is over."""
        if not error.is_passing or self._waited >= self._seconds:
            raise error
        delay = min(self._delay, self._seconds - self._waited)
        self._delay, self._waited = min(2 * self._delay, LONGEST_DELAY), self._waited + delay
        return delay

    def reset(self) -> None:
        """Begin anew after an answer."""
        self._delay, self._waited = FIRST_DELAY, 0.0
