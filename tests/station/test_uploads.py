"""Tuples, tables and corrections that clients send: kept for good before they are acknowledged, and taken once."""

import json
import sqlite3

import pytest

from acquisition.sources.pushed_tuples import read_tuples
from basestation.planner.catalog import read_schema
from basestation.station.archive_recovery import open_archive
from basestation.station.journal import Command, Upload
from basestation.station.journal_file import JournalError, KeyReusedError
from basestation.station.uploads import LOAD, PUSH, encode_tuples
from gateway.cli import dispatch
from gateway.diagnostics import DiagnosticError
from tests.docs.commands import verbs
from tests.station.small_network import SCHEMA, Crash, SmallNetwork

CATALOG = read_schema(
    SCHEMA + "traffic: pushed (lane:integer, kind:string) wait 2 sec late revise by 1 hour\n"
    "lanes: stored (lane:integer, name:string) from 'lanes.csv'\n"
)
COUNT = "SELECT lane, COUNT(*) AS n FROM traffic [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY lane"
NAMED = (
    "SELECT t.kind, l.name FROM traffic [FROM NOW-4 TO NOW SLIDE 5 SEC] t, lanes [SCAN 5 SEC] l WHERE t.lane = l.lane"
)


@pytest.fixture
def network(tmp_path):
    network = SmallNetwork(tmp_path, CATALOG)
    yield network
    network.end()


def upload(network, rows, extent="traffic", key=None):
    """Push rows, or load them as a table; whether they were new."""
    tuples = read_tuples(json.dumps(rows).encode(), "json", CATALOG.extents[extent], 1_000)
    kind = PUSH if extent == "traffic" else LOAD
    entry = Upload(kind, network.now_ms, extent, encode_tuples(tuples))
    return network.durable.take_data(entry, str(rows), key)


def correct(network, text, key=None):
    return network.durable.take_data(Command("correct", network.now_ms, text), text, key)


def windows(network, query):
    """The rows of all windows of a query that are not empty."""
    lines = [json.loads(line) for line in network.answers(query).splitlines()]
    return [row for line in lines for row in line.get("rows", ())]


@pytest.mark.promise("durable")
def test_pushed_tuples_are_answered_after_a_crash(network):
    network.submit(COUNT)
    assert upload(network, [{"lane": 1, "kind": "car"}, {"lane": 2, "kind": None}, {"lane": 1}])
    network.restart()
    network.live(15)
    assert sorted(windows(network, 1)) == [[1, 2], [2, 1]]


@pytest.mark.promise("durable")
@pytest.mark.parametrize("crashes_before", [True, False])
def test_push_is_taken_whole_or_not_at_all(network, crashes_before):
    network.submit(COUNT)
    network.journal.commits_left, network.journal.crashes_before = 0, crashes_before
    with pytest.raises(Crash):
        upload(network, [{"lane": 1}, {"lane": 1}], key="k")
    network.restart()
    assert upload(network, [{"lane": 1}, {"lane": 1}], key="k") == crashes_before
    network.live(15)
    assert windows(network, 1) == [[1, 2]]


def test_same_key_takes_tuples_once(network):
    network.submit(COUNT)
    assert [upload(network, [{"lane": 1}], key="k") for _ in range(3)] == [True, False, False]
    with pytest.raises(KeyReusedError):
        upload(network, [{"lane": 2}], key="k")
    network.restart()
    assert not upload(network, [{"lane": 1}], key="k") and upload(network, [{"lane": 1}])
    network.live(15)
    assert windows(network, 1) == [[1, 2]]


def test_stamped_tuple_revises_an_answered_window(network):
    network.submit(COUNT)
    tick = network.now_ms // 1_000
    upload(network, [{"lane": 1}])
    network.live(25)
    upload(network, [{"lane": 1, "_tick": tick + 1}])
    network.live(5)
    lines = [json.loads(line) for line in network.answers(1).splitlines()]
    revised = [(line["removed"], line["added"]) for line in lines if line.get("revision")]
    assert revised == [([[1, 1]], [[1, 2]])]


def test_new_version_of_a_table_holds_from_its_tick_on(network):
    network.submit(NAMED)
    upload(network, [{"lane": 1, "name": "slow"}], "lanes")
    upload(network, [{"lane": 1, "kind": "car"}])
    network.live(10)
    upload(network, [{"lane": 1, "name": "fast"}], "lanes")
    network.restart()
    upload(network, [{"lane": 1, "kind": "bus"}])
    network.live(10)
    assert windows(network, 1) == [["car", "slow"], ["bus", "fast"]]
    assert [rows for _, rows in network.durable.station.engine.table_versions("lanes")] == [1, 1]


def test_correction_is_kept_and_revises_answers(network):
    network.submit(COUNT)
    upload(network, [{"lane": 1, "kind": "car"}, {"lane": 1, "kind": "bus"}])
    network.live(15)
    assert correct(network, "DELETE FROM traffic WHERE kind = 'bus'", "k")
    assert network.durable.snapshot(network.now_ms), "a snapshot holds a correction of its tick"
    network.restart()
    assert not correct(network, "DELETE FROM traffic WHERE kind = 'bus'", "k")
    network.live(5)
    lines = [json.loads(line) for line in network.answers(1).splitlines()]
    revised = [(line["removed"], line["added"]) for line in lines if line.get("revision")]
    assert revised == [([[1, 2]], [[1, 1]])]


@pytest.mark.parametrize(
    "text", ["SELECT lane FROM traffic", "DELETE FROM traffic WHERE lan = 1", "REVISE traffic SET"]
)
def test_wrong_correction_changes_nothing(network, text):
    with pytest.raises(DiagnosticError):
        correct(network, f"DELETE FROM traffic WHERE lane = 1; {text}")
    network.submit(COUNT)
    upload(network, [{"lane": 1}])
    network.live(15)
    network.restart()
    assert windows(network, 1) == [[1, 1]]


def test_push_that_cannot_be_kept_says_so(network, monkeypatch):
    def fail(*given, **named):
        raise sqlite3.OperationalError("database or disk is full")

    network.submit(COUNT)
    with monkeypatch.context() as full:
        full.setattr(network.journal, "commit", fail)
        with pytest.raises(JournalError, match="the data was taken but cannot be kept now"):
            upload(network, [{"lane": 1}], key="k")
        with pytest.raises(JournalError, match="nothing can be kept now"):
            upload(network, [{"lane": 2}])
    assert not upload(network, [{"lane": 1}], key="k")
    network.live(15)
    network.restart()
    assert windows(network, 1) == [[1, 1]]


@pytest.mark.promise("archived")
def test_pushed_tuples_and_versions_of_tables_are_archived(network, monkeypatch, capsys):
    """A version without rows too; `moteloom archive export` gives the version of a time, as an input of a replay."""
    archive = open_archive(network.folder, CATALOG.tick_ms, network.journal)
    upload(network, [{"lane": 1, "kind": "car"}, {"lane": 2, "kind": None}])
    ticks = []
    for rows in ([{"lane": 1, "name": "left"}, {"lane": 2, "name": None}], [], [{"lane": 3, "name": "bus"}]):
        network.live(5)
        upload(network, rows, "lanes")
        ticks.append(network.now_ms // CATALOG.tick_ms)
    network.restart()
    assert network.durable.roll(network.now_ms, archive) == 2 + 2 + 1 + 1
    found = archive.read(CATALOG.extents["lanes"], 0, 2**60)
    assert (found.tick.tolist(), found.weight.tolist()) == ([ticks[0], *ticks[:2], ticks[2]], [1, 1, 0, 1])
    assert archive.read(CATALOG.extents["traffic"], 0, 2**60).columns["kind"].tolist() == ["car", None]
    monkeypatch.chdir(network.folder)
    for tick, text in zip(
        ticks, ('"lane","name"\n1,"left"\n2,\n', '"lane","name"\n', '"lane","name"\n3,"bus"\n'), strict=True
    ):
        assert (
            dispatch(["archive", "export", "lanes", "--data", ".", "--until", str(tick), "--out", "x.csv"], verbs())
            == 0
        )
        assert (network.folder / "x.csv").read_text() == text
