"""JobControl: the part of LiveControl that starts jobs and shows them."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from acquisition.extent import Catalog
from acquisition.sources.time_bounds import Time, read_time
from acquisition.ticks import rfc3339_of
from basestation.archive.spark.java import SparkUnavailableError
from basestation.archive.spark.session import find_requirements
from basestation.controller.admission import bind_single_query
from basestation.controller.world import World
from basestation.jobs.table import Job, JobError, JobState, JobTable
from basestation.planner.plan import Plan
from basestation.rest.control import JobPage, JsonObject
from basestation.rest.wire import HttpProblemError
from basestation.station.history_question import HistoryQuestionError
from basestation.station.recomputation import check_has_windows
from basestation.station.runner import Runner
from gateway.source import did_you_mean
from innet.deployment.history_table import HistorySettings

TRIAL, HISTORY = "trial", "history"
"""The kinds of job: one tries a query, the other asks the archive."""


class JobControl:
    """Methods of `basestation.rest.control.StationControl`."""

    def __init__(
        self, runner: Runner, jobs: JobTable | None, scenario: str | None, history: HistorySettings = HistorySettings()
    ) -> None:
        self._station_runner, self._jobs, self._scenario, self._history = runner, jobs, scenario, history

    def start_trial(
        self,
        text: str,
        span_ms: int,
        seed: int,
        rows: Mapping[str, Sequence[JsonObject]] | None,
        key: str | None,
        owner: str | None,
    ) -> JsonObject:
        world = self._station_runner.durable.station.world
        bind_single_query(text, world)
        if rows is not None:
            _check_names(rows, world.catalog)
        elif world.deployment is None:
            raise HttpProblemError(
                409, "no-deployment", "this station has no deployment whose motes can be simulated",
                'try the query over rows: {"text": …, "rows": {"EXTENT": [{…}]}}',
            )  # fmt: skip
        asked = {"text": text} | (
            {"for_ms": span_ms, "seed": seed}
            if rows is None
            else {"rows": {name: len(of) for name, of in rows.items()}, "rows_sha256": _digest(rows)}
        )
        return self._start(TRIAL, asked, self._trial_order(text, span_ms, seed, rows, world), owner, key)

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
        durable = self._station_runner.durable
        plan = bind_single_query(text, durable.station.world)
        first, last = _read_moment("from", begin), _read_moment("to", until)
        known = _read_moment("since", since, "send the moment of the earlier answer")
        if known is not None:
            _require_windows(plan)
        if self._jobs is not None and not self._jobs.has_process(HISTORY):
            _require_spark(self._history)
        catalog, versions = self._station_runner.call(
            lambda now_ms: (durable.station.world.catalog, durable.station.engine.stored_versions())
        )
        asked = {"text": text, "from": begin, "to": until, "skip_damaged": skip_damaged}
        asked |= {} if since is None else {"since": since}
        order = {
            "text": text, "begin": first, "until": last, "since": known, "skip_damaged": skip_damaged, "settings": self._history,
            "data": durable.journal.path.parent.absolute(), "catalog": catalog,
            "tables": {name: [(each.tick, each.columns) for each in found] for name, found in versions.items()},
        }  # fmt: skip
        return self._start(HISTORY, asked, order, owner, key)

    def open_job_file(self, number: int, suffix: str, only: str | None = None) -> BinaryIO | None:
        table = self._table(number)
        if table.job(number, only).state is not JobState.DONE:
            return None
        try:
            return table.results_file(number, suffix, only).open("rb")
        except FileNotFoundError:
            table.job(number, only)  # KeyError where it was deleted meanwhile
            return None

    def jobs(self, after: int, limit: int, owner: str | None = None) -> list[JsonObject]:
        return [] if self._jobs is None else [_as_json(job) for job in self._jobs.jobs(after, limit, owner)]

    def job(self, number: int, only: str | None = None) -> JsonObject:
        return _as_json(self._table(number).job(number, only))

    def cancel_job(self, number: int, only: str | None = None) -> JsonObject:
        return _as_json(self._table(number).cancel(number, only))

    def delete_job(self, number: int, only: str | None = None) -> None:
        self._table(number).delete(number, only)

    def job_results(self, number: int, after: int, limit: int, only: str | None = None) -> JobPage:
        job = self._table(number).job(number, only)
        has_ended = job.state.has_ended  # before the lines are read: of a job that has ended, none is missing
        lines = self._table(number).results(number, after, limit, only)
        return JobPage(tuple(lines), after + len(lines), has_ended and len(lines) < limit)

    def _start(self, kind: str, asked: JsonObject, order: object, owner: str | None, key: str | None) -> JsonObject:
        if self._jobs is None:
            raise HttpProblemError(409, "no-jobs", "this station runs no jobs", "ask one that `moteloom run` started")
        try:
            return _as_json(self._jobs.start(kind, asked, order, owner, key))
        except JobError as error:
            status = {"key-reused": 422, "too-many-jobs": 429, "not-now": 503}.get(error.code, 409)
            raise HttpProblemError(status, error.code, str(error), error.help) from None

    def _table(self, number: int) -> JobTable:
        if self._jobs is None:
            raise KeyError(number)
        return self._jobs

    def _trial_order(
        self, text: str, span_ms: int, seed: int, rows: Mapping[str, Sequence[JsonObject]] | None, world: World
    ) -> dict[str, Any]:
        """The order for `basestation.testbed.trial_job`."""
        name = "" if world.deployment is None else world.deployment.extents.name
        return {
            "text": text, "ms": span_ms, "seed": seed, "rows": rows, "deployment": world.deployment, "catalog": world.catalog,
            "scenario": self._scenario, "is_always_on": not world.duty_cycled, "folder": str(Path(name or ".").parent),
        }  # fmt: skip


def _read_moment(name: str, text: str | None, remedy: str = "leave it out for the whole archive") -> Time | None:
    try:
        return None if text is None else read_time(text)
    except ValueError as why:
        raise HttpProblemError(422, "bad-request", f"`{name}`: {why}", remedy) from None


def _require_windows(plan: Plan) -> None:
    """HttpProblemError for a query that has no earlier answer."""
    try:
        check_has_windows(plan)
    except HistoryQuestionError as error:
        raise HttpProblemError(422, error.code, str(error), "ask for windows, or a stream") from None


def _require_spark(settings: HistorySettings) -> None:
    """HttpProblemError where Spark cannot start on this machine: better now than as a job that fails."""
    try:
        find_requirements(f"{settings.memory_mb}m")
    except SparkUnavailableError as error:
        raise HttpProblemError(
            503, error.code, str(error), "everything but questions of history works without Spark"
        ) from None


def _digest(rows: Mapping[str, Sequence[JsonObject]]) -> str:
    """A digest of the rows of a request: another one means another trial under the same key."""
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _check_names(rows: Mapping[str, Sequence[JsonObject]], catalog: Catalog) -> None:
    for name in rows:
        if catalog.find(name) is None:
            names = [extent.name for extent in catalog]
            remedy = did_you_mean(name, names) or f"extents are {', '.join(names)}"
            raise HttpProblemError(422, "no-such-extent", f"there is no extent {name[:80]}", remedy)


def _as_json(job: Job) -> JsonObject:
    def time_of(ms: int | None) -> str | None:
        return None if ms is None else rfc3339_of(ms, 1)

    return {
        "number": job.number, "kind": job.kind, "state": job.state.value, "progress": job.progress, "owner": job.owner,
        "doing": job.doing, "notes": list(job.notes), "request": job.request, "submitted": time_of(job.submitted_ms), "begun": time_of(job.begun_ms),
        "ended": time_of(job.ended_ms), "problem": job.problem,
    }  # fmt: skip
