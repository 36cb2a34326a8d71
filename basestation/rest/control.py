"""StationControl: the calls that the routes of the REST interface make on a running station."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Updates of one query as JSON texts, and the number to ask for `after` next time."""

    query: int
    schema: JsonObject
    lines: tuple[str, ...]
    next: int
    epoch: str = ""
    """Of the numbers: another one after the station was restored from a backup."""


@dataclass(frozen=True, slots=True)
class JobPage:
    """Lines of the results of a job, the number to ask for `after` next time, and whether no more will come."""

    lines: tuple[str, ...]
    next: int
    is_complete: bool


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure with a value for each combination of its labels. The name of a counter ends in `_total`."""

    name: str
    help: str
    labels: tuple[str, ...]
    values: Mapping[tuple[str, ...], float]


class StationControl(Protocol):
    """Every method may be called from any thread. KeyError: there is no such query.

    A `query` is a number or a name. A plain name is that of a query of a user: of `only`, or else of `own`, or the one that another
    user has; `OWNER.NAME` says whose it is.
    """

    def submit(
        self,
        text: str,
        key: str | None,
        name: str | None = None,
        owner: str | None = None,
        active: str | None = None,
        keep: int | None = None,
    ) -> JsonObject:
        """Accept a query of a user, which runs in its `active` hours; its newest `keep` updates are kept. DiagnosticError says why it cannot be, JournalError why it cannot be kept."""

    def dry_run(self, text: str, name: str | None = None, owner: str | None = None) -> JsonObject:
        """The effect that a submission of a user would have now: plan, costs, motes that would change. DiagnosticError where it cannot run."""

    def check(self, text: str) -> JsonObject:
        """Every error of a text, or its statements."""

    def complete(self, text: str, cursor: int) -> JsonObject:
        """The words that can stand at a cursor."""

    def explain(self, text: str) -> list[tuple[JsonObject, str]]:
        """Each statement of a text, as JSON and as text. DiagnosticError: the text has errors."""

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
        """Accept a query in the place of another, which answers no window after this tick. It has the same owner.

        With `only`, KeyError unless that is the owner.
        """

    def find(self, query: str, only: str | None = None, own: str | None = None) -> int:
        """The number of a query. With `only`, KeyError unless that is its owner."""

    def push(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        """Take tuples of a pushed extent for good; the receipt. KeyError: there is no such extent."""

    def load(self, extent: str, body: bytes, form: str, key: str | None) -> JsonObject:
        """Give a stored extent a new version for good; the receipt. KeyError: there is no such extent."""

    def declare(self, name: str, text: str, key: str | None) -> JsonObject:
        """Add the pushed or stored extent that a text declares, for good. DiagnosticError."""

    def tables(self) -> list[JsonObject]:
        """The versions of each stored extent."""

    def correct(self, text: str, key: str | None) -> JsonObject:
        """Carry out REVISE, DELETE and INSERT for good; the receipt. DiagnosticError."""

    def change(self, query: str, kind: str, key: str | None = None) -> JsonObject:
        """`stop`, `pause`, `resume` or `drain` a query."""

    def queries(
        self, after: int, limit: int, state: str | None, owner: str | None = None, extent: str | None = None
    ) -> list[JsonObject]:
        """The queries with numbers above `after`, the oldest first: all, or those in a state, of an owner, over an extent."""

    def versions(self) -> tuple[int, int]:
        """Two numbers that grow: one where the list of queries has changed, one where newest values may have."""

    def query(self, query: str) -> JsonObject:
        """One query."""

    def plan(self, query: str) -> tuple[JsonObject, str]:
        """The plan of one query, as JSON and as text: meaning, rewrites, operators, and its work on the declared motes."""

    def account(self, query: str) -> JsonObject:
        """The counts of one query, and its share of time, state, messages and energy."""

    def query_numbers(self, owner: str | None = None) -> tuple[int, int] | None:
        """The numbers of the first and the last query, of an owner or of all, or None."""

    def results(self, query: str, after: int, limit: int) -> ResultPage:
        """The updates with numbers above `after`. UpdatesExpiredError where some of these are no longer kept."""

    def on_results(self, wake: Callable[[], None]) -> None:
        """Call `wake` from now on after each commit of new results, on the thread that commits."""

    def number_before(self, query: str, at_ms: int | None) -> int:
        """The number of the last update that the station gave before a time in ms, or of the newest one."""

    def motes(self) -> list[JsonObject]:
        """Each mote as its data shows it: health, times, links, versions, reading counts."""

    def latest(self, extent: str) -> list[JsonObject]:
        """The newest value of each attribute at each site of an extent. KeyError: there is no such extent."""

    def topology(self) -> JsonObject:
        """The routing tree, and the links that motes report."""

    def extents(self) -> list[JsonObject]:
        """The extents that queries may read."""

    def events(
        self, after: int, limit: int, query: int | None, owner: str | None = None, kind: str | None = None
    ) -> tuple[list[JsonObject], int]:
        """Operational events with numbers above `after`, all or those about a query or of a kind; the number to ask for `after` next time.

        With `owner`, none about the queries of others.
        """

    def start_trial(
        self,
        text: str,
        span_ms: int,
        seed: int,
        rows: Mapping[str, Sequence[JsonObject]] | None,
        key: str | None,
        owner: str | None,
    ) -> JsonObject:
        """Try a query as a job, on simulated motes for so long, or over rows by extent. DiagnosticError."""

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
        """Ask the archive as a job, over the windows from `begin` to `until`. DiagnosticError; HttpProblemError where there is no Spark.

        With `since`, ask which rows of these windows are others than with what had arrived by then.
        """

    def open_job_file(self, number: int, suffix: str, only: str | None = None) -> BinaryIO | None:
        """The open file with the results of a job in another format, `.csv` or `.arrow`; None while there is none."""

    def jobs(self, after: int, limit: int, owner: str | None = None) -> list[JsonObject]:
        """The jobs with numbers above `after`, of a user or of all, the oldest first."""

    def job(self, number: int, only: str | None = None) -> JsonObject:
        """One job. KeyError: there is none with this number; with `only`, unless that is its owner. So below."""

    def job_results(self, number: int, after: int, limit: int, only: str | None = None) -> JobPage:
        """Lines of the results of a job behind the first `after`."""

    def cancel_job(self, number: int, only: str | None = None) -> JsonObject:
        """End a job; its results so far stay."""

    def delete_job(self, number: int, only: str | None = None) -> None:
        """End a job, and forget it with its results."""

    def event_bounds(self) -> tuple[str, int]:
        """The epoch of the numbers of events, and the number of the newest one."""

    def metrics(self) -> list[Metric]:
        """Figures of the station, of its data and of its file."""

    def health(self) -> JsonObject:
        """Whether data makes progress; `ok` is false where it does not."""
