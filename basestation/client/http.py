"""StationClient: requests to the REST interface of a station, with the standard library only."""

import http.client
import json
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.errors import MoteloomError

URL = "http://127.0.0.1:8137"
ENDED_STATES = "finished", "stopped", "failed"
SECONDS = 70
"""Longer than the longest wait that the interface allows."""


class StationError(MoteloomError):
    """The station refused a request, or cannot be reached. `problem` is its problem document (RFC 9457), empty without an answer."""

    def __init__(self, message: str, problem: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.problem = problem or {}


class StationClient:
    """One station behind a URL."""

    def __init__(self, url: str, token: str | None, trust: ssl.SSLContext | None = None) -> None:
        """`trust` has the certificates for an https URL; None is for the system's."""
        self.url, self._token, self._trust = url.rstrip("/"), token, trust

    def get(self, path: str, **parameters: object) -> Any:
        """The JSON of an answer."""
        return self._request("GET", path + _search(parameters), None)

    def post(self, path: str, body: str = "", **parameters: object) -> Any:
        """The JSON of an answer to a text."""
        return self._request("POST", path + _search(parameters), body.encode())

    def updates(self, number: int, after: int, wait: float) -> Iterator[list[dict[str, Any]]]:
        """Pages of a query's updates; an empty page where `wait` seconds brought none. They end with the query."""
        seconds, has_ended, epoch = 0.0, False, None
        while True:
            page = self.get(f"/v1/queries/{number}/results", after=after, wait=seconds, epoch=epoch)
            after, epoch = page["next"], page["epoch"]
            yield page["updates"]
            if page["updates"]:
                continue
            if has_ended:  # this page was asked for after the end
                return
            has_ended = self.get(f"/v1/queries/{number}")["state"] in ENDED_STATES
            seconds = 0.0 if has_ended else wait

    def _request(self, method: str, path: str, body: bytes | None) -> Any:
        try:
            request = urllib.request.Request(self.url + path, data=body, method=method)
            request.add_header("content-type", "text/plain; charset=utf-8")
            if self._token is not None:
                request.add_unredirected_header("authorization", f"Bearer {self._token}")
            with urllib.request.urlopen(request, timeout=SECONDS, context=self._trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            text = refused.read().decode("utf-8", "replace")
            try:
                problem = json.loads(text)
            except json.JSONDecodeError:
                problem = None
            if not isinstance(problem, dict):
                problem = {"status": refused.code, "title": f"{self.url} answers {refused.code} {refused.reason}"}
            raise StationError(str(problem.get("title", f"{refused.code} {refused.reason}")), problem) from None
        except (urllib.error.URLError, OSError, ValueError, http.client.HTTPException) as why:
            reason = getattr(why, "reason", why)
            raise StationError(f"no station answers at {self.url}: {reason}") from None


def _search(parameters: Mapping[str, object]) -> str:
    """The part of a URL for parameters that are not None."""
    chosen = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urllib.parse.urlencode(chosen)}" if chosen else ""
