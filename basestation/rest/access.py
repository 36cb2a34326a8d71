"""Access: the scopes of tokens, the scope that each route needs, and the holder of the token of a request.

read      the station, and the queries and results of one's own
submit    and submit, replace, pause, resume and stop queries of one's own, try them as jobs, and ask the archive
tag       write data: push tuples, correct them
operate   and all of that for the queries of all, and declare extents
admin     everything
"""

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from acquisition.ticks import rfc3339_of

NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
"""Of the names of users and queries: they stand in URLs, topics and files as they are."""


class TokenScope(Enum):
    READ = "read"
    SUBMIT = "submit"
    TAG = "tag"
    OPERATE = "operate"
    ADMIN = "admin"


IMPLIED = {
    TokenScope.READ: frozenset({TokenScope.READ}),
    TokenScope.SUBMIT: frozenset({TokenScope.READ, TokenScope.SUBMIT}),
    TokenScope.TAG: frozenset({TokenScope.TAG}),
    TokenScope.OPERATE: frozenset({TokenScope.READ, TokenScope.SUBMIT, TokenScope.OPERATE}),
    TokenScope.ADMIN: frozenset(TokenScope),
}
"""The scopes that each one includes."""

SCOPES = {
    ("POST", "/v1/queries"): TokenScope.SUBMIT,
    ("GET", "/v1/queries"): TokenScope.READ,
    ("GET", "/v1/queries/{query}"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/plan"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/account"): TokenScope.READ,
    ("POST", "/v1/queries/{query}/stop"): TokenScope.SUBMIT,
    ("POST", "/v1/queries/{query}/pause"): TokenScope.SUBMIT,
    ("POST", "/v1/queries/{query}/resume"): TokenScope.SUBMIT,
    ("POST", "/v1/queries/{query}/replace"): TokenScope.SUBMIT,
    ("GET", "/v1/queries/{query}/results"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/results.json"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/results.jsonl"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/results.csv"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/results.arrow"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/current"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/current.csv"): TokenScope.READ,
    ("GET", "/v1/queries/{query}/current.arrow"): TokenScope.READ,
    ("GET", "/v1/ready"): TokenScope.READ,
    ("GET", "/v1/metrics"): TokenScope.READ,
    ("POST", "/v1/check"): TokenScope.READ,
    ("POST", "/v1/explain"): TokenScope.READ,
    ("POST", "/v1/complete"): TokenScope.READ,
    ("POST", "/v1/extents/{name}/tuples"): TokenScope.TAG,
    ("PUT", "/v1/extents/{name}/rows"): TokenScope.TAG,
    ("POST", "/v1/statements"): TokenScope.TAG,
    ("GET", "/v1/tables"): TokenScope.READ,
    ("POST", "/v1/trials"): TokenScope.SUBMIT,
    ("POST", "/v1/history"): TokenScope.SUBMIT,
    ("POST", "/v1/history/recompute"): TokenScope.SUBMIT,
    ("GET", "/v1/jobs"): TokenScope.READ,
    ("GET", "/v1/jobs/{job}"): TokenScope.READ,
    ("GET", "/v1/jobs/{job}/results"): TokenScope.READ,
    ("GET", "/v1/jobs/{job}/results.csv"): TokenScope.READ,
    ("GET", "/v1/jobs/{job}/results.arrow"): TokenScope.READ,
    ("POST", "/v1/jobs/{job}/cancel"): TokenScope.SUBMIT,
    ("DELETE", "/v1/jobs/{job}"): TokenScope.SUBMIT,
    ("GET", "/v1/motes"): TokenScope.READ,
    ("GET", "/v1/extents"): TokenScope.READ,
    ("PUT", "/v1/extents/{name}"): TokenScope.OPERATE,
    ("GET", "/v1/extents/{name}/latest"): TokenScope.READ,
    ("GET", "/v1/topology"): TokenScope.READ,
    ("GET", "/v1/events"): TokenScope.READ,
    ("GET", "/v1/health"): TokenScope.READ,
    ("GET", "/v1/audit"): TokenScope.ADMIN,
    ("POST", "/v1/tickets"): TokenScope.READ,
    ("DELETE", "/v1/session"): TokenScope.READ,
    ("GET", "/v1/openapi.json"): TokenScope.READ,
}
"""By method and path of a route, the scope that it needs. A route that is not listed needs `admin`."""


PUBLIC = frozenset({("GET", "/login"), ("POST", "/v1/session")})
"""The routes for browsers that have a ticket and no token yet."""


@dataclass(frozen=True, slots=True)
class Principal:
    """The holder of a token: the user `name`, who may have several. `token` is its number."""

    name: str
    scopes: frozenset[TokenScope]
    token: int = 0

    def may(self, scope: TokenScope) -> bool:
        """Whether the scopes include one."""
        return scope in self.scopes

    @property
    def sees_all(self) -> bool:
        """Whether the queries of other users are visible."""
        return TokenScope.OPERATE in self.scopes


LOCAL = Principal("", frozenset(TokenScope))
"""The holder of every request to a station without tokens."""


@dataclass(slots=True)
class RequestRecord:
    """A request as the audit has it. `entry` is the number of its entry, `subject` the query that it made or changed.

    `identify` finds the holder again; it raises where the token or session has ended since.
    """

    holder: Principal
    address: str
    action: str
    entry: int | None = None
    subject: int | None = None
    identify: Callable[[], Principal] | None = None


current: ContextVar[RequestRecord] = ContextVar("request")
"""This request. Without one a lookup fails, so no code runs with the rights of another by mistake."""


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """An action of a user: when, who, from where, what, and its result; `status` of None has none yet. Times are ms since 1970."""

    number: int
    at_ms: int
    user: str
    token: int | None
    address: str
    action: str
    status: int | None
    code: str | None
    query: int | None

    def as_json(self) -> dict[str, object]:
        """As a JSON object."""
        return {
            "number": self.number, "time": rfc3339_of(self.at_ms, 1), "user": self.user, "token": self.token,
            "address": self.address, "action": self.action, "status": self.status, "code": self.code, "query": self.query,
        }  # fmt: skip


class AccessStore(Protocol):
    """The tokens of a station and the audit of their use; any thread may call."""

    def find(self, token: str) -> Principal | None:
        """The holder of a token; None where there is no such token, or it has expired or was revoked."""

    def holder(self, number: int) -> Principal | None:
        """The holder of the token with a number, if that is valid."""

    def begin_action(self, record: RequestRecord) -> int:
        """Keep that an action begins; returns its number. The action must not happen where this fails."""

    def end_action(self, record: RequestRecord, status: int, code: str | None) -> None:
        """Keep the result of an action."""

    def refuse_action(self, record: RequestRecord, status: int, code: str) -> None:
        """Keep that a request was refused, unless many are."""

    def audit(self, after: int, limit: int, user: str | None) -> list[AuditEntry]:
        """The entries with numbers above `after`, of a user or of all, the oldest first."""


def include_implied(scopes: Iterable[TokenScope]) -> frozenset[TokenScope]:
    """The scopes with all that they include."""
    return frozenset[TokenScope]().union(*(IMPLIED[scope] for scope in scopes))


def is_audited(method: str, path: str) -> bool:
    """Whether the use of a route is kept: that of all that do more than read, and who lets a browser in."""
    return (method, path) == ("POST", "/v1/tickets") or (
        needed_scope(method, path) is not TokenScope.READ and method != "GET"
    )


def needed_scope(method: str, path: str) -> TokenScope:
    """The scope that a route needs."""
    return SCOPES.get((method, path), TokenScope.ADMIN)
