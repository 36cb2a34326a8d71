"""GuardedControl: a station as the holder of the token of a request may see it.

Every call checks the owner of the query it is about, so a route cannot forget to. Another's query is answered like one that
does not exist. A name is resolved to a number first: a number never changes its owner.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import BinaryIO

from basestation.rest.access import current
from basestation.rest.control import JobPage, JsonObject, Metric, ResultPage, StationControl
from basestation.rest.wire import HttpProblemError


class GuardedControl:
    """The methods of `StationControl`, for the holder in `basestation.rest.access.current`."""

    def __init__(self, control: StationControl) -> None:
        self._control = control

    def submit(
        self,
        text: str,
        key: str | None,
        name: str | None = None,
        owner: str | None = None,
        active: str | None = None,
        keep: int | None = None,
    ) -> JsonObject:
        return _note(self._control.submit(text, self._own(key), name, self._owner_of(owner), active, keep))

    def dry_run(self, text: str, name: str | None = None, owner: str | None = None) -> JsonObject:
        return self._control.dry_run(text, name, self._owner_of(owner))

    def check(self, text: str) -> JsonObject:
        return self._control.check(text)

    def complete(self, text: str, cursor: int) -> JsonObject:
        return self._control.complete(text, cursor)

    def push(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        return self._control.push(extent, body, form, self._own(key))

    def load(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        return self._control.load(extent, body, form, self._own(key))

    def declare(self, name: str, text: str, key: str | None) -> JsonObject:
        return self._control.declare(name, text, self._own(key))

    def tables(self) -> list[JsonObject]:
        return self._control.tables()

    def correct(self, text: str, key: str | None) -> JsonObject:
        return self._control.correct(text, self._own(key))

    def explain(self, text: str) -> list[tuple[JsonObject, str]]:
        return self._control.explain(text)

    def replace(
        self,
        query: str,
        text: str,
        key: str | None,
        name: str | None = None,
        only: str | None = None,
        active: str | None = None,
        keep: int | None = None,
        own: str | None = None,
    ) -> JsonObject:
        own = own or self._name
        return _note(self._control.replace(query, text, self._own(key), name, self._only, active, keep, own))

    def change(self, query: str, kind: str, key: str | None = None) -> JsonObject:
        return _note(self._control.change(self._find(query), kind, self._own(key)))

    def find(self, query: str, only: str | None = None, own: str | None = None) -> int:
        return self._control.find(query, self._only, own or self._name)

    def queries(
        self, after: int, limit: int, state: str | None, owner: str | None = None, extent: str | None = None
    ) -> list[JsonObject]:
        if self._only is not None and owner not in (None, self._only):
            return []
        return self._control.queries(after, limit, state, self._only or owner, extent)

    def versions(self) -> tuple[int, int]:
        return self._control.versions()

    @property
    def visible_owner(self) -> str | None:
        """The owner whose queries this request may see; None where all are visible."""
        return self._only

    def query(self, query: str) -> JsonObject:
        return self._control.query(self._find(query))

    def plan(self, query: str) -> tuple[JsonObject, str]:
        return self._control.plan(self._find(query))

    def account(self, query: str) -> JsonObject:
        return self._control.account(self._find(query))

    def query_numbers(self, owner: str | None = None) -> tuple[int, int] | None:
        return self._control.query_numbers(self._only or owner)

    def results(self, query: str, after: int, limit: int) -> ResultPage:
        self.identify_again()
        return self._control.results(self._find(query), after, limit)

    def on_results(self, wake: Callable[[], None]) -> None:
        self._control.on_results(wake)

    def number_before(self, query: str, at_ms: int | None) -> int:
        return self._control.number_before(self._find(query), at_ms)

    def motes(self) -> list[JsonObject]:
        return self._control.motes()

    def latest(self, extent: str) -> list[JsonObject]:
        return self._control.latest(extent)

    def topology(self) -> JsonObject:
        return self._control.topology()

    def extents(self) -> list[JsonObject]:
        return self._control.extents()

    def events(
        self, after: int, limit: int, query: int | None, owner: str | None = None, kind: str | None = None
    ) -> tuple[list[JsonObject], int]:
        self.identify_again()
        return self._control.events(after, limit, query, self._only or owner, kind)

    def event_bounds(self) -> tuple[str, int]:
        return self._control.event_bounds()

    def start_trial(
        self,
        text: str,
        span_ms: int,
        seed: int,
        rows: Mapping[str, Sequence[JsonObject]] | None,
        key: str | None,
        owner: str | None,
    ) -> JsonObject:
        return self._control.start_trial(text, span_ms, seed, rows, self._own(key), owner or self._name)

    def start_history(
        self,
        text: str,
        begin: str | None,
        until: str | None,
        since: str | None,
        skip_damaged: bool,
        key: str | None,
        owner: str | None,
    ) -> JsonObject:
        name = owner or self._name
        return self._control.start_history(text, begin, until, since, skip_damaged, self._own(key), name)

    def open_job_file(self, number: int, suffix: str, only: str | None = None) -> BinaryIO | None:
        return self._control.open_job_file(number, suffix, self._only)

    def jobs(self, after: int, limit: int, owner: str | None = None) -> list[JsonObject]:
        return self._control.jobs(after, limit, self._only or owner)

    def job(self, number: int, only: str | None = None) -> JsonObject:
        return self._control.job(number, self._only)

    def job_results(self, number: int, after: int, limit: int, only: str | None = None) -> JobPage:
        return self._control.job_results(number, after, limit, self._only)

    def cancel_job(self, number: int, only: str | None = None) -> JsonObject:
        return self._control.cancel_job(number, self._only)

    def delete_job(self, number: int, only: str | None = None) -> None:
        self._control.delete_job(number, self._only)

    def metrics(self) -> list[Metric]:
        return self._control.metrics()

    def health(self) -> JsonObject:
        return self._control.health()

    def identify_again(self) -> None:
        """HttpProblemError where the token has ended since: a stream or a long wait outlives it."""
        identify = current.get().identify
        if identify is not None:
            identify()

    @property
    def _only(self) -> str | None:
        """The owner whose queries are visible; None where all are."""
        holder = current.get().holder
        return None if holder.sees_all else holder.name

    @property
    def _name(self) -> str | None:
        """The user; None at a station without tokens."""
        return current.get().holder.name or None

    def _owner_of(self, given: str | None) -> str | None:
        """The owner of a query to submit: the user, unless another is given."""
        holder = current.get().holder
        if given not in (None, holder.name) and not holder.sees_all:
            raise HttpProblemError(
                403, "lesser-scope", "this token may not submit queries of others", "leave `owner` out"
            )
        return given or self._name

    def _find(self, query: str) -> str:
        return str(self._control.find(query, self._only, self._name))

    def _own(self, key: str | None) -> str | None:
        """An idempotency key that no other user can have."""
        name = current.get().holder.name
        return key if key is None or not name else f"{name}/{key}"


def _note(query: JsonObject) -> JsonObject:
    """Let the audit say which query this request made or changed."""
    current.get().subject = int(query["number"])
    return query
