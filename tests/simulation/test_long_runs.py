"""Long runs: queries that come and go, and weeks in which memory must not grow."""

import ast
import gc
import pickle
import re
import tracemalloc
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median
from types import SimpleNamespace

import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.results.feed import Feed
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.trials import DiscardingArchive
from simulator.scenario import ScenarioQuery, read_scenario
from simulator.trace import Event as TraceEvent
from simulator.trace import Trace
from tests.simulation.answer_comparison import difference, now_of, said_by, said_of
from tests.simulation.expected_energy import expected as expected_joules
from tests.simulation.reading_accounts import hold
from tests.simulation.scenario_judge import FOLDER, delivered, heard, judge, run_scenario

DETAIL = re.compile(r"(\w+)=(\(.*?\)|\S+)")
SPANS = 6
"""In so many, all as long, weeks are lived."""
COMING = (
    "SELECT site, supply FROM hall [NOW]",
    "SELECT MAX(temp) AS most FROM hall [FROM NOW-20 TO NOW SLIDE 30 SEC]",
    "SELECT AVG(supply) AS mean FROM hall [FROM NOW-10 TO NOW SLIDE 20 SEC] WHERE temp > 19",
)


@pytest.mark.promise("queries-apart")
@pytest.mark.timeout(1_800)
def test_query_cycling_each_minute_disturbs_no_other(counts):
    minutes = counts(8, 1_440)
    scenario = read_scenario(FOLDER / "queries_come_and_go.toml")
    passing = tuple(
        ScenarioQuery(
            f"passing {minute}", COMING[minute % len(COMING)], minute * 60_000 + 5_000, minute * 60_000 + 50_000
        )
        for minute in range(minutes)
    )
    bed = run_scenario(replace(scenario, queries=(*scenario.queries, *passing)), minutes * 60)
    assert bed.refused == {}
    assert {bed.station.world.queries[bed.numbers[asked.name]].state for asked in passing} == {QueryState.STOPPED}
    assert set(bed.station.world.live) == {
        bed.numbers[asked.name] for asked in scenario.queries
    }  # the queries that steps look at
    # Each that comes wants more of the motes, and each that goes leaves less; no tick is missed for it, or sampled twice.
    assert len(bed.earlier) > minutes
    produced = [(e.mote, e["tick"]) for e in bed.trace.of("produced")]
    first = min(tick for _, tick in produced)
    assert sorted(produced) == [(mote, tick) for mote in range(1, 9) for tick in range(first, minutes * 60, 10)]
    # Answers and coverage, of those that stay and of those that pass.
    assert judge(bed, "now") == 6 * minutes
    assert judge(bed, "minute") == minutes
    for minute, trace in enumerate(_cut(bed.trace, minutes)):
        asked, part = passing[minute], SimpleNamespace(**{**vars(bed), "trace": trace})
        got = said_by(bed, asked.name)
        said = {tick for _, (tick, *_) in got}
        expected = _said_around(minute, bed, heard(part, asked.name), asked.text)
        assert (
            difference({key: what for key, what in expected.items() if min(said) <= key[1][0] <= max(said)}, got)
            is None
        )
    # The ledger, the motes' own counts, and what they have used.
    ended = [arrival for arrival, _ in delivered(bed).values() if arrival <= bed.station.engine.clock]
    assert bed.station.engine.ledger()["hall"]["received"] == len(ended)
    assert hold(bed, {("hall", mote): range(0, minutes * 60, 10) for mote in range(1, 9)})[1] == 48 * minutes
    counted = sum((reconciler.event_counts for reconciler in bed.station.reconcilers.by_mote.values()), Counter())
    assert 0.99 * len(produced) - 48 <= counted["sampled"] <= len(produced)  # what the last minute counts is under way
    assert bed.spent() == pytest.approx(expected_joules(bed, minutes * 60_000), rel=1e-9)


def _cut(trace, minutes):
    """For each minute what happened in it, before it, and behind it."""
    parts = [Trace() for _ in range(minutes)]
    for event in trace.events:
        minute = event.time // 60_000_000
        for near in range(max(minute - 1, 0), min(minute + 2, minutes)):
            parts[near].events.append(event)
    return parts


def _said_around(minute, bed, inputs, text):
    """The answers of a replay that begins a minute before and ends two after: an hour is as any other hour."""
    base = 60 * max(minute - 1, 0)
    moved = {
        name: [{**row, "_tick": row["_tick"] - base, "_arrival": row["_arrival"] - base} for row in rows]
        for name, rows in inputs.items()
    }
    clock = min(bed.station.engine.clock - base, 180)
    around = SimpleNamespace(catalog=bed.catalog, station=SimpleNamespace(engine=SimpleNamespace(clock=clock)))
    return {(what, (tick + base, *n)): said for (what, (tick, *n)), said in said_of(around, moved, text).items()}


@pytest.mark.promise("bounded-memory", "ledger")
@pytest.mark.timeout(1_800)
def test_weeks_go_by_and_memory_does_not_grow(counts, tmp_path):
    days = counts(2, 30)
    with (tmp_path / "trace").open("w+") as lines, (tmp_path / "answers").open("w+b") as updates:
        bed = EventTestbed(read_scenario(FOLDER / "thirty_days.toml"), 1, lines.write, archive=DiscardingArchive())
        bed.station.feed = Feed(100)  # which is full after a few hours, not after a month
        held = _lived(bed, days, updates)
        lines.seek(0)
        bed.trace.events = [_event(line) for line in lines]
        updates.seek(0)
        said = _loaded(updates)
    # A leak grows all the time. One block of 2 MB comes once in a process of tests, sooner or later, and in no other
    # (taken to be Python's table of interned strings), so of all spans the middle one counts, in a third of the time.
    grown = median(after - before for before, after in pairwise(held))
    assert len(held) == SPANS and grown * SPANS / 3 < held[SPANS // 2] * 0.1 + 200_000
    for name, number in bed.numbers.items():
        asked = next(asked for asked in bed.scenario.queries if asked.name == name)
        got = now_of(bed.station.feed.schema(number), said[name])
        assert difference(said_of(bed, heard(bed, name), asked.text), got) is None
        windows = [
            used / due for (kind, _), told in got.items() if kind == "coverage of" for used, due in told.values()
        ]
        assert len(windows) >= days * {"now": 96, "hour": 24}[name] - 2 and fmean(windows) >= 0.95
    ended = [arrival for arrival, _ in delivered(bed).values() if arrival <= bed.station.engine.clock]
    assert bed.station.engine.ledger()["hall"]["received"] == len(ended) >= 0.95 * bed.tally.produced.total()
    assert bed.tally.produced.total() >= 0.97 * 8 * 96 * days
    told, _ = hold(bed, {("hall", mote): range(0, 86_400 * days, 900) for mote in range(1, 9)})
    # Of what motes' counters are silent about is as much as they do not tell yet, and as they lose when they reboot.
    assert sum(sums["not known"] for sums in told.values()) <= 0.1 * 8 * 96 * days
    assert bed.spent() == pytest.approx(expected_joules(bed, days * 86_400_000), rel=1e-9)


def _lived(bed, days, updates):
    """The bytes in use after each span; trace lines are written to a file."""
    read, held = {}, []

    def listen(_):
        for name, number in bed.numbers.items():
            for numbered in bed.station.feed.read(number, read.get(name, 0)):
                pickle.dump((name, numbered.update), updates)
                read[name] = numbered.number - 1 + (len(numbered.update) if hasattr(numbered.update, "__len__") else 1)

    tracemalloc.start()
    try:
        for span in range(1, SPANS + 1):
            bed.run_until(span * days * 86_400_000 // SPANS, listen)
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return held


def _loaded(updates):
    found = {}
    while True:
        try:
            name, update = pickle.load(updates)
        except EOFError:
            return found
        found.setdefault(name, []).append(update)


def _event(line):
    """A line of a trace as the event that it was."""
    ms, mote, what, *rest = line.rstrip("\n").lstrip().split(" ", 3)
    details = [(key, _value(text)) for key, text in DETAIL.findall(rest[0])] if rest else []
    return TraceEvent(round(float(ms) * 1_000), int(mote.removeprefix("mote=")), what, tuple(details))


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
