"""Aggregates that motes merged stand in the archive, so that a query with SINCE has the answers and the coverage of one that ran."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from acquisition.batch import Batch
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Schema
from basestation.archive.compaction import days_of_files
from basestation.archive.memory import MemoryArchive
from basestation.archive.partials import partial_extent
from basestation.archive.transfer import export_readings
from basestation.archive.verification import verify_archive
from basestation.controller.admission import bind_single_query
from basestation.execution.past_windows import ReplayedQuery
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.station import past_size
from basestation.station.archive_recovery import open_archive
from basestation.station.durable import DurableStation
from basestation.station.past_partials import _of_fullest
from basestation.station.past_reader import PastReader
from basestation.station.service import Station
from basestation.station.text_description import describe_past
from basestation.testbed.live_motes import MoteScenario
from gateway.diagnostics import DiagnosticError
from tests.docs.pages import ROOT
from tests.station.small_network import BEGIN_MS, LOOK_MS, Crash, CrashingJournal

BRIDGE, HALL = "examples/roadbridge/night.scenario.toml", "tests/simulation/loses_forty_percent_in_bursts.toml"
TEXTS = (
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM hall [FROM NOW-59 TO NOW SLIDE 20 SEC]",
    "SELECT site, MAX(supply) AS most, MIN(temp) AS least FROM hall [FROM NOW-39 TO NOW SLIDE 40 SEC] GROUP BY site",
    "SELECT COUNT(*) AS n, VARIANCE(supply) AS v FROM hall [FROM NOW-19 TO NOW SLIDE 30 SEC] WHERE temp > 20 AND site > 2",
)


class MergingNetwork:
    """A durable station with an archive, and motes that merge all that they can. Readings are late by up to `horizon` ticks."""

    def __init__(self, folder, seed, scenario=BRIDGE, horizon=86_400):
        self.folder, self.now_ms = folder, BEGIN_MS
        scenario = MoteScenario(str(ROOT / scenario))
        self.deployment, declared = scenario.deployment, read_deployed_catalog(scenario.deployment)
        self.sensed = next(extent.name for extent in declared if extent.interval)
        late = replace(declared.extents[self.sensed], horizon=horizon)
        self.catalog = replace(declared, extents={**declared.extents, self.sensed: late})
        self.motes = scenario.start(BEGIN_MS, 1, seed)
        self.start()

    def make(self, transport, now_ms):
        return Station(self.catalog, transport, MemoryArchive(), boot=1, now_ms=now_ms, deployment=self.deployment,
                       pushdown=PushdownPolicy.EVERYTHING)  # fmt: skip

    def start(self):
        self.journal = CrashingJournal(self.folder)
        self.durable = DurableStation(self.journal, self.make, self.now_ms)
        self.durable.connect(self.motes.wire)
        self.archive = open_archive(self.folder, self.catalog.tick_ms, self.journal)
        self.durable.read_past = PastReader(self.durable, self.archive)

    def restart(self):
        self.journal.close()
        self.start()

    def live(self, minutes):
        for _ in range(int(minutes * 60_000 / LOOK_MS)):
            self.now_ms += LOOK_MS
            self.motes.advance(self.now_ms)
            self.durable.step(self.now_ms)

    def submit(self, text):
        return self.durable.submit(text, self.now_ms)

    @property
    def tick(self):
        return self.now_ms // self.catalog.tick_ms

    def answers(self, number):
        """By window its rows and coverage; each has one answer with revision 0, in the order of ticks."""
        found, coverage, order = {}, {}, []
        lines = "".join(chunk.lines for chunk in self.journal.results(number, 0, 10**9)).splitlines()
        for line in map(json.loads, lines):
            key = line["tick"]
            if not line.get("revision"):
                order.append(key)
            rows = found.setdefault(key, Counter())
            rows.update(map(json.dumps, [*line.get("rows", ()), *line.get("added", ())]))
            rows.subtract(map(json.dumps, line.get("removed", ())))
            coverage[key] = line.get("coverage", coverage.get(key))
        assert order == sorted(set(order))
        return {key: (+rows, coverage[key][self.sensed]) for key, rows in found.items()}


@pytest.mark.promise("archived")
def test_past_answers_have_the_coverage_of_merged_ones(tmp_path, rng, counts, tally, monkeypatch):
    """Of motes whose links lose four frames in ten, and with rolls, snapshots and restarts: windows of queries since the past are live ones."""
    kinds = Counter()
    monkeypatch.setattr("basestation.execution.ingest.intake.KEPT_MS", 20_000)
    for run in range(counts(2, 20, 200)):
        monkeypatch.setattr(past_size, "SLICE_TUPLES", rng.choice([7, 50_000]))
        horizon = (86_400, 60)[run % 2]  # the log reaches back to the begin, or not
        network = MergingNetwork(tmp_path / str(run), rng.randrange(2**32), HALL, horizon)
        always = [network.submit(text) for text in TEXTS]
        begun = network.tick
        assert all(network.durable.station.world.queries[number].partial_sources for number in always)
        for _ in range(5):
            network.live(rng.choice([0.5, 1.3, 2.25]))
            if rng.random() < 0.3:
                network.durable.roll(network.now_ms, network.archive)
            if rng.random() < 0.3:
                network.durable.snapshot(network.now_ms)
            if rng.random() < 0.3:
                network.restart()
        later, first = [], network.tick
        for text in TEXTS:
            later.append((network.submit(f"{text} SINCE {begun + rng.randint(60, 90)}"), network.tick))
            assert later[-1][0] in network.durable.station.past.by_query
            network.live(rng.choice([0, 0.25, 0.5]))
            if rng.random() < 0.5:
                network.durable.snapshot(network.now_ms)
            if rng.random() < 0.5:
                network.restart()
        network.live(3)
        for reference, (number, until) in zip(always, later, strict=True):
            found = {tick: answer for tick, answer in network.answers(number).items() if tick < until}
            live = {tick: answer for tick, answer in network.answers(reference).items() if min(found) <= tick < until}
            assert found.keys() == live.keys()
            for tick, (rows, (used, due)) in live.items():  # queries since the past let motes send readings too
                more = tick >= first and found[tick][1][0] > used
                assert found[tick] == (rows, [used, due]) or more, tick
            kinds["complete"] += sum(used == due for _, (used, due) in live.values())
            kinds["incomplete"] += sum(used < due for _, (used, due) in live.values())
        files = network.journal.archive_files()
        assert list(verify_archive(network.folder, files)) == []
        network.journal.close()
    tally("past windows of partials", kinds)
    assert kinds["complete"] and kinds["incomplete"]


COUNT = "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM road [FROM NOW-59 TO NOW SLIDE 60 SEC]"
RAW = "SELECT site, temp, vibration FROM road"


@pytest.fixture
def bridge(tmp_path):
    bridge = MergingNetwork(tmp_path, 7)
    yield bridge
    bridge.journal.close()


def rows_of(bridge, name):
    """All rows of an extent in the files of the archive."""
    days = [day for day in days_of_files(bridge.journal.archive_files()) if day.extent == name]
    return export_readings(bridge.folder, days, 0, 2**60).to_pylist() if days else []


@pytest.mark.promise("archived")
def test_each_past_window_takes_what_covers_more(bridge):
    """
    sent one by one        merged                  SINCE
    ├────── 6 min ──────┼─────── 6 min ───────┼──────▶
    """
    bridge.live(0.5)
    begun = bridge.tick
    raw = bridge.submit(RAW)
    bridge.live(6)
    merged = bridge.submit(COUNT)
    bridge.durable.change("stop", raw, bridge.now_ms)
    bridge.live(6)
    bridge.durable.change("stop", merged, bridge.now_ms)
    until = bridge.tick
    number = bridge.submit(f"{COUNT} SINCE {begun + 120}")
    bridge.live(2)
    found = {tick: answer for tick, answer in bridge.answers(number).items() if tick < until - 60}
    live = {tick: answer for tick, answer in bridge.answers(merged).items() if tick in found}
    readings = Counter(-(-row["_tick"] // 60) * 60 for row in rows_of(bridge, "road"))
    by_readings = {tick: coverage[0] for tick, (_, coverage) in found.items() if tick not in live}
    assert len(live) > 3 and {tick: found[tick] for tick in live} == live
    assert len(by_readings) > 3 and by_readings == {tick: readings[tick] for tick in by_readings}
    assert sum(by_readings.values()) > 10


@pytest.mark.promise("archived")
@pytest.mark.parametrize("crashes_before", [True, False])
def test_partials_are_archived_once_whatever_ends_a_roll(bridge, crashes_before):
    number = bridge.submit(COUNT)
    bridge.live(6)
    waiting = bridge.durable.station.archive.rows
    assert bridge.durable.station.archive.has("partials/road") and not rows_of(bridge, "partials/road")
    assert bridge.durable._commit(closing=True)
    bridge.journal.commits_left, bridge.journal.crashes_before = 0, crashes_before
    with pytest.raises(Crash):
        bridge.durable.roll(bridge.now_ms, bridge.archive)
    bridge.restart()
    bridge.live(3)
    bridge.durable.roll(bridge.now_ms, bridge.archive)
    rows = rows_of(bridge, "partials/road")
    assert [row["_index"] for row in sorted(rows, key=lambda row: row["_index"])] == list(range(1, len(rows) + 1))
    assert len(rows) > waiting > 3
    used = Counter()
    for row in rows:
        used[-(-row["_tick"] // 60) * 60] += row["readings"]
        assert row["readings"] == len(json.loads(row["sites"])) and row["ticks"] == 1 and row["interval"] == 60
    assert {tick: used[tick] for tick in used if tick in bridge.answers(number)} == {
        tick: coverage[0] for tick, (_, coverage) in bridge.answers(number).items() if coverage[0]
    }


@pytest.mark.parametrize(
    "text",
    [
        "SELECT AVG(vibration) AS mean, COUNT(*) AS n FROM road [FROM NOW-59 TO NOW SLIDE 60 SEC]",
        "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM road [FROM NOW-59 TO NOW SLIDE 60 SEC] WHERE vibration > 20",
        "SELECT site, AVG(temp) AS mean FROM road [FROM NOW-59 TO NOW SLIDE 60 SEC] GROUP BY site",
    ],
)
def test_aggregate_that_was_never_merged_is_refused(bridge, text):
    begun = bridge.tick
    bridge.submit(COUNT)
    bridge.live(6)
    with pytest.raises(DiagnosticError, match="is before all that is on record"):
        bridge.submit(f"{text} SINCE {begun + 60}")


@pytest.mark.promise("archived")
def test_aggregate_never_merged_has_coverage_of_readings(bridge):
    """
    sent one by one      merged       SINCE
    ├───── 4 min ─────┼──── 4 min ────┼──────▶
    """
    raw = bridge.submit(RAW)
    bridge.live(4)
    bridge.submit(COUNT)
    bridge.durable.change("stop", raw, bridge.now_ms)
    bridge.live(1)
    merged = bridge.tick
    bridge.live(3)
    until = bridge.tick
    number = bridge.submit(f"{COUNT.replace('temp', 'vibration')} SINCE {merged - 180}")
    bridge.live(2)
    past = {tick: coverage for tick, (_, coverage) in bridge.answers(number).items() if tick < until - 60}
    assert any(used for used, _ in past.values()) and all(due == 4 for _, due in past.values())
    assert [used for tick, (used, _) in past.items() if tick > merged] == [0, 0]


def test_partials_of_more_states_answer_a_query_of_fewer(bridge):
    begun = bridge.tick
    wide = bridge.submit("SELECT VARIANCE(temp) AS v, MAX(temp) AS m FROM road [FROM NOW-59 TO NOW SLIDE 60 SEC]")
    bridge.live(6)
    until = bridge.tick
    number = bridge.submit(f"{COUNT} SINCE {begun + 60}")
    bridge.live(2)
    of_wide = bridge.answers(wide)
    past = {tick: answer for tick, answer in bridge.answers(number).items() if tick < until}
    assert len(past) > 3 and {tick: cover for tick, (_, cover) in past.items()} == {
        tick: of_wide[tick][1] for tick in past
    }
    assert any(json.loads(next(iter(rows)))[1] == cover[0] > 2 for rows, cover in past.values())


def test_partials_of_one_fold_count_for_a_slice():
    slices, folds, readings = np.array([10, 10, 10, 20, 20]), np.array([3, 5, 3, 5, 3]), np.array([1, 3, 1, 2, 2])
    assert _of_fullest(slices, folds, readings).tolist() == [False, True, False, False, True]


def test_a_roll_of_an_older_log_takes_the_same_readings(bridge):
    held = MemoryArchive()
    one = np.full(1, 20_000 * 86_400)
    batch = Batch(one, 0 * one, one, 0 * one + 1, {})
    for name in ("zebra", "partials/road", "road"):
        held.append(Extent(name, ExtentKind.PUSHED, Schema(())), batch)
    assert set(held.take_oldest(2, 1_000)) == {"road", "zebra"}
    assert set(held.take_all()) == {"partials/road"}


def test_more_partials_than_a_submission_reads_are_left_out(bridge, monkeypatch):
    """Readings in the archive answer then, as without partials."""
    monkeypatch.setattr("basestation.station.past_reader.MOST_PARTIALS", 3)
    bridge.submit(RAW)
    bridge.live(3)
    bridge.submit(COUNT)
    bridge.live(4)
    number = bridge.submit(f"{COUNT} SINCE {bridge.tick - 120}")
    bridge.live(1)
    assert bridge.answers(number) and isinstance(bridge.durable.station.past.by_query[number], ReplayedQuery)
    kinds = [kind for _, _, kind, _ in bridge.journal.events(0, 10_000)]
    assert kinds.count("partials of a past left out") == 1


def test_explain_says_that_partials_may_answer(bridge):
    bridge.live(1)
    station = bridge.durable.station
    for text, is_merged in ((COUNT, True), (f"ISTREAM({COUNT})", False), (RAW, False)):
        plan = bind_single_query(f"{text} SINCE {bridge.tick - 30}", station.world)
        assert ("readings or partials" in describe_past(plan, station.engine, station.world)["reason"]) == is_merged


@pytest.mark.promise("archived")
def test_slice_of_two_folds_and_late_partials_count_once(bridge):
    """The archive gets a part of each slice again, of another fold, and all of them with more readings, beyond the horizon."""
    begun, live = bridge.tick, bridge.submit(COUNT)
    bridge.live(6)
    until, held = bridge.tick, bridge.durable.station.archive
    [batch] = held.take_all().values()
    columns = {name: batch.columns[name] for name in batch.columns if not name.startswith("_")}
    again, late = ({**columns, "fold": columns["fold"] + more} for more in (1, 2))
    extent, third = partial_extent("road"), np.arange(len(batch)) % 3 > 0
    held.append(extent, replace(batch, columns=columns))
    held.append(extent, replace(batch, columns=again).take(third))
    late["readings"] = 9 * columns["readings"]
    held.append(extent, replace(batch, columns=late, arrival=batch.arrival + 86_401))
    number = bridge.submit(f"{COUNT} SINCE {begun + 60}")
    bridge.live(1)
    past = {tick: answer for tick, answer in bridge.answers(number).items() if tick < until}
    assert len(past) > 3 and past == {tick: bridge.answers(live)[tick] for tick in past}


@pytest.mark.promise("archived")
def test_past_window_from_before_sampling_has_live_coverage(bridge):
    """
    begin of a slice    first reading         SINCE: its first window reaches back before both
    ├───────── × ──────────┼──────────────────────────┤
    """
    long = "SELECT COUNT(*) AS n, MIN(temp) AS least FROM road [FROM NOW-359 TO NOW SLIDE 180 SEC]"
    bridge.live(1.25)
    begun, live = bridge.tick, bridge.submit(long)
    bridge.live(8)
    until, number = bridge.tick, bridge.submit(f"{long} SINCE {begun + 60}")
    bridge.live(1)
    past = {tick: answer for tick, answer in bridge.answers(number).items() if tick < until}
    assert len(past) > 1 and past == {tick: bridge.answers(live)[tick] for tick in past}
    assert len({due for _, (_, due) in past.values()}) > 1
