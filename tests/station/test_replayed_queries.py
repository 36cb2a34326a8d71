"""Queries from the past that have no seam (rows, converters, loops, streams, HISTORY) answer as one replay of everything that came."""

import json
from collections import Counter

import pytest

from acquisition.sources.pushed_tuples import read_tuples
from basestation.algebra.converters import Converter
from basestation.controller.admission import bind_single_query
from basestation.controller.requirements import split_plan
from basestation.controller.world import World
from basestation.execution.engine import Engine
from basestation.execution.past_windows import PastRange, PastWindows, from_seam
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.rewriter import rewrite
from basestation.results.feed import Feed
from basestation.results.schema import schema_of
from basestation.results.wire import numbered_lines
from basestation.station import past_size
from basestation.station.journal import Command, Upload
from basestation.station.past_answers import PastAnswers
from basestation.station.past_reader import MOST_QUERIES
from basestation.station.service import Station
from basestation.station.uploads import LOAD, encode_tuples
from basestation.updates.update import split_by_query
from gateway.diagnostics import DiagnosticError
from innet.placement.placement import conditions
from simulator.scenario import read_scenario
from tests.simulation.scenario_judge import FOLDER
from tests.station.past_queries import PastQueryMaker
from tests.station.small_network import BEGIN_MS
from tests.station.test_archived_corrections import STATEMENTS
from tests.station.test_past_windows import (
    CATALOG,
    COUNT,
    MORE_RUNS,
    QUERIES,
    SHORT,
    TRAFFIC,
    PastNetwork,
    disturb,
    network,
    short_memory,
)
from tests.station.test_uploads import upload

__all__ = ["network", "short_memory"]
JOIN = (
    "SELECT t.lane, f.volt FROM traffic [FROM NOW-4 TO NOW SLIDE 10 SEC] t, field [FROM NOW-10 TO NOW SLIDE 10 SEC] f "
    "WHERE t.lane = f.site"
)
SINCE = (
    "ISTREAM(SELECT lane, COUNT(*) AS n FROM traffic [FROM NOW-9 TO NOW SLIDE 5 SEC] GROUP BY lane) SINCE {}",
    "DSTREAM(SELECT site, volt FROM field [FROM NOW-20 TO NOW SLIDE 10 SEC]) SINCE {}",
    f"RSTREAM({JOIN}) SINCE {{}}",
    "SELECT SUM(lane) AS s, COUNT(*) AS n FROM traffic [FROM NOW-2 TO NOW SLIDE 3 ROWS] SINCE {}",
    "SELECT site, MAX(volt) AS v FROM field [FROM NOW-1 TO NOW SLIDE 1 ROWS] GROUP BY site SINCE {}",
    "SELECT COUNT(*) AS n FROM traffic FOR (t = ST; t < ST + 200; t += 15) {{ WindowIs(traffic, t - 10, t); }} SINCE {}",
    "SELECT t.lane, f.volt FROM traffic t, field f FOR (t = ST - 5; t < ST + 90; t += 10) "
    "{{ WindowIs(t, t - 4, t); WindowIs(f, t - 10, t); }} SINCE {}",
    "SELECT COUNT(*) AS n FROM traffic FOR (t = ST; t > ST - 30; t -= 5) {{ WindowIs(traffic, t - 5, t); }} SINCE {}",
    "SELECT SUM(volt) AS v, COUNT(*) AS n FROM field [UNBOUNDED] SINCE {}",
    "SELECT site, volt FROM field WHERE volt > 0 SINCE {}",
    "SELECT kind, lane FROM traffic WHERE lane > 1 SINCE {} FOR 70 SEC",
    "SELECT COUNT(*) AS n, MAX(_arrival - tick) AS d FROM traffic.HISTORY [SCAN 10 SEC] SINCE {}",
)
WITHOUT = (
    "SELECT site, COUNT(*) AS n, SUM(volt) AS v FROM field.HISTORY [SCAN 10 SEC] GROUP BY site",
    "SELECT COUNT(*) AS n FROM traffic [FROM NOW-9 TO NOW SLIDE 5 SEC] t, traffic.HISTORY [SCAN 5 SEC] h WHERE t.lane = h.lane",
)
DIVIDED = tuple(f"{text} SINCE {{}}" for text in QUERIES)
MIDNIGHT_MS = 1_763_510_400_000
"""Most runs begin shortly before it, so that the archive has files of two days."""

RECENT = tuple(
    text if text.startswith("INSERT") else f"{text}{' AND' if 'WHERE' in text else ' WHERE'} tick > {{recent}}"
    for text in STATEMENTS
)
"""Corrections of tuples that the station still has; it knows no older ones."""


class Everything:
    """All that a station takes, in order, and the replay of it. A restart, which takes the journal again, is not recorded."""

    def __init__(self, monkeypatch, begun):
        self.begun, self.taken, self.is_restarting = begun, [], False
        deliver, correct = PastAnswers.deliver, Station.correct

        def record_delivery(past, extent, batch):
            [tick] = {int(at) for at in batch.arrival} or {0}
            self.record(tick, lambda engine: engine.deliver(extent, batch))
            deliver(past, extent, batch)

        def record_correction(station, text, now_ms):
            found = correct(station, text, now_ms)
            for each in found:
                self.record(station._tick, lambda engine, each=each: engine.correct(each))
            return found

        monkeypatch.setattr(PastAnswers, "deliver", record_delivery)
        monkeypatch.setattr(Station, "correct", record_correction)

    def record(self, tick, act):
        if not self.is_restarting:
            self.taken.append((tick, act))

    def replay(self, submitted, until):
        """The lines of queries, each (number, plan, clock tick of its submission), in an engine that forgets nothing."""
        engine, feed = Engine(CATALOG, begun=self.begun), Feed()
        feed.retain_all()
        for number, plan, _ in submitted:
            engine.announce(number, plan)
            feed.open(schema_of(number, plan))
        engine._tidy = list  # no updates
        acts = {}
        for tick, act in self.taken:
            acts.setdefault(tick, []).append(act)
        for tick in range(self.begun, until + 1):
            for number, plan, at in submitted:
                if at == tick:
                    engine.add(number, plan)
            for act in acts.get(tick, ()):
                act(engine)
            feed.publish(list(split_by_query(engine.on_clock(tick))))
        plans = {number: plan for number, plan, _ in submitted}
        found = {number: [] for number in plans}
        for number, each in feed.drain():
            schema = schema_of(number, plans[number])
            found[number] += [line for one in each for line in numbered_lines(one, schema, CATALOG.tick_ms)]
        return found


def current(lines, has_index):
    """The current answer: rows and coverage of each window, tuples, and coverage of epochs. Each window has one first answer.

    The index of a plain stream counts what came, which is more in a replay from the begin of all (semantics 1.7).
    """
    windows, coverage, tuples, first = {}, {}, Counter(), Counter()
    for line in lines:
        if line["type"] == "tuple":
            tuples[line["tick"], line["index"] if has_index else None, json.dumps(line["row"])] += line["weight"]
            continue
        assert line["type"] in ("window", "epoch"), line
        key = line["type"], line["tick"], line.get("n"), json.dumps(line.get("t"))
        coverage[key] = line.get("coverage", coverage.get(key))
        if line["type"] == "window":
            first[key] += not line["revision"]
            rows = windows.setdefault(key, Counter())
            rows.update(map(json.dumps, [*line.get("rows", ()), *line.get("added", ())]))
            rows.subtract(map(json.dumps, line.get("removed", ())))
    assert set(first.values()) <= {1}
    assert min(tuples.values(), default=0) >= 0
    return {key: +rows for key, rows in windows.items()}, coverage, +tuples


def differences(found, expected):
    """The differences, part by part: (key, found, expected)."""
    return [
        (key, of.get(key), other.get(key))
        for of, other in zip(found, expected, strict=True)
        for key in {**of, **other}
        if of.get(key) != other.get(key)
    ]


def lines_of(network, number):
    return [json.loads(line) for line in network.answers(number).splitlines()]


class RecordedNetwork(PastNetwork):
    """Whose restarts are not recorded."""

    everything = None

    def start(self):
        if self.everything is not None:
            self.everything.is_restarting = True
        super().start()
        if self.everything is not None:
            self.everything.is_restarting = False


@pytest.mark.promise("history-is-live")
def test_replayed_query_answers_as_one_replay_of_everything(tmp_path, rng, counts, tally, monkeypatch):
    kinds = Counter()
    least = counts(1, 20, 500)
    for run in range(least + MORE_RUNS):
        if run >= least and kinds["from the archive"] and kinds["with an answer"]:
            break
        monkeypatch.setattr(past_size, "SLICE_TUPLES", rng.choice([5, 12, 50_000]))
        begin_ms = BEGIN_MS if rng.random() < 0.3 else MIDNIGHT_MS - rng.randint(10, 120) * 1_000
        network = RecordedNetwork(tmp_path / str(run), CATALOG, begin_ms)
        begun = network.now_ms // CATALOG.tick_ms
        network.everything = everything = Everything(monkeypatch, begun)
        network.submit("SELECT site, volt FROM field")
        for _ in range(counts(14, 16)):
            disturb(network, rng, RECENT)
        submitted, texts, maker = [], {}, PastQueryMaker(rng)
        for _ in range(counts(10, 30)):
            now, first = (
                network.now_ms // CATALOG.tick_ms,
                begun + 60,
            )  # windows and loops reach back to no tick before all
            if now <= first or rng.random() < 0.5 or network.durable.station.past_count >= MOST_QUERIES:
                disturb(network, rng, RECENT)
                continue
            since = max(first, now - rng.randint(10, 80))
            listed = rng.choice([*SINCE, *WITHOUT, *DIVIDED]).format(since)
            text = maker.query(since, now) if rng.random() < 0.6 else listed
            try:
                plan = bind_single_query(text, network.durable.station.world)
                number = network.submit(text)
            except DiagnosticError as why:  # FOR is over before now
                assert "the first possible tick" in str(why) and " FOR " in text, text
                continue
            is_replayed = number in network.durable.station.past.by_query
            kinds["from the archive" if is_replayed else "from the log"] += 1
            kinds["divided at a seam"] += isinstance(network.durable.station.past.by_query.get(number), PastWindows)
            texts[number] = text
            if "ROWS" in text and not is_replayed:
                continue  # rows before SINCE reach as far back as the log (1.1), and this log is short
            submitted.append((number, plan, network.durable.station.engine.clock + 1))
        for _ in range(counts(5, 8)):
            disturb(network, rng, RECENT)
        network.live(8)
        replayed = everything.replay(submitted, network.durable.station.engine.clock)
        for number, plan, _ in submitted:
            has_index = isinstance(plan.root, Converter)
            found = current(lines_of(network, number), has_index)
            assert differences(found, current(replayed[number], has_index)) == [], (number, texts[number])
            kinds["with an answer"] += any(found)
        network.end()
    tally("replayed queries", kinds)
    assert kinds["from the archive"] and kinds["with an answer"]


def test_question_about_history_reads_the_archive_once(network):
    """A one-off query over HISTORY holds tuples that the log has forgotten, and no engine stays for it."""
    number = network.submit("SELECT COUNT(*) AS n FROM traffic.HISTORY")
    assert network.durable.station.engine.first_tick(network.durable.station.find_past(COUNT)[0]) > BEGIN_MS // 1_000
    network.live(6)
    assert [line["rows"] for line in lines_of(network, number)] == [[[20]]]
    assert not network.durable.station.past.by_query


HISTORY = "SELECT COUNT(*) AS n FROM traffic.HISTORY [SCAN 5 SEC]"


@pytest.mark.parametrize("kind", ["stop", "exceed", "drain", "pause", "replace"])
def test_replayed_query_ends_as_any_other(network, kind):
    tick = network.now_ms // CATALOG.tick_ms
    number = network.submit(f"ISTREAM({COUNT}) SINCE {tick - 45}")
    network.live(2)
    if kind == "exceed":
        network.durable.change(kind, number, network.now_ms, "too much")
    elif kind == "replace":
        network.durable.replace(number, f"ISTREAM({COUNT})", network.now_ms)
    else:
        network.change(kind, number)
    given, ended = lines_of(network, number), network.now_ms // CATALOG.tick_ms
    upload(network, [{"lane": 1}])
    network.live(60)
    later = lines_of(network, number)[len(given) :]
    assert given and all(line["tick"] <= ended for line in later)
    assert not network.durable.station.past.by_query


def test_version_of_a_table_reaches_a_replayed_query(tmp_path):
    catalog = read_schema(f"{SHORT}{TRAFFIC}names: stored (lane:integer, name:string)\n")
    network = PastNetwork(tmp_path, catalog)
    load(network, [{"lane": 1, "name": "old"}])
    network.submit("SELECT lane FROM traffic")
    for _ in range(20):
        network.live(6)
        upload(network, [{"lane": 1}])
    text = "ISTREAM(SELECT n.name, COUNT(*) AS c FROM traffic [FROM NOW-4 TO NOW SLIDE 5 SEC] t, names [SCAN 5 SEC] n"
    number = network.submit(f"{text} WHERE t.lane = n.lane GROUP BY n.name) SINCE NOW - 60 SEC")
    assert number in network.durable.station.past.by_query
    load(network, [{"lane": 1, "name": "new"}])
    network.live(6)
    upload(network, [{"lane": 1}])
    network.live(12)
    names = [line["row"][0] for line in lines_of(network, number) if line["type"] == "tuple"]
    assert set(names) == {"old", "new"} and names == sorted(names, reverse=True)
    network.end()


def test_table_declared_after_a_replayed_query_can_be_loaded(network):
    number = network.submit(f"ISTREAM({COUNT}) SINCE NOW - 45 SEC")
    assert number in network.durable.station.past.by_query
    text = "names: stored (lane:integer, name:string)"
    network.durable.take_data(Command("declare", network.now_ms, text), text)
    load(network, [{"lane": 1, "name": "new"}])
    reader = network.submit("SELECT n.name FROM names [SCAN 5 SEC] n")
    given = len(lines_of(network, number))
    network.live(60)
    assert [["new"]] in [line["rows"] for line in lines_of(network, reader)]
    assert any(line["type"] == "tuple" for line in lines_of(network, number)[given:])


def load(network, rows):
    extent = network.durable.station.world.catalog.extents["names"]
    tuples = read_tuples(json.dumps(rows).encode(), "json", extent, 1_000)
    network.durable.take_data(Upload(LOAD, network.now_ms, "names", encode_tuples(tuples)), str(rows))


@pytest.mark.promise("placement")
def test_motes_neither_fold_nor_filter_for_a_replayed_query():
    hall = read_scenario(FOLDER / "calm.toml").deployment
    catalog = read_deployed_catalog(hall)
    world = World.initial(catalog, hall)
    [plan] = bind_text(
        "ISTREAM(SELECT AVG(temp) AS m FROM hall [FROM NOW-60 TO NOW SLIDE 1 MIN] WHERE temp > 3)", catalog
    )
    found = split_plan(plan, rewrite(plan)[0].root, world)
    assert found.fold_candidates or any(conditions(each) for each in found.readings)
    past = PastRange(0, 100, 900, (), is_replayed=True)
    whole = from_seam(plan, past)
    found = split_plan(whole, rewrite(whole)[0].root, world)
    assert not found.fold_candidates and found.readings and not any(conditions(each) for each in found.readings)
