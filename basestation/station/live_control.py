"""LiveControl: a running station behind the REST interface. Commands go through the runner, reads come from the journal."""

import json
from collections.abc import Callable
from copy import copy

from acquisition.ticks import rfc3339_of
from basestation.controller.query_lifecycle import QueryStateError
from basestation.execution.past_windows import reads_past
from basestation.jobs.table import JobTable
from basestation.planner.binder import bind_text
from basestation.planner.completion import complete
from basestation.rest.control import JsonObject, Metric, ResultPage
from basestation.rest.wire import HttpProblemError
from basestation.results.feed import UpdatesExpiredError
from basestation.station.job_control import JobControl
from basestation.station.metrics import measure_station
from basestation.station.mote_description import describe_latest, describe_motes, describe_topology
from basestation.station.query_accounts import QueryAccount, describe_account, share_network
from basestation.station.query_names import AmbiguousNameError, check_name, find_of_any, find_owned, split_name
from basestation.station.retention import LARGEST_LOG
from basestation.station.runner import Runner
from basestation.station.service import Station
from basestation.station.text_description import (
    check_start,
    check_text,
    describe_dry_run,
    describe_past,
    describe_plan,
    explain_text,
)
from basestation.station.upload_control import UploadControl, describe_extent, wrong_state
from innet.deployment.history_table import HistorySettings

STALLED_SECONDS = 10.0
"""Of the machine. A station that has not looked for so long makes no progress."""


class LiveControl(UploadControl, JobControl):
    """The methods of `basestation.rest.control.StationControl`."""

    def __init__(
        self,
        runner: Runner,
        jobs: JobTable | None = None,
        scenario: str | None = None,
        history: HistorySettings = HistorySettings(),
    ) -> None:
        """Without `jobs` there are none. Trials simulate the world of a `scenario` file, or noise; `history` says which Spark answers."""
        UploadControl.__init__(self, runner)
        JobControl.__init__(self, runner, jobs, scenario, history)
        self._journal = runner.durable.journal

    @property
    def _station(self) -> Station:
        return self._runner.durable.station

    def submit(
        self,
        text: str,
        key: str | None,
        name: str | None = None,
        owner: str | None = None,
        active: str | None = None,
        keep: int | None = None,
    ) -> JsonObject:
        durable = self._runner.durable
        return self.query(str(self._call(lambda now_ms: durable.submit(text, now_ms, key, name, owner, active, keep))))

    def dry_run(self, text: str, name: str | None = None, owner: str | None = None) -> JsonObject:
        station = self._station
        world = station.world
        try:
            check_name(name, owner, world, self._journal)
        except QueryStateError as error:
            raise wrong_state(error) from None
        found, planned = describe_dry_run(text, world, station.engine.clock)
        self._runner.call(lambda now_ms: check_start(text, planned, world, station.engine))
        return found

    def check(self, text: str) -> JsonObject:
        return check_text(text, self._station.world)

    def complete(self, text: str, cursor: int) -> JsonObject:
        return complete(text, cursor, self._station.world.catalog).as_json()

    def explain(self, text: str) -> list[tuple[JsonObject, str]]:
        station = self._station
        bound = bind_text(text, station.world.catalog)
        pasts: list[JsonObject | None] = [None] * len(bound)
        if any(map(reads_past, bound)):
            pasts = self._call(lambda now_ms: [describe_past(each, station.engine) for each in bound])
        return explain_text(text, station.world, pasts)

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
        number, durable = self._find_replaced(query, key, only, own), self._runner.durable
        self._check_owner(number, only)
        return self.query(
            str(self._call(lambda now_ms: durable.replace(number, text, now_ms, key, name, active, keep)))
        )

    def change(self, query: str, kind: str, key: str | None = None) -> JsonObject:
        number, durable = self.number_of(query), self._runner.durable
        self._call(lambda now_ms: durable.change(kind, number, now_ms, key=key))
        return self.query(str(number))

    def find(self, query: str, only: str | None = None, own: str | None = None) -> int:
        number = self.number_of(query, only, own)
        self._check_owner(number, only)
        return number

    def _check_owner(self, number: int, only: str | None) -> None:
        if only is not None and self._journal.owner(number) != only:
            raise KeyError(number)

    def number_of(self, query: str, only: str | None = None, own: str | None = None) -> int:
        """The number of a query by its number or name: the one that may still answer, else the newest that had the name.

        A plain name is one of `only`, the sole user with visible queries, or of the user's `own`. Where all are visible, it is
        else the one that another has, and `OWNER.NAME` says whose it is.
        """
        if query.isascii() and query.isdecimal():
            return int(query[:18])
        owner, name = split_name(query)
        world, journal = self._station.world, self._journal
        if owner is not None:
            number = find_owned(name, owner, world, journal) if only in (None, owner) else None
        else:
            number = find_owned(name, only or own, world, journal)
            if number is None and only is None:
                try:
                    number = find_of_any(name, world, journal)
                except AmbiguousNameError as error:
                    raise HttpProblemError(409, "ambiguous-name", str(error), error.help) from None
        if number is None:
            raise KeyError(query)
        return number

    def _find_replaced(self, query: str, key: str | None, only: str | None, own: str | None) -> int:
        """The number of the query to replace: that of the first request with this key, although its name has moved on since."""
        before = None if key is None else self._journal.command_of(key)
        if before is not None and before[0] == "replace":
            number = int(json.loads(before[1])["number"])
            replaced = self._journal.query(number)
            owner, name = split_name(query)
            is_named = replaced is not None and json.loads(replaced)["name"] == name
            if is_named and owner in (None, self._journal.owner(number)):
                return number
        return self.number_of(query, only, own)

    def queries(
        self, after: int, limit: int, state: str | None, owner: str | None = None, extent: str | None = None
    ) -> list[JsonObject]:
        found = self._journal.queries(after, limit, state, owner, extent)
        return [json.loads(body) | {"owner": of} for body, of in found]

    def versions(self) -> tuple[int, int]:
        return self._journal.list_version, self._runner.looked_ms

    def query(self, query: str) -> JsonObject:
        number = self.number_of(query)
        body = self._journal.query(number)
        if body is None:
            raise KeyError(query)
        found: JsonObject = json.loads(body) | {"owner": self._journal.owner(number)}
        return found

    def plan(self, query: str) -> tuple[JsonObject, str]:
        described, world = self.query(query), self._station.world
        return describe_plan(int(described["number"]), str(described["text"]), world)

    def account(self, query: str) -> JsonObject:
        described = self.query(query)
        number = int(described["number"])
        kept = self._journal.kept_results(number)
        if "account" in described:  # it is over: the station remembers its counts only
            return {**describe_account(QueryAccount(**described["account"]), None, None), **kept}
        station = self._station
        account, share, world = self._runner.call(
            lambda now_ms: (copy(station.accounts.of(number)), station.share(number), station.world)
        )
        network = share_network(world, station.engine.clock + 1).get(number)
        return {**describe_account(account, share, network), **kept}

    def query_numbers(self, owner: str | None = None) -> tuple[int, int] | None:
        return self._journal.query_numbers(owner)

    def results(self, query: str, after: int, limit: int) -> ResultPage:
        described = self.query(query)
        number = int(described["number"])
        first, behind = self._journal.bounds(number)
        if after + 1 < first:
            raise UpdatesExpiredError(first)
        lines: list[str] = []
        chunks = self._journal.results(number, after, limit) if after + 1 < behind else []
        if chunks and chunks[0].first > after + 1:  # some have just been dropped
            raise UpdatesExpiredError(chunks[0].first)
        for chunk in chunks:
            lines += chunk.lines.splitlines()[max(0, after + 1 - chunk.first) :]
        lines = lines[:limit]
        schema = {key: described[key] for key in ("kind", "columns", "loops", "several_loops") if key in described}
        return ResultPage(number, schema, tuple(lines), after + len(lines), self._journal.epoch)

    def on_results(self, wake: Callable[[], None]) -> None:
        self._journal.on_results.append(wake)

    def number_before(self, query: str, at_ms: int | None) -> int:
        number = int(self.query(query)["number"])
        return self._journal.bounds(number)[1] - 1 if at_ms is None else self._journal.number_before(number, at_ms)

    def motes(self) -> list[JsonObject]:
        return self._runner.call(lambda now_ms: describe_motes(self._station, now_ms))

    def latest(self, extent: str) -> list[JsonObject]:
        station = self._station
        if extent not in station.world.catalog.extents:
            raise KeyError(extent)
        return self._runner.call(lambda now_ms: describe_latest(station, extent))

    def topology(self) -> JsonObject:
        return describe_topology(self._station)

    def extents(self) -> list[JsonObject]:
        return [describe_extent(extent) for extent in self._station.world.catalog]

    def events(
        self, after: int, limit: int, query: int | None, owner: str | None = None, kind: str | None = None
    ) -> tuple[list[JsonObject], int]:
        last = self._journal.last_event()
        found: list[JsonObject] = [
            {"number": number, "time": rfc3339_of(at_ms, 1), "event": what, **json.loads(body)}
            for number, at_ms, what, body in self._journal.events(after, limit, query, owner, kind)
        ]
        read = int(found[-1]["number"]) if found else after
        return found, read if len(found) == limit else max(read, last)

    def event_bounds(self) -> tuple[str, int]:
        return self._journal.epoch, self._journal.last_event()

    def metrics(self) -> list[Metric]:
        return self._runner.call(lambda now_ms: measure_station(self._runner, now_ms))

    def health(self) -> JsonObject:
        behind = self._runner.clock.seconds_since(self._runner.looked_ms)
        problems = []
        if not self._runner.is_committing:
            problems.append(f"nothing can be committed: {self._runner.durable.failure}")
        if self._runner.damage is not None:
            problems.append(self._runner.damage)
        if not self._runner.is_linked:
            problems.append(f"the link fails: {self._runner.durable.link_failure}")
        if behind > STALLED_SECONDS:
            problems.append(f"the station has not looked for {behind:.0f} s")
        station, storage = self._station, self._journal.storage
        if storage.log_bytes > LARGEST_LOG:
            problems.append(
                f"the log has {storage.log_bytes:,} bytes that no snapshot covers: see `snapshot fails` in events"
            )
        return {
            "ok": not problems,
            "problems": problems,
            "takes_commands": self._runner.is_committing and behind <= STALLED_SECONDS,
            "time": rfc3339_of(self._runner.looked_ms, 1),
            "queries": len(station.world.live),
            "motes": len(station.reconcilers.by_mote),
            "silent": sorted(station.failure_detector.motes),
            "storage": {
                "results_bytes": storage.result_bytes,
                "log_bytes": storage.log_bytes,
                "dropped": dict(storage.dropped),
            },
        }
