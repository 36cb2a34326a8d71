"""Trials: runs of a scenario under several seeds, the figures of each, their means and confidence intervals."""

import csv
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf, isfinite, isnan, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, TextIO

from acquisition.batch import Batch, empty_batch
from acquisition.extent import Extent
from basestation.controller.migration import MigrationEvent
from basestation.explain.motes import ASSUMPTIONS
from basestation.results.feed import Feed
from basestation.results.wire import schema_as_json, update_as_json
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.steady_state import DAY_MS, LEAST_ROUNDS, SteadyState, SteadyStateMeter, predict_lifetime
from basestation.testbed.timeline import Timeline, TimelineRecorder
from basestation.testbed.trial_files import TrialFiles
from basestation.testbed.vector_testbed import VectorTestbed
from basestation.updates.update import EpochMarks, Update, WindowUpdates, split_interleaved
from gateway.diagnostics import DiagnosticError
from simulator.scenario import Scenario

# Student's t, 97.5 %, for 1, 2, … degrees of freedom (NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2).
T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
    2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


class DiscardingArchive:
    """An archive that stores nothing: the trace has the readings."""

    def append_reports(self, extent: Extent, reports: Batch) -> None:
        """Drop them."""

    def append(self, extent: Extent, batch: Batch) -> None:
        """Discard the readings."""

    def append_corrections(self, extent: Extent, batch: Batch) -> None:
        """Discard the corrections."""

    def read(self, extent: Extent, first: int, last: int) -> Batch:
        return empty_batch(extent.schema)


@dataclass(frozen=True, slots=True)
class MoteFigures:
    """The figures of one mote. `setup_joules` is the part of `joules` from before the steady state.

    `lifetime_days` is when its battery was empty, or will be at the consumption of the steady state; nan if that is unknown.
    """

    mote: int
    produced: int
    frames: int
    attempts: int
    bytes: int
    lost: int
    joules: float
    setup_joules: float
    lifetime_days: float
    died: str | None


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one run.

    `coverage` is, by query, the share of the readings due that its windows contain, in their latest version. `decided` has the
    decisions of the re-optimizer. `accounts` has by extent and mote the outcome of each reading that was due, `unattributed` by
    extent the number of merged readings whose sites are unknown. `predicted_days` is the station's prediction of the lifetime of
    the worst mote; nan without an agenda. `awake_reason` says why motes of a duty-cycled network have no agenda.
    """

    seed: int
    motes: tuple[MoteFigures, ...]
    steady: SteadyState
    predicted_days: float
    awake_reason: str | None
    ledger: Mapping[str, Mapping[str, int]]
    accounts: Mapping[str, Mapping[int, Mapping[str, int]]]
    unattributed: Mapping[str, int]
    answers: Mapping[str, int]
    revisions: Mapping[str, int]
    coverage: Mapping[str, float]
    refused: Mapping[str, DiagnosticError]
    decided: tuple[tuple[str, MigrationEvent], ...]
    timeline: Timeline
    errors: Mapping[str, int]

    def figures(self) -> dict[str, float]:
        """The figures that are compared between seeds."""
        found: dict[str, float] = {
            "readings produced": sum(mote.produced for mote in self.motes),
            "readings received": sum(
                counts.get("received", 0) - counts.get("merged", 0) for counts in self.ledger.values()
            ),
            "readings merged": sum(counts.get("merged", 0) for counts in self.ledger.values()),
            "frames": sum(mote.frames for mote in self.motes),
            "attempts": sum(mote.attempts for mote in self.motes),
            "bytes": sum(mote.bytes for mote in self.motes),
            "frames lost": sum(mote.lost for mote in self.motes),
            "joules": sum(mote.joules for mote in self.motes),
            "joules of the set-up": sum(mote.setup_joules for mote in self.motes),
            "hours of steady state": (self.steady.end_ms - self.steady.begin_ms) / 3_600_000,
            "worst lifetime in days": self.worst_days,
            "predicted lifetime in days": self.predicted_days,
            "motes that died": sum(mote.died is not None for mote in self.motes),
        }
        return found | self._query_figures()

    def as_json(self, scenario: str) -> dict[str, Any]:
        """The outcome as one line of JSON: figures, ledger, notes and decisions."""
        return {
            "type": "run", "scenario": scenario, "seed": self.seed, "figures": finite(self.figures()), "ledger": self.ledger,
            "notes": self.notes(), "decided": [asdict(each) | {"query": name} for name, each in self.decided],
        }  # fmt: skip

    def notes(self) -> list[str]:
        """The conditions of the lifetimes, and why they differ from those that `moteloom explain` predicts."""
        steady = self.steady
        if not steady.is_duty_cycled:
            why = f" ({self.awake_reason})" if self.awake_reason else ""
            return [
                f"lifetimes: of motes that always listen{why}; `moteloom explain` predicts those of motes that sleep"
            ]
        if not steady.is_long_enough:
            return [
                f"lifetimes are unknown: {steady.rounds} rounds passed since motes last changed what they run, and "
                f"{LEAST_ROUNDS} are needed; simulate a longer time (--for), or without faults"
            ]
        return [
            "lifetimes hold for the steady state, after the set-up; the predicted one is that of `moteloom explain`, whose "
            f"{ASSUMPTIONS}; a simulation has control traffic"
        ]

    @property
    def worst_days(self) -> float:
        """When the first battery is empty, in days; nan if that is unknown."""
        known = [mote.lifetime_days for mote in self.motes if not isnan(mote.lifetime_days)]
        return min(known, default=nan if self.motes else inf)

    def _query_figures(self) -> dict[str, float]:
        found: dict[str, float] = {}
        for name in self.answers:
            found[f"{name}: answers"] = self.answers[name]
            found[f"{name}: revisions"] = self.revisions[name]
            found[f"{name}: coverage"] = self.coverage[name]
        return found


@dataclass(frozen=True, slots=True)
class Summary:
    """One figure: its mean over all seeds, and half the width of its 95 % confidence interval (nan for one seed)."""

    mean: float
    margin: float
    least: float
    most: float


def summarise(trials: Sequence[Trial]) -> dict[str, Summary]:
    """Each figure over all seeds."""
    figures = [trial.figures() for trial in trials]
    return {name: _summary([each[name] for each in figures]) for name in figures[0]}


def _summary(values: Sequence[float]) -> Summary:
    count = len(values)
    if any(map(isnan, values)):
        return Summary(nan, nan, nan, nan)
    if max(values) == inf:
        return Summary(inf, nan, min(values), inf)
    mean = fmean(values)
    margin = student_t(count - 1) * stdev(values) / sqrt(count) if count > 1 else nan
    return Summary(mean, margin, min(values), max(values))


def student_t(freedom: int) -> float:
    """Student's t, 97.5 %; beyond the table by its first correction to the normal distribution."""
    return T_975[freedom - 1] if freedom <= len(T_975) else 1.960 + 2.37 / freedom


def format_line(value: Mapping[str, Any]) -> str:
    """An object as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def finite(figures: Mapping[str, float]) -> dict[str, float | None]:
    """The figures with null for those that are infinite or undefined: JSON has no word for them."""
    return {name: value if isfinite(value) else None for name, value in figures.items()}


def _write_figures(files: TrialFiles, trial: Trial) -> None:
    rows = [asdict(mote) for mote in trial.motes]
    writer = csv.DictWriter(files.open("motes.csv"), list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    figures = {
        "ledger": trial.ledger,
        "readings": trial.accounts,
        "merged, unattributed": trial.unattributed,
        "errors": trial.errors,
        "notes": trial.notes(),
        "figures": finite(trial.figures()),
    }
    files.open("ledger.json").write(json.dumps(figures, indent=2) + "\n")


class TrialRun:
    """One run in progress. With a folder it writes answers, trace and figures there, into files marked as unfinished.

    Without one, `answers` takes the lines of answers, if it is given.
    """

    def __init__(self, scenario: Scenario, seed: int, folder: Path | None = None, swept: bool = False,
                 always_on: bool = False, answers: TextIO | None = None) -> None:  # fmt: skip
        self.seed, self._scenario = seed, scenario
        self._files = None if folder is None else TrialFiles(folder)
        self._answers = self._files.open("answers.jsonl") if self._files else answers
        trace = self._files.open("trace.txt") if self._files else None
        sink, traced, archive = trace.write if trace else None, trace is not None, DiscardingArchive()
        # This run drains the feed after each step. One step may publish more than a feed for clients retains.
        feed = Feed(limit=sys.maxsize)
        self.bed: EventTestbed | VectorTestbed
        if swept:
            self.bed = VectorTestbed(scenario, seed, sink, traced, archive, feed=feed)
        else:
            self.bed = EventTestbed(scenario, seed, sink, traced, archive, not always_on, feed=feed)
        self._steady = SteadyStateMeter(self.bed)
        self._windows: dict[str, dict[tuple[int, int], list[int]]] = {}
        self._revisions: dict[str, int] = {}

    def run(self, ms: int, on_progress: Callable[[int], None] = lambda ms: None) -> Trial:
        """Run for `ms` milliseconds; `on_progress` is called with the time so far. The files are complete at the end."""

        recorder = TimelineRecorder(ms)

        def step(done: int) -> None:
            self._process_updates()
            self._steady.read()
            if recorder.is_due(done):
                answers = {name: len(windows) for name, windows in self._windows.items()}
                recorder.add(done, sum(self.bed.spent().values()), answers)
            on_progress(done)

        try:
            self.bed.run_until(ms, step)
            trial = self._trial(recorder.finish(self._window_coverage()))
            if self._files:
                _write_figures(self._files, trial)
                self._files.publish()
        finally:
            if self._files:
                self._files.close()
        return trial

    def _process_updates(self) -> None:
        """Write and count the updates of all queries since the last step."""
        feed = self.bed.station.feed
        drained = dict(feed.drain())
        for name, number in self.bed.numbers.items():
            schema = feed.schema(number)
            if name not in self._windows:
                self._windows[name], self._revisions[name] = {}, 0
                self._write([schema_as_json(schema)])
            for numbered in drained.get(number, ()):
                self._write(update_as_json(numbered.update, schema.scales))
                self._count_windows(name, numbered.update)

    def _write(self, lines: Iterable[dict[str, Any]]) -> None:
        if self._answers:
            self._answers.writelines(format_line(line) + "\n" for line in lines)

    def _count_windows(self, name: str, update: Update) -> None:
        windows = self._windows[name]
        for part in split_interleaved([update]):
            for each in part if isinstance(part, WindowUpdates | EpochMarks) else ():
                key = each.tick, getattr(each, "n", 1)
                self._revisions[name] += key in windows
                windows[key] = [sum(column) for column in zip(*filter(None, each.coverage.values()), strict=True)]

    def _window_coverage(self) -> dict[str, tuple[tuple[int, float], ...]]:
        """By query (milliseconds since the scenario began, share) of each window with readings due."""
        tick_ms, begin_ms = self.bed.catalog.tick_ms, self._scenario.begin_ms
        return {
            name: tuple(
                (tick * tick_ms - begin_ms, used[0] / used[1])
                for (tick, _), used in sorted(found.items())
                if used and used[1]
            )
            for name, found in self._windows.items()
        }

    def _trial(self, timeline: Timeline) -> Trial:
        bed = self.bed
        names, coverage = {number: name for name, number in bed.numbers.items()}, {}
        for name, windows in self._windows.items():
            used, due = (sum(covered[part] for covered in windows.values() if covered) for part in (0, 1))
            coverage[name] = used / due if due else 1.0
        steady = self._steady.finish()
        return Trial(
            seed=self.seed,
            motes=tuple(self._mote(number, spent, steady) for number, spent in sorted(bed.spent().items())),
            steady=steady,
            predicted_days=predict_lifetime(bed.station.world, bed.station.engine.clock),
            awake_reason=bed.station.world.awake_reason,
            ledger={name: dict(counts) for name, counts in bed.station.engine.ledger().items()},
            accounts=bed.station.account(),
            unattributed=bed.station.ledger.unattributed(),
            answers={name: len(windows) for name, windows in self._windows.items()},
            revisions=dict(self._revisions),
            coverage=coverage,
            refused=dict(bed.refused),
            decided=tuple((names[each.query], each) for each in bed.decided),
            timeline=timeline,
            errors=dict(bed.station.errors + bed.station.events.counts),
        )

    def _mote(self, number: int, spent: float, steady: SteadyState) -> MoteFigures:
        tally, battery = self.bed.tally, self._scenario.deployment.motes[number].battery
        died = tally.died.get(number)
        if died is None:
            lifetime = steady.lifetime_days(number, battery)
        else:
            lifetime = (died[0] / 1_000 - self._scenario.begin_ms) / DAY_MS if died[1] == "battery" else nan
        return MoteFigures(
            number, tally.produced[number], tally.frames[number], tally.attempts[number], tally.bytes[number],
            tally.lost[number], spent, min(spent, steady.setup[number]), lifetime, died and died[1],
        )  # fmt: skip
