"""The driver's calls of the engine and their order."""

import random
from itertools import pairwise

import numpy as np
import pytest

from acquisition.errors import InputError
from basestation.replay import driver
from basestation.replay.driver import NotExecutableError, Replay
from basestation.replay.inputs import Recording, read_recording
from basestation.replay.recorded_stream import RecordedStream
from basestation.replay.statements import find_extents, read_catalog, read_statements
from tests.oracles.deliveries import last_moment
from tests.oracles.generate import case
from tests.oracles.schema import read_schema

CATALOG = read_catalog(
    "road: sensed (site:integer, temp:integer) every 1 min at sites 1, 2\n"
    "hits: pushed (v:integer) ahead 5 sec\n"
    "kinds: stored (temp:integer)\n"
)


class Listener:
    """An engine that records its calls and emits nothing."""

    def __init__(self, catalog, begun=0):
        self.calls = []

    def load(self, name, tick, columns):
        self.calls.append(("load", name, tick, {k: v.to_list() for k, v in columns.items()}))

    def add(self, number, plan):
        if "MEDIAN" in plan.root.columns[0].label:
            raise driver.UnsupportedPlanError("MEDIAN")
        self.calls.append(("add", number))

    def announce(self, number, plan):
        """A later query is announced; the time of the announcement does not matter."""

    def deliver(self, name, batch):
        self.calls.append(("deliver", name, batch.arrival.tolist(), next(iter(batch.columns.values())).tolist()))

    def correct(self, correction):
        self.calls.append(("correct", correction.how))

    def on_clock(self, tick):
        self.calls.append(("clock", tick))
        return []

    def finish(self, until):
        self.calls.append(("finish", until))
        return []

    def ledger(self):
        return {}


@pytest.fixture(autouse=True)
def listener(monkeypatch):
    monkeypatch.setattr(driver, "Engine", Listener)


def calls(inputs, queries, until=None, **options):
    statements = read_statements(queries, CATALOG)
    replay = Replay(read_recording(CATALOG, inputs, statements), statements, until, **options)
    list(replay.updates())
    return replay.engine.calls


HITS = [{"_arrival": 3, "v": 1}, {"_arrival": 0, "v": 2}, {"_arrival": 3, "v": 3}, {"_arrival": 7, "_tick": 3, "v": 4}]


def test_deliveries_keep_recorded_order_in_chunks():
    inputs = {"hits": HITS, "road": [{"_tick": 0, "_site": 2, "_arrival": 3, "temp": 5}]}
    assert calls(inputs, ["SELECT v FROM hits"], at_once=2) == [
        ("add", 1),
        ("deliver", "road", [3], [2]), ("deliver", "hits", [0, 3, 3], [2, 1, 3]), ("clock", 3),
        ("deliver", "hits", [7], [4]), ("finish", 7),
    ]  # fmt: skip
    assert calls(inputs, ["SELECT v FROM hits"])[-2:] == [
        ("deliver", "hits", [0, 3, 3, 7], [2, 1, 3, 4]),
        ("finish", 7),
    ]


def test_until_sets_last_clock_tick():
    all_at_three = ("deliver", "hits", [0, 3, 3], [2, 1, 3])
    assert calls({"hits": HITS}, ["SELECT v FROM hits"], 5)[-2:] == [all_at_three, ("finish", 5)]
    assert calls({"hits": HITS}, ["SELECT v FROM hits"], 3)[-2:] == [all_at_three, ("finish", 3)]
    assert calls({"hits": HITS}, ["SELECT v FROM hits"], 99, at_once=4)[-2:] == [("clock", 7), ("finish", 99)]


def test_every_tick_ends_each_clock_tick():
    found = calls({"hits": HITS}, ["SELECT v FROM hits"], every_tick=True)
    assert [entry[1] for entry in found if entry[0] in ("clock", "finish")] == list(range(8))


def test_corrections_follow_deliveries_of_their_tick():
    delete = "DELETE FROM hits WHERE v = 1"
    assert calls({"hits": HITS}, [f"{delete}; SELECT v FROM hits"])[-2:] == [("correct", "delete"), ("finish", 7)]
    found = calls({"hits": HITS}, ["SELECT v FROM hits", (delete, 3), (delete, 5)])
    at = found.index(("correct", "delete"))
    assert found[at - 1][0] == "deliver" and found[at + 1 :][:3] == [("clock", 3), ("correct", "delete"), ("clock", 5)]
    assert calls({"hits": []}, [(delete, 9)])[-1] == ("finish", 9)


def test_query_begins_at_later_tick():
    found = calls({"hits": HITS}, [("SELECT v FROM hits", 5)])
    assert found[-4:] == [("add", 1), ("clock", 5), ("deliver", "hits", [7], [4]), ("finish", 7)]


def test_tick_that_spans_blocks_is_delivered_at_once():
    statements = read_statements(["SELECT v FROM hits"], CATALOG)
    [whole] = [read_recording(CATALOG, {"hits": HITS[:1] + HITS[2:]}).batches["hits"]]  # arrivals 3, 3, 7
    stream = RecordedStream(CATALOG.find("hits"), lambda: (whole.take(slice(i, i + 1)) for i in range(3)), True, 3, 7)
    replay = Replay(Recording(CATALOG, {"hits": stream}, {}), statements, at_once=1)
    list(replay.updates())
    assert replay.engine.calls[1:] == [
        ("deliver", "hits", [3], [1]), ("deliver", "hits", [3], [3]), ("clock", 3), ("deliver", "hits", [7], [4]),
        ("finish", 7),
    ]  # fmt: skip


def test_versions_load_by_tick():
    found = calls({"kinds": [(60, [{"temp": 2}]), (0, {"temp": [1, None]})]}, ["SELECT temp FROM kinds"])
    assert found == [
        ("load", "kinds", 0, {"temp": [1, None]}),
        ("load", "kinds", 60, {"temp": [2]}),
        ("add", 1),
        ("finish", 60),
    ]


def test_all_not_executable_statements_are_reported():
    with pytest.raises(NotExecutableError) as refused:
        calls({}, ["SELECT MEDIAN(temp) FROM road [NOW]; SELECT temp FROM road; EXPLAIN SELECT temp FROM road"])
    assert [d.message for d in refused.value.diagnostics] == [
        "MEDIAN cannot be executed yet", "EXPLAIN in a replay cannot be executed yet",
    ]  # fmt: skip


def test_end_is_last_delivery_tick_or_version(counts):
    """As for the oracle; a tuple stamped too far ahead does not count."""
    ahead = [{"_arrival": 1, "_tick": 6, "v": 1}, {"_arrival": 1, "_tick": 7, "v": 1}]
    assert calls({"hits": ahead}, ["SELECT v FROM hits"])[-1] == ("finish", 6)
    assert calls({}, ["SELECT v FROM hits"])[-1] == ("finish", 0)
    for seed in range(counts(40, 400)):
        made = case(seed)
        recording = read_recording(read_catalog(made.schema), made.inputs)
        assert recording.end() == last_moment(read_schema(made.schema), made.inputs, [])


def test_find_extents_in_subqueries():
    text = "SELECT temp FROM kinds WHERE temp = (SELECT MAX(temp) FROM road.HISTORY); ISTREAM(SELECT v FROM hits [NOW])"
    statements = [s for s in text.split(";")[:1]]
    assert find_extents(read_statements(statements, CATALOG)) == {"kinds", "road"}


def test_unread_table_needs_no_file(tmp_path):
    catalog = read_catalog("r: pushed (v:integer)\nt: stored (v:integer) from 't.csv'")
    read_recording(catalog, {}, read_statements(["SELECT v FROM r"], catalog), tmp_path)
    with pytest.raises(InputError, match="No such file"):
        read_recording(catalog, {}, read_statements(["SELECT v FROM t"], catalog), tmp_path)
    (tmp_path / "t.csv").write_text("v\n5\n")
    recording = read_recording(catalog, {}, read_statements(["SELECT v FROM t"], catalog), tmp_path)
    assert recording.versions["t"][0][1]["v"].to_list() == [5]
    assert (
        read_recording(catalog, {"t": []}, read_statements(["SELECT v FROM t"], catalog), tmp_path).versions["t"][0][0]
        == 0
    )


def test_replay_delivers_every_tuple_once(rng: random.Random):
    arrivals = [rng.randint(0, 50) for _ in range(500)]
    found = calls({"hits": {"_arrival": arrivals, "v": np.arange(500)}}, ["SELECT v FROM hits"], at_once=20)
    delivered = [entry for entry in found if entry[0] == "deliver"]
    assert [v for entry in delivered for v in entry[3]] == sorted(range(500), key=lambda i: arrivals[i])
    clocks = [entry[2] for entry in delivered]
    assert len(clocks) > 10 and all(a[-1] < b[0] for a, b in pairwise(clocks))
