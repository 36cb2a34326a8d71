"""A station that is killed at any moment goes on as if nothing had happened."""

import json
import sqlite3

import pytest

from basestation.station import journal_file, service
from basestation.station.journal import Command
from basestation.station.journal_file import JournalError
from basestation.station.live_control import LiveControl
from basestation.station.operational_events import BROKEN, KEPT
from basestation.station.retention import Budget
from basestation.station.runner import Runner, ScaledClock
from basestation.station.service import Station
from basestation.station.uncommitted import KEEP_PLANS
from gateway.diagnostics import DiagnosticError
from gateway.errors import TransportError
from tests.station.small_network import BEGIN_MS, QUERIES, Crash, SmallNetwork

SECONDS = 90


def undisturbed(folder):
    network = SmallNetwork(folder)
    for text in QUERIES:
        network.submit(text)
    network.live(SECONDS)
    return network


def current(network, query):
    """By window or index, what the updates of a query add up to."""
    found = {}
    for line in map(json.loads, network.answers(query).splitlines()):
        if line["type"] == "window":
            rows = found.setdefault(line["tick"], [])
            for row in line.get("removed", ()):
                rows.remove(row)
            rows += line.get("rows", line.get("added", ()))
        elif line["type"] == "tuple":
            found[line["tick"], tuple(line["row"])] = found.get((line["tick"], tuple(line["row"])), 0) + line["weight"]
    return {key: sorted(rows) if isinstance(rows, list) else rows for key, rows in found.items()}


@pytest.mark.promise("durable")
def test_restart_between_steps_leaves_results_to_the_byte(tmp_path, rng, counts):
    expected = undisturbed(tmp_path / "undisturbed")
    for run in range(counts(3, 30)):
        network = SmallNetwork(tmp_path / str(run))
        for text in QUERIES:
            network.submit(text)
        left = SECONDS
        while left:
            lived = min(left, rng.randrange(1, 30))
            network.live(lived)
            left -= lived
            if rng.random() < 0.5:
                rng.choice([network.durable.snapshot, network.durable.begin_snapshot])(network.now_ms)
                network.live(min(left, 2))
                left -= min(left, 2)
            network.restart()
        for query in range(1, len(QUERIES) + 1):
            assert network.answers(query) == expected.answers(query)
        network.end()
    expected.end()


@pytest.mark.promise("durable")
@pytest.mark.parametrize("crashes_before", [True, False], ids=["before commit", "after commit"])
def test_crash_at_a_commit_loses_no_reading(crashes_before, tmp_path, rng, counts):
    expected = undisturbed(tmp_path / "undisturbed")
    expected.live(60)
    for run in range(counts(4, 40)):
        network = SmallNetwork(tmp_path / str(run))
        for text in QUERIES:
            network.submit(text)
        network.live(15)  # motes have their programs: what is lost now is repeated, not begun later
        network.journal.crashes_before, network.journal.commits_left = crashes_before, rng.randrange(12)
        try:
            network.live(SECONDS - 15)
        except Crash:
            network.restart()
        assert network.journal.commits_left is None, "the run had fewer commits"
        network.live((expected.now_ms - network.now_ms) / 1_000)
        for query in range(1, len(QUERIES) + 1):
            assert current(network, query) == current(expected, query)
        network.end()
    expected.end()


@pytest.mark.promise("durable")
def test_full_disk_acknowledges_nothing_until_there_is_room(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.live(20)
    before, commit = network.answers(1), network.journal.commit

    def full(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(network.journal, "commit", full)
    network.live(20)
    assert not network.durable.step(network.now_ms) and network.durable.failure == "database or disk is full"
    assert network.answers(1) == before
    with pytest.raises(JournalError, match="disk is full"):
        network.submit(QUERIES[1])
    monkeypatch.setattr(network.journal, "commit", commit)
    network.live(30)
    windows = [json.loads(line) for line in network.answers(1).splitlines()]
    last = {line["tick"]: line["coverage"]["field"] for line in windows}
    assert len(last) >= 5 and all(
        coverage == [2, 2] for tick, coverage in last.items() if tick * 1_000 < network.now_ms - 20_000
    )


def test_same_idempotency_key_submits_once(tmp_path):
    network = SmallNetwork(tmp_path)
    assert [network.submit(QUERIES[0], "a key") for _ in range(3)] == [1, 1, 1]
    network.restart()
    assert network.submit(QUERIES[0], "a key") == 1
    with pytest.raises(JournalError, match="another command"):
        network.submit(QUERIES[1], "a key")
    assert network.submit(QUERIES[1]) == 2


@pytest.mark.promise("durable")
def test_query_whose_commit_fails_is_not_confirmed(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    commit, texts = network.journal.commit, []

    def full_for_commands(entries, results, events, commands, queries, **more):
        texts.extend(record.command.argument for record in commands)
        if commands:
            raise sqlite3.OperationalError("database or disk is full")
        commit(entries, results, events, commands, queries, **more)

    monkeypatch.setattr(network.journal, "commit", full_for_commands)
    with pytest.raises(JournalError, match="cannot be kept now: database or disk is full"):
        network.submit(QUERIES[0], "a key")
    assert texts == [json.dumps({"text": QUERIES[0]})] and network.journal.command_of("a key") is None
    monkeypatch.setattr(network.journal, "commit", commit)
    assert network.submit(QUERIES[0], "a key") == 1
    network.restart()
    assert list(network.durable.station.world.queries) == [1]


@pytest.mark.promise("durable")
@pytest.mark.parametrize("kind", ["stop", "drain", "pause", "resume", "submit", "replace", "correct"])
def test_command_repeated_after_a_full_disk_is_carried_out_once(tmp_path, monkeypatch, kind):
    network = SmallNetwork(tmp_path)
    hours = "00:00-00:01" if kind == "resume" else None  # which is not now
    number = network.durable.submit(QUERIES[0], network.now_ms, active=hours)
    if kind == "resume":
        network.change("pause", number)
    before = len(commands(network))

    def act():
        if kind == "submit":
            return network.submit(QUERIES[1], "a key")
        if kind == "replace":
            return network.durable.replace(number, QUERIES[1], network.now_ms, "a key")
        if kind == "correct":
            text = "DELETE FROM field WHERE site = 3"
            return network.durable.take_data(Command(kind, network.now_ms, text), text, "a key")
        return network.durable.change(kind, number, network.now_ms, key="a key")

    with monkeypatch.context() as broken:
        broken.setattr(network.journal, "commit", full_disk)
        with pytest.raises(JournalError, match="cannot be kept now: database or disk is full"):
            act()
    act()
    assert network.durable.step(network.now_ms + 1_000) and network.durable.failure is None
    assert len(commands(network)) == before + 1 and network.journal.command_of("a key")[0] == kind


def commands(network):
    return [entry for _, entry in network.journal.entries(0) if isinstance(entry, Command)]


def full_disk(*_, **__):
    raise sqlite3.OperationalError("database or disk is full")


def test_stopping_twice_leaves_a_station_that_restarts(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(QUERIES[0])
    network.live(10)
    for _ in range(2):
        network.change("stop", number)
        assert network.query(number)["state"] == "stopped"
    network.restart()
    assert network.query(number)["state"] == "stopped"


def test_command_that_failed_by_a_bug_does_not_hinder_restarts(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])

    submit = Station.submit

    def fail(station, text, now_ms, name=None, active=None):
        if text == QUERIES[1]:
            raise ZeroDivisionError
        return submit(station, text, now_ms, name)

    with monkeypatch.context() as broken:
        broken.setattr(Station, "submit", fail)
        with pytest.raises(ZeroDivisionError):
            network.submit(QUERIES[1])
        network.restart()
    network.live(30)
    assert network.answers(1)


def test_text_that_is_not_unicode_changes_nothing(tmp_path):
    network = SmallNetwork(tmp_path)
    with pytest.raises(UnicodeEncodeError):
        network.submit("SELECT \ud800 FROM field [NOW]")
    network.live(10)
    assert network.submit(QUERIES[0]) == 1
    network.restart()


def test_refused_query_leaves_a_station_that_restarts_the_same(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.live(10)
    with pytest.raises(DiagnosticError):
        network.submit("SELECT nothing FROM field [NOW]")
    network.live(10)
    before = network.answers(1)
    logged = []
    monkeypatch.setattr("basestation.station.committed_station.log.info", lambda event, **_: logged.append(event))
    network.restart()
    assert logged.count("command fails again") == 1
    network.live(10)
    assert network.answers(1).startswith(before) and len(network.answers(1)) > len(before)
    assert list(network.durable.station.world.queries) == [1]


def test_stopped_query_stays_stopped_and_keeps_its_results(tmp_path):
    network = SmallNetwork(tmp_path)
    number = network.submit(QUERIES[0])
    network.live(30)
    network.change("stop", number)
    network.live(5)
    before = network.answers(number)
    network.restart()
    network.live(30)
    assert network.query(number)["state"] == "stopped" and number not in network.durable.station.world.queries
    assert network.answers(number) == before != ""


def test_results_that_cannot_be_dropped_are_reported(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)

    def full(*_, **__):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(network.journal, "trim", full)
    network.durable.trim(network.now_ms, Budget())
    network.live(1)
    assert [kind for _, _, kind, _ in network.journal.events(0, 9)] == ["old results stay"]


def test_broken_promises_are_events(tmp_path):
    network = SmallNetwork(tmp_path)
    log = network.durable.station.events
    log._note(network.now_ms, None, "mote 3 drains", BROKEN, KEPT, 1)
    network.live(1)
    log._note(network.now_ms, "mote 3 drains", None, BROKEN, KEPT, 1)
    network.live(1)
    assert [(kind, json.loads(body)) for _, _, kind, body in network.journal.events(0, 9)] == [
        (BROKEN, {"why": "mote 3 drains", "query": 1}), (KEPT, {"why": None, "query": 1})]  # fmt: skip


class BrokenWire:
    """A wire that fails while `is_broken`."""

    def __init__(self, wire):
        self._wire, self.is_broken = wire, False

    def receive(self):
        if self.is_broken:
            raise TransportError("the line is unplugged")
        return self._wire.receive()

    def send(self, data):
        if self.is_broken:
            raise TransportError("the line is unplugged")
        self._wire.send(data)


def test_link_that_fails_is_reported_and_heals(tmp_path):
    network = SmallNetwork(tmp_path)
    wire = BrokenWire(network.wire)
    network.durable.connect(wire)
    runner = Runner(network.durable, ScaledClock(lambda: 0.0, network.now_ms), beside=network)
    control = LiveControl(runner)
    network.submit(QUERIES[0])
    for second in range(120):
        wire.is_broken = 30 <= second < 60
        runner.look(network.now_ms + second * 1_000)
        if second == 45:
            assert control.health()["problems"] == ["the link fails: the line is unplugged"]
    assert control.health()["ok"]
    found = [each for each in control.events(0, 10, None)[0] if "link" in each["event"]]
    assert [(event["event"], event["why"]) for event in found] == [
        ("link fails", "the line is unplugged"), ("link works again", None)]  # fmt: skip
    last = {line["tick"]: line["coverage"]["field"] for line in map(json.loads, network.answers(1).splitlines())}
    assert list(last.values())[:-1] == [[2, 2]] * (len(last) - 1) and len(last) >= 10


def test_motes_obey_a_station_restored_from_a_backup(tmp_path):
    """
    backup ── more frames to the motes ── restore: numbers of frames begin in another boot, and motes report anew
    """
    network = SmallNetwork(tmp_path / "data")
    network.submit(QUERIES[0])
    network.live(30)
    journal_file.backup(network.folder, tmp_path / "copy.db")
    epoch = network.journal.epoch
    for text in QUERIES[1:] + QUERIES[1:]:
        network.submit(text)
        network.live(20)
    network.end()
    journal_file.restore(tmp_path / "copy.db", network.folder)
    network.start()
    boot = network.durable.station.links.boot
    reconcilers = network.durable.station.reconcilers.by_mote.values()
    assert network.journal.epoch != epoch and {each.state.name for each in reconcilers} == {"UNKNOWN"}
    network.live(120)  # motes ran a later schedule, which the station does not know
    last = json.loads(network.answers(1).splitlines()[-1])
    assert last["coverage"]["field"] == [2, 2] and last["tick"] * 1_000 > network.now_ms - 30_000
    number = network.submit(QUERIES[2])
    network.live(60)
    network.restart()
    assert network.durable.station.links.boot == boot  # a restart goes on with the numbers
    network.live(60)
    last = json.loads(network.answers(number).splitlines()[-1])
    assert number == 2 and network.query(number)["state"] == "running" and last["coverage"]["field"][0] > 0


def test_boots_of_a_network_grow(tmp_path):
    """A backup may be restored twice in an hour, and a data directory may get lost."""
    network = SmallNetwork(tmp_path / "data")
    boots = [network.durable.station.links.boot]
    journal_file.backup(network.folder, tmp_path / "copy.db")
    for _ in range(3):
        network.end()
        journal_file.restore(tmp_path / "copy.db", network.folder)
        network.start()
        boots.append(network.durable.station.links.boot)
    network.end()
    network.folder, network.now_ms = tmp_path / "other", network.now_ms + 86_400_000
    network.start()
    boots.append(network.durable.station.links.boot)
    assert boots == sorted(set(boots)) and boots[0] > 1_000


@pytest.mark.promise("durable")
@pytest.mark.parametrize(
    ("statement", "undo", "words"),
    [
        ("PRAGMA max_page_count = 1", "PRAGMA max_page_count = 1073741823", "database or disk is full"),
        ("PRAGMA query_only = ON", "PRAGMA query_only = OFF", "attempt to write a readonly database"),
    ],
    ids=["full", "read-only"],
)
def test_file_that_takes_no_more_loses_nothing(statement, undo, words, tmp_path):
    """SQLite itself refuses to write; looks go on, and nothing is acknowledged or shown until it writes again."""
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.live(20)
    database = network.journal._db
    database.execute(statement)  # it needs a new page after some commits
    runner = Runner(network.durable, ScaledClock(lambda: 0.0, network.now_ms), beside=network)
    while runner.is_committing:
        network.now_ms += 250
        runner.look(network.now_ms)
        assert network.now_ms < BEGIN_MS + 600_000, "the file took everything"
    last, before = network.journal.last, network.answers(1)
    for _ in range(80):
        network.now_ms += 250
        runner.look(network.now_ms)
    assert (network.journal.last, network.answers(1)) == (last, before)
    assert words in network.durable.failure and words in LiveControl(runner).health()["problems"][0]
    database.execute(undo)
    for _ in range(240):
        network.now_ms += 250
        runner.look(network.now_ms)
    assert LiveControl(runner).health()["ok"] and {"journal fails", "journal works again"} <= set(network.events())
    latest = {line["tick"]: line["coverage"]["field"] for line in map(json.loads, network.answers(1).splitlines())}
    due = [tick for tick in latest if tick * 1_000 < network.now_ms - 20_000]
    assert len(due) >= 8 and all(latest[tick] == [2, 2] for tick in due)


@pytest.mark.promise("durable")
def test_restart_skips_searches_that_found_no_cheaper_plan(tmp_path, monkeypatch):
    """A search took 4.5 s of CPU with 100 queries; a start after one took as long again."""
    searched, search = [], service.start_migrations

    def counted(world, *given):
        searched.append(world)
        return search(world, *given)

    monkeypatch.setattr(service, "start_migrations", counted)
    network, undisturbed = SmallNetwork(tmp_path / "restarted"), SmallNetwork(tmp_path / "undisturbed")
    for each in (network, undisturbed):
        each.submit(QUERIES[2])
        each.live(SECONDS)
    assert len(searched) == 2
    network.restart()
    assert network.durable.replayed >= SECONDS and len(searched) == 2
    reviewed = [each.durable.station for each in (network, undisturbed)]
    assert reviewed[0]._reviewed == reviewed[1]._reviewed and reviewed[0]._changed is reviewed[1]._changed is None
    for each in (network, undisturbed):
        each.live(SECONDS)
    assert network.answers(1) == undisturbed.answers(1)


def test_restart_searches_again_where_the_log_lacks_results(tmp_path, monkeypatch):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[2])
    network.live(SECONDS)
    network.end()
    database = sqlite3.connect(tmp_path / "station.db")
    with database:
        assert database.execute("DELETE FROM entries WHERE kind = ?", (KEEP_PLANS,)).rowcount == 1
    database.close()
    searched = []
    monkeypatch.setattr(service, "start_migrations", lambda world, *_: searched.append(world) or world)
    network.start()
    assert len(searched) == 1 and network.durable.replayed >= SECONDS
