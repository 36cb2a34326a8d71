"""A query over the past that is resumed answers as one that begins then with its SINCE, from then on; one that replaces another as one submitted then."""

import json
from collections import Counter

import pytest

from basestation.algebra.converters import Converter
from basestation.controller.admission import bind_single_query
from basestation.station import past_size
from basestation.station.journal_file import JournalError
from basestation.station.query_changes import is_plain_stream
from gateway.diagnostics import DiagnosticError
from tests.station.test_active_hours import at
from tests.station.test_past_windows import CATALOG, COUNT, MORE_RUNS, disturb, network, short_memory
from tests.station.test_replayed_queries import (
    DIVIDED,
    HISTORY,
    RECENT,
    SINCE,
    WITHOUT,
    Everything,
    RecordedNetwork,
    current,
    differences,
    lines_of,
)
from tests.station.test_uploads import upload

__all__ = ["network", "short_memory"]
LONG = "SELECT lane, COUNT(*) AS n FROM traffic [FROM NOW-60 TO NOW SLIDE 5 SEC] GROUP BY lane SINCE {}"
"""The log keeps 20 seconds for others."""
TEXTS = [text for text in (*SINCE, *WITHOUT, *DIVIDED, LONG) if not text.endswith("SEC")]
"""Those without an end by FOR."""
COUNTERS = "STREAM(", "ROWS", "FOR (", "UNBOUNDED"
"""Parts of the texts whose answers count from the begin of the query."""


def tick_of(network):
    return network.now_ms // CATALOG.tick_ms


def pause_while_two_come(network, number):
    """Pause a query, push two tuples, restart; how many lines the query has given."""
    network.change("pause", number)
    given = len(lines_of(network, number))
    for _ in range(2):
        network.live(30)
        upload(network, [{"lane": 1}])
    network.restart()
    return given


def window_rows(network, number, after=0):
    """(tick, rows) of each first answer of a window, of the lines after so many."""
    found = [line for line in lines_of(network, number)[after:] if line["type"] == "window" and not line["revision"]]
    return [(line["tick"], line["rows"]) for line in found]


@pytest.mark.promise("history-is-live")
def test_resumed_and_replacing_queries_answer_as_a_replay(tmp_path, rng, counts, tally, monkeypatch):
    """
    since         submitted    paused or failed   resumed
    ──┼───────────────┼──────────────┼───────────────┼──────────▶
      │   past        │     live     │ other queries │  as one of `SINCE since` that is submitted now, from now on
    """
    kinds = Counter()
    least = counts(1, 20, 300)
    for run in range(least + MORE_RUNS):
        if run >= least and kinds["resumed from the archive"] and kinds["replaced from the archive"]:
            break
        monkeypatch.setattr(past_size, "SLICE_TUPLES", rng.choice([5, 50_000]))
        network = RecordedNetwork(tmp_path / str(run), CATALOG)
        begun = tick_of(network)
        network.everything = everything = Everything(monkeypatch, begun)
        network.submit("SELECT site, volt FROM field")
        for _ in range(counts(14, 20)):
            disturb(network, rng, RECENT)
        expected = Expectations(network)
        for text in rng.sample(TEXTS, 4):
            start = max(begun + 30, tick_of(network) - rng.randint(30, 60))
            number = network.submit(text.format(start))
            is_replaced = rng.random() < 0.4
            if rng.random() < 0.7:
                disturb(network, rng, RECENT)
            if is_replaced:
                successor = rng.choice(TEXTS).format(max(begun + 30, tick_of(network) - 40))
                expected.replace(number, text.format(start), successor)
            else:
                kind = rng.choice(["pause", "pause", "exceed"])
                last = tick_of(network) - 1
                network.durable.change(kind, number, network.now_ms, "too much" if kind == "exceed" else None)
                for _ in range(rng.randint(0, 5)):
                    disturb(network, rng, RECENT)
                expected.resume(number, text, start, everything, last)
        for _ in range(counts(4, 8)):
            disturb(network, rng, RECENT)
        network.live(8)
        kinds += expected.compare(everything)
        network.end()
    tally("queries that go on", kinds)
    assert kinds["resumed from the archive"] and kinds["replaced from the archive"] and kinds["with an answer"]


class Expectations:
    """The answers that a replay of everything gives for queries of a network, after they were resumed or replaced."""

    def __init__(self, network):
        self.network, self.submitted, self.checks, self.kinds = network, [], [], Counter()

    def resume(self, number, text, start, everything, last):
        """`last` is the last tick before the query was paused or failed."""
        counts = any(part in text for part in COUNTERS)
        station, before = self.network.durable.station, len(lines_of(self.network, number))
        begun, is_amid = station.world.queries[number].submitted_at, number in station.past.held
        self.network.change("resume", number)
        now = self._now()
        if is_amid:
            before = self._compare_before(number, text.format(start), begun, everything, last)
        kind = self._kind("resumed", number)
        if not self._is_cut(number, text):
            self._expect(number, text.format(start if counts else now), before, kind, first=now if counts else None)

    def replace(self, number, text, successor):
        plan = self.network.durable.station.world.queries[number].plan
        at = self.network.durable.station.world.queries[number].submitted_at
        found = self.network.durable.replace(number, successor, self.network.now_ms)
        kind = self._kind("replaced", found)
        if not self._is_cut(found, successor):
            self._expect(found, successor, 0, kind)
        if not is_plain_stream(plan) and not self._is_cut(number, text):
            self.submitted.append((number, bind_single_query(text, self.network.durable.station.world), at))
            self.checks.append((number, 0, None, self._now() - 1, "of a replaced one"))

    def compare(self, everything):
        """The kinds of queries that a replay agrees with; AssertionError where it does not."""
        replayed = everything.replay(self.submitted, self.network.durable.station.engine.clock)
        plans = {number: plan for number, plan, _ in self.submitted}
        for number, before, first, last, kind in self.checks:
            has_index = isinstance(plans[number].root, Converter)
            lines = [
                line
                for line in replayed[number]
                if (first is None or line["tick"] >= first) and (last is None or line["tick"] <= last)
            ]
            found = current(lines_of(self.network, number)[before:], has_index)
            text = self.network.query(number)["text"]
            assert differences(found, current(lines, has_index)) == [], (number, kind, text, first, last)
            self.kinds[kind] += 1
            self.kinds["with an answer"] += any(found)
        return self.kinds

    def _compare_before(self, number, text, begun, everything, last):
        """Wait for the windows of a query that was paused amid its past: each once, before any other; how many lines those are."""
        station = self.network.durable.station
        plan = bind_single_query(text, station.world)
        while number in station.past.held:
            self.network.live(1)
        lines, until = lines_of(self.network, number), self._now() - 1
        given = [line for line in lines if line["tick"] <= last]
        replayed = everything.replay([(number, plan, min(begun, until))], until)[number]
        expected = [line["tick"] for line in replayed if line["tick"] <= last and not line["revision"]]
        ticks, wait = (
            [line["tick"] for line in given if not line["revision"]],
            max(e.wait for e in CATALOG.extents.values()),
        )
        assert ticks == expected[: len(ticks)], (number, text, last)
        assert all(tick > last - wait for tick in expected[len(ticks) :]), "they had no first answer when it was paused"
        assert lines[: len(given)] == given
        self.kinds["paused amid its past"] += 1
        return len(given)

    def _expect(self, number, text, before, kind, first=None):
        plan = bind_single_query(text, self.network.durable.station.world)
        self.submitted.append((number, plan, self._now()))
        self.checks.append((number, before, first, None, kind))

    def _now(self):
        return self.network.durable.station.engine.clock + 1

    def _kind(self, what, number):
        is_archived = number in self.network.durable.station.past.by_query
        return f"{what} from the {'archive' if is_archived else 'log'}"

    def _is_cut(self, number, text):
        """Whether rows before SINCE reach as far back as the log (1.1), which is short."""
        return "ROWS" in text and number not in self.network.durable.station.past.by_query


@pytest.mark.promise("history-is-live")
def test_resumed_query_over_history_holds_the_archive(network):
    """The archive has 20 tuples when the query is paused, the log 6; two come meanwhile."""
    number = network.submit(HISTORY)
    network.live(6)
    assert {json.dumps(rows) for _, rows in window_rows(network, number)} == {"[[20]]"}
    given = pause_while_two_come(network, number)
    resumed = tick_of(network)
    network.change("resume", number)
    network.live(2)
    network.restart()
    network.live(10)
    found = window_rows(network, number, given)
    assert [rows for _, rows in found] == [[[22]]] * len(found) and len(found) >= 2
    assert resumed <= found[0][0] <= resumed + 5 and network.query(number)["state"] == "running"


@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize("begin", ["{tick}", "NOW - 45 SEC"])
def test_resumed_landmark_counts_from_its_begin(network, begin):
    """
    tuples every 6 s:   since 45 s ago: 7 │ paused, two more │ resumed: 9, not from now, nor from 45 s before now
    """
    text = f"SELECT COUNT(*) AS n FROM traffic [UNBOUNDED SLIDE 5 SEC] SINCE {begin.format(tick=tick_of(network) - 45)}"
    number = network.submit(text)
    network.live(6)
    first = window_rows(network, number)[-1][1][0][0]
    given = pause_while_two_come(network, number)
    network.change("resume", number)
    network.live(8)
    assert number in network.durable.station.past.by_query
    found = window_rows(network, number, given)
    assert first in (7, 8) and [rows for _, rows in found] == [[[first + 2]]] * len(found) and found


@pytest.mark.promise("history-is-live")
def test_resumed_stream_since_the_past_gives_late_tuples(network):
    number = network.submit("SELECT lane FROM traffic WHERE lane > 5 SINCE NOW - 45 SEC")
    network.live(2)
    network.change("pause", number)
    network.live(5)
    network.change("resume", number)
    late = tick_of(network) - 10
    upload(network, [{"lane": 7, "_tick": late}])
    network.live(5)
    assert [(line["tick"], line["row"]) for line in lines_of(network, number)] == [(late, [7])]


@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize("text", [HISTORY, f"{COUNT} SINCE {{}}", f"ISTREAM({COUNT}) SINCE {{}}"])
def test_replacement_that_reads_the_past_begins_there(network, text):
    """The old query answers the windows up to the tick of the replacement; the new one also those since its SINCE."""
    begin = tick_of(network) - 45
    successor = network.durable.replace(1, text.format(begin), network.now_ms, name="it")
    replaced = network.durable.station.engine.clock
    assert successor in network.durable.station.past.by_query
    network.restart()
    network.live(20)
    assert max(line["tick"] for line in lines_of(network, 1)) <= replaced
    ticks = [line["tick"] for line in lines_of(network, successor) if line["type"] != "epoch"]
    assert min(ticks) in (range(replaced, replaced + 6) if text is HISTORY else range(begin, begin + 6))
    assert max(ticks) > replaced and network.query(1)["reason"] == f"replaced by query {successor}"
    assert network.durable.station.world.named("it").number == successor


def test_refused_replacement_that_reads_the_past_changes_nothing(network, monkeypatch):
    monkeypatch.setattr("basestation.station.past_reader.MOST_RECALLED", 0)
    with pytest.raises(DiagnosticError, match="archived tuples"):
        network.durable.replace(1, HISTORY, network.now_ms)
    network.live(6)
    assert network.query(1)["state"] == "running" and list(network.durable.station.world.queries) == [1]


@pytest.mark.promise("history-is-live")
def test_window_longer_than_the_log_is_answered_since_the_past(network):
    """
    begin, then a tuple every 6 s    + 75 s: the first window of 60 s    + 120 s: now; the log has 20 s
    """
    begin = tick_of(network) - 120
    number = network.submit(LONG.format(begin + 75))
    assert number in network.durable.station.past.by_query
    network.restart()
    network.live(2)
    found = window_rows(network, number)[:8]
    assert [tick for tick, _ in found] == list(range(begin + 75, begin + 115, 5))
    pushed = [begin + 6 * at for at in range(1, 21)]
    assert [rows for _, rows in found] == [[[1, sum(end - 60 <= tick <= end for tick in pushed)]] for end, _ in found]


@pytest.mark.promise("history-is-live")
def test_query_paused_amid_its_past_is_resumed_with_long_windows(network, monkeypatch):
    """Its past is answered up to the pause, and then from the resume on, in order."""
    always = network.submit("SELECT COUNT(*) AS n FROM traffic [FROM NOW-60 TO NOW SLIDE 5 SEC]")
    network.live(100)
    text = f"SELECT COUNT(*) AS n FROM traffic [FROM NOW-60 TO NOW SLIDE 5 SEC] SINCE {tick_of(network) - 90}"
    monkeypatch.setattr(past_size, "SLICE_WINDOWS", 1)
    number = network.submit(text)
    network.change("stop", always)
    assert number in network.durable.station.past.held
    network.change("pause", number)
    paused = tick_of(network)
    network.durable.prune(network.now_ms)
    network.change("resume", number)
    network.live(30)
    ticks = [tick for tick, _ in window_rows(network, number)]
    assert ticks == sorted(set(ticks)) and ticks[0] <= paused - 85 and ticks[-1] > paused


@pytest.mark.promise("history-is-live")
def test_query_over_history_rests_outside_its_hours(network):
    """
    minutes   0     1        2        3        4
    hours           ├─ active ────────┤
    """
    minute = 60_000
    begin = network.now_ms // minute * minute + 2 * minute
    active = f"{at(begin)}-{at(begin + minute)}"
    number = network.durable.submit(HISTORY, network.now_ms, active=active)
    assert network.query(number)["state"] == "paused"
    upload(network, [{"lane": 1}])
    while network.now_ms < begin - minute // 2:
        network.live(10)
    network.restart()
    network.live(50)
    assert network.query(number)["state"] == "running"
    network.restart()
    network.live(60)
    assert network.query(number)["state"] == "paused" and not network.durable.station.past.by_query
    found = window_rows(network, number)
    assert {json.dumps(rows) for _, rows in found} == {"[[21]]"} and len(found) > 8
    assert all(begin <= tick * 1_000 < begin + minute for tick, _ in found)


def test_queries_whose_hours_begin_in_one_minute(network):
    """Each reads its past from the archive, which takes a step."""
    minute = 60_000
    begin = network.now_ms // minute * minute + 2 * minute
    active = f"{at(begin)}-{at(begin + 60 * minute)}"
    numbers = [network.durable.submit(HISTORY, network.now_ms, active=active) for _ in range(3)]
    upload(network, [{"lane": 1}])
    while network.now_ms < begin + minute // 2:
        network.live(10)
    assert [network.query(number)["state"] for number in numbers] == ["running"] * 3
    found = [window_rows(network, number) for number in numbers]
    assert found[0] and found == [found[0]] * 3
    assert all(network.events(number).count("query running") == 1 for number in numbers)


@pytest.mark.parametrize("what", ["too much", "archive takes no readings"])
def test_query_whose_past_cannot_be_read_at_its_hours(network, monkeypatch, what):
    minute = 60_000
    begin = network.now_ms // minute * minute + 2 * minute
    number = network.durable.submit(HISTORY, network.now_ms, active=f"{at(begin)}-{at(begin + 60 * minute)}")

    def fail(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        if what == "too much":
            broken.setattr("basestation.station.past_reader.MOST_RECALLED", 0)
        else:
            upload(network, [{"lane": 1}])
            broken.setattr(network.archive, "stage", fail)
        while network.now_ms < begin + minute // 2:
            network.live(10)
        found = network.query(number)
    if what == "too much":
        assert found["state"] == "failed" and "archived tuples" in found["reason"]
        network.restart()
        assert network.query(number)["state"] == "failed"
        network.change("resume", number)
    else:
        assert (found["state"], found["reason"]) == ("paused", "outside its active hours")
        network.live(40)
    network.live(10)
    assert network.query(number)["state"] == "running" and window_rows(network, number)


def test_query_whose_begin_is_lost_is_not_resumed(network):
    """An index counts from the first tuple of the extent, which only the log has."""
    tick = tick_of(network)
    number = network.submit(
        f"SELECT MAX(i) AS m FROM (SELECT index AS i FROM traffic) [FROM NOW-1 TO NOW SLIDE 1 ROWS] SINCE {tick - 5}"
    )
    network.change("pause", number)
    network.live(60)
    with pytest.raises(DiagnosticError, match=f"counts from tick {tick - 5}, which neither the log nor the archive"):
        network.change("resume", number)
    assert network.query(number)["state"] == "paused"


def test_query_is_not_resumed_while_readings_cannot_be_archived(network, monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    number = network.submit(HISTORY)
    network.change("pause", number)
    upload(network, [{"lane": 1}])
    with monkeypatch.context() as broken:
        broken.setattr(network.archive, "stage", full)
        with pytest.raises(JournalError, match="readings cannot be moved into the archive now"):
            network.change("resume", number)
    assert network.query(number)["state"] == "paused"
    network.change("resume", number)
    network.live(6)
    assert [rows for _, rows in window_rows(network, number)] == [[[21]]]
