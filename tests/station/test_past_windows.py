"""A query with SINCE answers windows from the archive and then live ones: as a query that ran all the time, each window once."""

import json
import sqlite3
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest

from basestation.controller.admission import bind_single_query
from basestation.downlink import plan_query
from basestation.execution.engine import Engine
from basestation.execution.graph import OperatorGraph
from basestation.execution.operator_builder import OperatorBuilder
from basestation.execution.past_windows import PastWindows
from basestation.planner.catalog import read_schema
from basestation.station import past_size
from basestation.station.journal import Command
from basestation.station.journal_file import JournalError
from basestation.station.limit_enforcer import LimitEnforcer
from basestation.station.operational_events import PAST_ANSWERED
from basestation.station.past_reader import PastReader
from basestation.station.query_limits import QueryLimitError, QueryLimits
from basestation.station.text_description import check_start, describe_past, explain_text
from gateway.diagnostics import DiagnosticError
from tests.station.small_network import SCHEMA
from tests.station.test_archived_corrections import STATEMENTS, ArchivedNetwork
from tests.station.test_uploads import upload

SHORT = SCHEMA.replace("late revise by 1 hour", "late revise by 20 sec")
TRAFFIC = "traffic: pushed (lane:integer, kind:string) wait 2 sec late revise by 20 sec ahead 5 sec\n"
CATALOG = read_schema(SHORT + TRAFFIC)
QUERIES = (
    "SELECT lane, COUNT(*) AS n FROM traffic [FROM NOW-9 TO NOW SLIDE 5 SEC] GROUP BY lane",
    "SELECT site, COUNT(*) AS n, SUM(volt) AS v FROM field [FROM NOW-20 TO NOW SLIDE 10 SEC] WHERE volt > 0 GROUP BY site",
    "SELECT t.lane, f.volt FROM traffic [FROM NOW-4 TO NOW SLIDE 10 SEC] t, field [FROM NOW-10 TO NOW SLIDE 10 SEC] f WHERE t.lane = f.site",
)


class PastNetwork(ArchivedNetwork):
    """Whose queries may begin before what the engine keeps."""

    def start(self):
        super().start()
        self.durable.read_past = PastReader(self.durable, self.archive)


@pytest.fixture(autouse=True)
def short_memory(monkeypatch):
    """The log of an extent keeps its horizon alone."""
    monkeypatch.setattr("basestation.execution.ingest.intake.KEPT_MS", 20_000)
    begun, live, rules, _, timer = Engine.__init__.__defaults__
    monkeypatch.setattr(Engine.__init__, "__defaults__", (begun, live, rules, 4, timer))


def answers(network, number):
    """By window its current rows and coverage; each window has one answer with revision 0, in order of ticks."""
    found, coverage, order = {}, {}, []
    for line in map(json.loads, network.answers(number).splitlines()):
        key = line["tick"]
        if not line.get("revision"):
            order.append(key)
        rows = found.setdefault(key, Counter())
        rows.update(map(json.dumps, [*line.get("rows", ()), *line.get("added", ())]))
        rows.subtract(map(json.dumps, line.get("removed", ())))
        coverage[key] = line.get("coverage", coverage.get(key))
    assert order == sorted(set(order))
    return {key: (+rows, coverage[key]) for key, rows in found.items()}


def disturb(network, rng, statements=STATEMENTS):
    """Some life: readings, pushed tuples that are late or early, corrections, rolls, merges and restarts."""
    network.live(rng.choice([1, 3, 6]))
    tick = network.now_ms // CATALOG.tick_ms
    rows = [{"lane": rng.randint(1, 4)} for _ in range(rng.randint(1, 3))]
    upload(network, [*rows, {"lane": 3, "_tick": tick - rng.choice([0, 1, 8, 15, 40])}])
    if rng.random() < 0.5:
        text = rng.choice(statements).format(tick=(tick - rng.randint(10, 40)) // 10 * 10, recent=tick - 18)
        network.durable.take_data(Command("correct", network.now_ms, text), text)
    for chance, act in ((0.2, network.roll), (0.15, network.compact), (0.2, network.restart)):
        if rng.random() < chance:
            act()
    if rng.random() < 0.2:
        network.durable.snapshot(network.now_ms)


MORE_RUNS = 9
"""Runs beyond the count, until the archive answered a query: the log answers all of some runs."""


@pytest.mark.promise("history-is-live")
def test_query_since_the_past_answers_as_if_it_had_always_run(tmp_path, rng, counts, tally, monkeypatch):
    kinds = Counter()
    least = counts(1, 20, 500)
    for run in range(least + MORE_RUNS):
        if run >= least and kinds["from the archive"]:
            break
        monkeypatch.setattr(past_size, "SLICE_TUPLES", rng.choice([5, 12, 50_000]))
        network = PastNetwork(tmp_path / str(run), CATALOG)
        begun = network.now_ms // CATALOG.tick_ms
        always = [network.submit(text) for text in QUERIES]
        for _ in range(30):
            disturb(network, rng)
        later = []
        for at, text in enumerate(QUERIES):
            until = begun + 60 if at == 0 else network.now_ms // CATALOG.tick_ms
            since = rng.randint(begun + 20, until)
            later.append((network.submit(f"{text} SINCE {since}"), always[at], since))
            kinds[
                "from the archive" if network.durable.station.past.by_query.get(later[-1][0]) else "from the log"
            ] += 1
            disturb(network, rng)
        for _ in range(8):
            disturb(network, rng)
        network.live(30)
        for number, reference, since in later:
            expected = {key: found for key, found in answers(network, reference).items() if key >= since}
            assert answers(network, number) == expected
        assert not network.durable.station.past.by_query
        network.end()
    tally("queries since the past", kinds)
    assert kinds["from the archive"]


@pytest.fixture
def slices(monkeypatch):
    """The past of a query is answered in many slices."""
    monkeypatch.setattr(past_size, "SLICE_WINDOWS", 2)


@pytest.mark.promise("history-is-live")
def test_long_past_is_answered_in_slices_before_live_windows(network, slices):
    number = network.submit(since(network, 45))
    begun = network.now_ms // CATALOG.tick_ms
    first = len(network.answers(number).splitlines())
    assert number in network.durable.station.past.held and 0 < first < 4
    live = network.submit(QUERIES[0])
    network.live(1)
    upload(network, [{"lane": 1, "_tick": begun - 15}])  # late for a past window
    network.durable.take_data(Command("correct", network.now_ms, LATE), LATE)
    network.restart()
    network.live(2)
    assert network.answers(live) and number in network.durable.station.past.held
    network.live(30)
    assert number not in network.durable.station.past.held
    answers(network, number)  # in order, each once
    events = [json.loads(body) for _, _, kind, body in network.journal.events(0, 10_000) if kind == PAST_ANSWERED]
    told = [int(each["why"].split()[0]) for each in events if each["query"] == number]
    assert told == sorted(set(told)) and told[-1] == 100 and len(told) > 2


@pytest.mark.parametrize(
    ("text", "source", "says"),
    [
        (f"{QUERIES[0]} SINCE NOW - 60 SEC", "archive", "slice by slice"),
        (f"ISTREAM({QUERIES[0]}) SINCE NOW - 60 SEC", "archive", "an engine of its own"),
        ("SELECT lane FROM traffic.HISTORY [SCAN 5 SEC]", "archive", "reads HISTORY"),
        (f"{QUERIES[0]} SINCE NOW - 1 SEC", "log", "it has every tuple"),
        ("SELECT index, lane FROM traffic SINCE NOW - 60 SEC", "log", "reads an index"),
        (QUERIES[0], None, ""),
    ],
)
def test_explain_says_where_the_past_comes_from(network, text, source, says):
    station = network.durable.station
    past = describe_past(bind_single_query(text, station.world), station.engine)
    [(explained, rendered)] = explain_text(text, station.world, [past])
    assert (explained["past"] or {}).get("source") == source
    assert (source is None) == ("\npast\n" not in rendered) and says in " ".join(rendered.split())
    if source is not None and "SCAN" not in text:
        number = network.submit(text) if source == "archive" else None
        assert (number in station.past.by_query) == (source == "archive")


@pytest.mark.parametrize("kind", ["stop", "exceed", "pause", "drain"])
def test_query_ends_while_its_past_is_answered(network, slices, kind):
    number = network.submit(since(network, 45))
    assert number in network.durable.station.past.held
    network.durable.change(kind, number, network.now_ms, "too much" if kind == "exceed" else None)
    ended = network.now_ms // CATALOG.tick_ms
    network.live(60)
    assert number not in network.durable.station.past.held
    found = answers(network, number)
    assert all(tick <= ended for tick in found)
    if kind in ("drain", "pause"):
        assert max(found) >= ended - 10 and len(found) == (max(found) - min(found)) // 5 + 1


@pytest.mark.parametrize("text", [QUERIES[0], f"ISTREAM({QUERIES[0]})"])
def test_query_since_the_future_begins_then(network, text):
    begin = network.now_ms // CATALOG.tick_ms + 20
    number = network.submit(f"{text} SINCE {begin}")
    assert number not in network.durable.station.past.by_query
    network.live(15)
    assert not network.answers(number)
    upload(network, [{"lane": 1}])
    network.live(20)
    assert min(json.loads(line)["tick"] for line in network.answers(number).splitlines()) == -(-begin // 5) * 5


LATE = "REVISE traffic SET lane = 2 WHERE lane = 1"
COUNT = "SELECT COUNT(*) AS n FROM traffic [FROM NOW-29 TO NOW SLIDE 5 SEC]"


@pytest.mark.promise("history-is-live")
def test_tuple_too_far_ahead_is_in_no_past_window(tmp_path):
    """
    delivered   0 s, with the tick of 40 s: too far ahead, so no query sees it │ 120 s: a query since 20 s
    """
    network = PastNetwork(tmp_path, CATALOG)
    always = network.submit(COUNT)
    network.live(1)
    begun = network.now_ms // CATALOG.tick_ms
    upload(network, [{"lane": 1, "_tick": begun + 40}])
    for _ in range(20):
        network.live(6)
        upload(network, [{"lane": 1}])
    network.roll()
    number = network.submit(f"{COUNT} SINCE {begun + 20}")
    assert number in network.durable.station.past.by_query
    network.live(40)
    expected = {key: found for key, found in answers(network, always).items() if key >= begun + 20}
    assert answers(network, number) == expected and len(expected) > 20
    network.end()


@pytest.fixture
def network(tmp_path):
    """With pushed tuples in the archive that the engine does not keep any more."""
    network = PastNetwork(tmp_path, CATALOG)
    network.submit(QUERIES[0])
    for _ in range(20):
        network.live(6)
        upload(network, [{"lane": 1}])
    yield network
    network.end()


@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize("form", ["{}", "RSTREAM({})"])
def test_no_reading_is_due_before_motes_began_to_sample(network, form):
    """
    first query over field    + 20 s: SINCE    + 100 s: submitted; the first window reaches back 60 s
    """
    text = form.format("SELECT COUNT(*) AS n FROM field [FROM NOW-60 TO NOW SLIDE 10 SEC]")
    always, begun = network.submit(text), network.now_ms // CATALOG.tick_ms
    network.live(100)
    number = network.submit(f"{text} SINCE {begun + 20}")
    assert number in network.durable.station.past.by_query
    network.live(30)
    expected, found = (
        {
            line["tick"]: line["coverage"]
            for line in map(json.loads, network.answers(of).splitlines())
            if "coverage" in line
        }
        for of in (always, number)
    )
    assert found == {tick: coverage for tick, coverage in expected.items() if tick >= begun + 20} and len(found) > 8


@pytest.mark.promise("history-is-live")
def test_windows_with_own_slides_are_combined_across_the_seam(network):
    """
    since                  seam
    ──┼──5────5────5────5────┼5────5──▶   at each tick of one, the most recent window of the other,
      └─────7──────7──────7──┼───7────▶   also where that lies before the seam; none before SINCE
    """
    windows = "traffic [FROM NOW-4 TO NOW SLIDE 5 SEC] t, traffic [FROM NOW-9 TO NOW SLIDE 7 SEC] u"
    text = f"SELECT t.lane, COUNT(*) AS n FROM {windows} WHERE t.lane = u.lane GROUP BY t.lane"
    always = network.submit(text)
    for _ in range(12):
        network.live(6)
        upload(network, [{"lane": 1}])
    begin = network.now_ms // CATALOG.tick_ms - 45
    number = network.submit(f"{text} SINCE {begin}")
    assert isinstance(network.durable.station.past.by_query[number], PastWindows)
    network.live(20)
    first = max(-(-begin // slide) * slide for slide in (5, 7))
    expected = {key: found for key, found in answers(network, always).items() if key >= first}
    assert answers(network, number) == expected and len(expected) > 12


def since(network, seconds):
    return f"{COUNT} SINCE {network.now_ms // CATALOG.tick_ms - seconds}"


def archived_corrections(network):
    """The tick and the revision of each correction of `traffic` in the state."""
    archive = network.durable.station.archive
    found = archive.take_all()
    archive.give_back(found)
    batch = found["traffic"]
    return [each for each in zip(batch.tick.tolist(), batch.columns["_revision"].tolist(), strict=True) if each[1]]


@pytest.mark.promise("archived")
@pytest.mark.parametrize("act", ["nothing", "explain", "dry run", "refused submission"])
def test_question_about_the_past_changes_no_correction(tmp_path, monkeypatch, act):
    """A correction reaches what the log holds, before and after a restart; only an entry of the journal prunes the log."""
    begun, live, rules, _, timer = Engine.__init__.__defaults__
    monkeypatch.setattr(Engine.__init__, "__defaults__", (begun, live, rules, 10**6, timer))
    network = PastNetwork(tmp_path, CATALOG)
    upload(network, [{"lane": 9}])
    network.live(60)
    upload(network, [{"lane": 1}])
    station, text = network.durable.station, f"{QUERIES[0]} SINCE NOW - 40 SEC"
    if act == "explain":
        assert describe_past(bind_single_query(text, station.world), station.engine)
    elif act == "dry run":
        with suppress(DiagnosticError):
            planned = plan_query(text, station.world, station.engine.clock + 1, station.world.next_number())
            check_start(text, planned, station.world, station.engine)
    elif act == "refused submission":
        network.roll()
        monkeypatch.setattr("basestation.station.past_reader.MOST_RECALLED", 0)
        with pytest.raises(DiagnosticError, match="archived tuples"):
            network.submit(text)
    upload(network, [{"lane": 2}])
    correction = "REVISE traffic SET kind = 'bus' WHERE lane > 0"
    network.durable.take_data(Command("correct", network.now_ms, correction), correction)
    network.live(5)
    upload(network, [{"lane": 3}])  # commits the looks without news
    found = archived_corrections(network)
    assert len(found) == (2 if act == "refused submission" else 3)
    network.restart()
    assert archived_corrections(network) == found
    network.end()


@pytest.mark.parametrize("kind", ["exceed", "stop", "pause"])
def test_past_windows_end_with_their_query(network, kind):
    number = network.submit(since(network, 45))
    assert number in network.durable.station.past.by_query
    network.durable.change(kind, number, network.now_ms, "too much" if kind == "exceed" else None)
    given = network.answers(number)
    upload(network, [{"lane": 1, "_tick": network.now_ms // CATALOG.tick_ms - 15}])
    network.live(1)
    assert not network.durable.station.past.by_query
    network.live(30)
    assert network.answers(number) == given


@pytest.mark.parametrize("text", [QUERIES[0], "SELECT SUM(lane) AS s FROM traffic [FROM NOW-2 TO NOW SLIDE 1 ROWS]"])
def test_query_since_the_past_can_be_resumed(network, text):
    number = network.submit(f"{text} SINCE {network.now_ms // CATALOG.tick_ms - 45}")
    assert number in network.durable.station.past.by_query
    network.live(2)
    network.change("pause", number)
    given = network.answers(number)
    network.live(60)  # the log begins later than the query
    network.change("resume", number)
    begun = network.now_ms // CATALOG.tick_ms
    upload(network, [{"lane": 1}])
    network.live(30)
    assert network.query(number)["state"] == "running" and network.answers(number).startswith(given)
    ticks = [json.loads(line)["tick"] for line in network.answers(number)[len(given) :].splitlines()]
    assert ticks and min(ticks) >= begun


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("when", ["at submission", "later"])
def test_query_without_memory_for_its_past_windows_fails(network, monkeypatch, when):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 9 TiB")

    def begin_without_memory(*given):
        with monkeypatch.context() as scarce:
            scarce.setattr(OperatorBuilder, "output", fail)
            begin(*given)

    begin = PastWindows.__init__
    if when == "at submission":
        monkeypatch.setattr(PastWindows, "__init__", begin_without_memory)
    number = network.submit(since(network, 45))
    if when == "later":
        assert network.query(number)["state"] != "failed"
        engine = network.durable.station.past.by_query[number]._engine

        def run_without_memory(graph, steps, clock):
            is_past = graph is engine._graph and steps
            return (len(steps) - 1, MemoryError("Unable to allocate 9 TiB")) if is_past else run(graph, steps, clock)

        run = OperatorGraph._run
        monkeypatch.setattr(OperatorGraph, "_run", run_without_memory)
        upload(network, [{"lane": 1, "_tick": network.now_ms // CATALOG.tick_ms - 15}])
        network.live(30)
    found = network.query(number)
    assert found["state"] == "failed"
    assert found["reason"].startswith("SN516: ") and found["reason"].endswith("Unable to allocate 9 TiB")
    network.live(2)
    assert network.query(1)["state"] != "failed" and not network.durable.station.past.by_query


@pytest.mark.promise("durable")
@pytest.mark.parametrize("place", ["__init__", "answer", "advance", "correct"])
@pytest.mark.parametrize("is_killed", [True, False])
def test_accepted_query_without_room_for_its_past_has_failed(network, slices, monkeypatch, place, is_killed):
    """Its user has a number, which no other query gets, and a restart with enough memory leaves it ended."""
    act = getattr(PastWindows, place)

    def fail(*given):
        act(*given)
        raise MemoryError("Unable to allocate 9 TiB")

    tick = network.now_ms // CATALOG.tick_ms
    network.durable.take_data(
        Command("correct", network.now_ms, f"REVISE traffic SET lane = 2 WHERE tick > {tick - 9}"), ""
    )
    with monkeypatch.context() as scarce:
        scarce.setattr(PastWindows, place, fail)
        number = network.submit(since(network, 45))
    found, events = network.query(number), dict(network.durable.station.events.counts)
    assert (found["state"], found["reason"]) == ("failed", "SN516: its past finds no room: Unable to allocate 9 TiB")
    assert not network.durable.station.past.by_query and number not in network.durable.station.engine
    if is_killed:
        network.restart()
    assert dict(network.durable.station.events.counts) == events
    network.live(2)
    assert network.query(number) == found and network.submit(COUNT) == number + 1
    network.live(30)
    assert [json.loads(line)["type"] for line in network.answers(number).splitlines()] == ["ended"]


@pytest.mark.promise("durable")
@pytest.mark.parametrize("place", ["advance", "answer"])
@pytest.mark.parametrize("is_killed", [True, False])
def test_query_without_room_for_a_later_slice_of_its_past_fails(network, slices, monkeypatch, place, is_killed):
    """It has given what it had answered before, and other queries go on in the same look."""
    act, number = getattr(PastWindows, place), network.submit(since(network, 45))
    given = network.answers(number)

    def fail(*arguments):
        act(*arguments)
        raise MemoryError("Unable to allocate 9 TiB")

    assert number in network.durable.station.past.held and given
    with monkeypatch.context() as scarce:
        scarce.setattr(PastWindows, place, fail)
        network.live(30)
    found, answers = network.query(number), network.answers(number)
    assert (found["state"], found["reason"]) == ("failed", "SN516: its past finds no room: Unable to allocate 9 TiB")
    assert answers.startswith(given) and json.loads(answers.splitlines()[-1])["type"] == "ended"
    events = dict(network.durable.station.events.counts)
    if is_killed:
        network.restart()
    assert (network.query(number), network.answers(number)) == (found, answers)
    assert dict(network.durable.station.events.counts) == events
    before = network.answers(1)
    network.live(30)
    assert network.answers(1) != before and network.answers(number) == answers


@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize("is_killed", [True, False])
def test_query_on_a_full_disk_leaves_no_past_for_the_next_one(network, monkeypatch, is_killed):
    text, commit = since(network, 45), network.journal.commit

    def full_for_submissions(entries, *given, **named):
        if any(entry.kind == "submit" for entry in entries):
            raise sqlite3.OperationalError("database or disk is full")
        commit(entries, *given, **named)

    monkeypatch.setattr(network.journal, "commit", full_for_submissions)
    with pytest.raises(JournalError, match="disk is full"):
        network.submit(text, "a key")
    monkeypatch.setattr(network.journal, "commit", commit)
    if is_killed:
        network.restart()
        assert not network.durable.station._recalled
    reference = network.submit(text, "a key")
    network.live(2)
    assert not network.durable.station._recalled and reference == 2
    kinds = [entry.kind for _, entry in network.journal.entries(0)]
    assert kinds.count("recall") == 1 and kinds[kinds.index("recall") + 1] == "submit"


@pytest.mark.promise("history-is-live")
def test_for_counts_from_the_beginning_in_the_past(network):
    """
    since       seam      now    since + 120 s
    ──┼───────────┼────────┼──────────┼──────▶
      │◀── from the archive ──▶│◀ live ▶│
    """
    begin = network.now_ms // CATALOG.tick_ms - 90
    number = network.submit(f"{COUNT} SINCE {begin} FOR 120 SEC")
    assert number in network.durable.station.past.by_query
    network.live(80)
    ticks = list(answers(network, number))
    assert begin <= ticks[0] < begin + 5 and begin + 115 <= ticks[-1] <= begin + 120


@pytest.mark.promise("history-is-live")
def test_past_windows_have_readings_that_no_file_held(network, monkeypatch):
    monkeypatch.setattr("basestation.station.durable.DAYS_OF_ROLL", 1)
    always = network.submit(QUERIES[1])  # readings of another extent are moved, too
    network.live(60)
    number = network.submit(since(network, 100))
    assert not network.durable.station.archive.rows and always
    assert [json.loads(line)["rows"] for line in network.answers(number).splitlines()][:3] == [[[5]]] * 3


@pytest.mark.promise("history-is-live")
def test_since_is_refused_while_readings_cannot_be_archived(network, monkeypatch):
    def full(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(network.archive, "stage", full)
        with pytest.raises(JournalError, match="readings cannot be moved into the archive now"):
            network.submit(since(network, 45))
    assert list(network.durable.station.world.queries) == [1]
    assert network.submit(since(network, 45)) == 2


JOIN = (
    "SELECT a.lane FROM traffic [FROM NOW-29 TO NOW SLIDE 5 SEC] a, traffic [FROM NOW-29 TO NOW SLIDE 5 SEC] b SINCE {}"
)


@pytest.mark.parametrize(
    ("bound", "most", "words"),
    [
        ("MOST_WINDOWS", 6, "asks for 9 past windows, and a station answers 6"),
        ("MOST_IN_WINDOWS", 39, "would hold 4. tuples together, and may hold 39"),
    ],
)
def test_past_with_too_many_windows_is_refused(network, monkeypatch, bound, most, words):
    monkeypatch.setattr(f"basestation.station.past_reader.{bound}", most)
    with pytest.raises(DiagnosticError, match=words) as found:
        network.submit(since(network, 45))
    assert "use a longer SLIDE" in str(found.value) and list(network.durable.station.world.queries) == [1]


def test_past_with_too_many_windows_over_rows_is_refused(network, monkeypatch):
    """
    a tuple every 6 s:   SINCE 45 s ago: 8, each ends a window │ SINCE 40 s ago: 7
    """
    rows, tick = "SELECT COUNT(*) AS n FROM traffic [FROM NOW-2 TO NOW SLIDE 1 ROWS]", network.now_ms // CATALOG.tick_ms
    monkeypatch.setattr("basestation.station.past_reader.MOST_WINDOWS", 8)
    with pytest.raises(DiagnosticError, match="asks for 9 past windows, and a station answers 8"):
        network.submit(f"{rows} SINCE {tick - 45}")
    number = network.submit(f"{rows} SINCE {tick - 40}")  # tuples before SINCE end no window
    assert number in network.durable.station.past.by_query


def test_join_of_the_past_counts_pairs(network, monkeypatch):
    monkeypatch.setattr("basestation.station.past_reader.MOST_IN_WINDOWS", 100)
    network.submit(since(network, 45))
    with pytest.raises(DiagnosticError, match="past windows would hold"):
        network.submit(JOIN.format(network.now_ms // CATALOG.tick_ms - 45))


def test_few_queries_have_past_windows_at_a_time(network, monkeypatch):
    monkeypatch.setattr("basestation.station.past_reader.MOST_QUERIES", 1)
    first = network.submit(since(network, 45))
    with pytest.raises(QueryLimitError, match="1 queries have past windows"):
        network.submit(since(network, 45))
    network.change("stop", first)
    network.live(1)
    assert network.submit(since(network, 45)) == first + 1


def test_state_of_past_windows_counts_for_the_limit(network):
    number, seconds = network.submit(since(network, 45)), [0.0]
    live, _ = network.durable.station.engine.usage([number], {})
    network.durable.limits = QueryLimits(state_bytes=int(live[number].bytes) + 1)
    enforcer = LimitEnforcer(network.durable, lambda: seconds[0])
    for _ in range(2):
        enforcer.tend(network.now_ms)
        seconds[0] += 60.0
    assert network.query(number)["state"] == "failed" and "limits.state_mb" in network.query(number)["reason"]


@pytest.mark.parametrize("text", [f"{COUNT} SINCE NOW - 45 SEC", f"ISTREAM({COUNT}) SINCE NOW - 45 SEC"])
def test_time_of_the_engine_of_a_past_counts_for_the_limit(network, text):
    """The limit lies above the time in the engine of the station, and below that with the engine of the past."""
    number, seconds = network.submit(text), [0.0]
    network.durable.snapshot(network.now_ms)
    network.restart()
    durable, station = network.durable, network.durable.station
    durable.limits = QueryLimits(cpu_share=1e9)
    enforcer = LimitEnforcer(durable, lambda: seconds[0])
    enforcer.tend(network.now_ms)
    before = station.past.by_query[number].share.time
    upload(network, [{"lane": 1, "_tick": network.now_ms // CATALOG.tick_ms - 15}])
    network.live(6)
    alone = station.engine.usage([number], enforcer._times)[0][number].time
    whole, past = station.share(number).time, station.past.by_query[number].share.time
    assert 0 <= before < past and whole == pytest.approx(station.engine.share(number).time + past)
    durable.limits = QueryLimits(cpu_share=(alone + (past - before) / 2) / 1e9 / 60)
    seconds[0] += 60.0
    enforcer.tend(network.now_ms)
    assert network.query(number)["state"] == "failed" and "limits.cpu_share" in network.query(number)["reason"]


@pytest.mark.promise("history-is-live")
def test_query_can_begin_at_the_first_tick_that_is_told(network):
    plan, _ = network.durable.station.find_past(QUERIES[0])
    engine = network.durable.station.engine
    for number in range(100, 140):  # state is pruned every few steps, and deliveries wait for the next one
        network.live(1)
        engine.prune()
        options = replace(plan.options, since=engine.first_tick(plan))
        engine.add(number, replace(plan, options=options))
        engine.remove(number)


@pytest.mark.promise("history-is-live")
def test_first_tick_of_a_query_outlasts_the_process(network):
    plan, _ = network.durable.station.find_past(QUERIES[0])
    for _ in range(12):
        network.live(3)
        network.durable.station.engine.prune()  # the journal does not tell that it was done
        first = network.durable.station.engine.first_tick(plan)
        network.restart()
        network.durable.step(network.now_ms)
        network.durable.station.engine.prune()
        assert network.durable.station.engine.first_tick(plan) == first


def test_end_of_history_prunes_the_log_at_once(network):
    """The tuples of a past are read up to where the log began; were it pruned once more before the query begins, rows between would be missing."""
    engine = network.durable.station.engine
    always = bind_single_query("SELECT lane FROM traffic", network.durable.station.world)
    number = network.submit("SELECT COUNT(*) AS n FROM traffic.HISTORY [SCAN 5 SEC]")
    network.live(40)
    before = engine.first_tick(always)
    network.change("stop", number)
    engine.prune()
    first = engine.first_tick(always)
    engine.prune()
    assert before < first == engine.first_tick(always)
