"""Corrections of a running station stand in its archive: an export gives the tuples as HISTORY shows them, whatever ends the process."""

import json

import pyarrow as pa
import pytest

from basestation.archive.compaction import days_of_files, merge_day
from basestation.archive.manifest import FileChange
from basestation.archive.transfer import export_readings
from basestation.planner.catalog import read_schema
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_statements
from basestation.station.archive_recovery import open_archive
from basestation.station.journal import Command
from tests.station.small_network import SCHEMA, SmallNetwork
from tests.station.test_uploads import upload

CATALOG = read_schema(
    SCHEMA + "traffic: pushed (lane:integer, kind:string) wait 2 sec late revise by 1 hour ahead 5 sec\n"
)
QUERIES = {
    "field": "SELECT tick, site, volt FROM field.HISTORY [SCAN 10 SEC]",
    "traffic": "SELECT tick, lane, kind FROM traffic.HISTORY [SCAN 10 SEC]",
}
STATEMENTS = (
    "REVISE field SET volt = volt + 1 WHERE site = 3",
    "REVISE traffic SET kind = 'bus' WHERE lane = 1",
    "REVISE traffic SET lane = lane + 1 WHERE lane > 1",
    "DELETE FROM field WHERE site = 4 AND volt > 0",
    "DELETE FROM traffic WHERE kind = 'bus'",
    "INSERT INTO traffic (lane, kind) VALUES (1, 'van'), (2, null)",
    "INSERT INTO field (tick, site, volt) VALUES ({tick}, 4, 7)",
)


class ArchivedNetwork(SmallNetwork):
    """With an archive, which is rolled and merged by hand."""

    def start(self):
        super().start()
        self.archive = open_archive(self.folder, CATALOG.tick_ms, self.journal)

    def roll(self):
        self.durable.roll(self.now_ms, self.archive)

    def compact(self):
        for day in list(days_of_files(self.journal.archive_files())):
            change = FileChange((merge_day(self.folder, day),), tuple(file.name for file in day.files))
            assert self.durable.change_archive(self.now_ms, self.archive, change)

    def export(self, extent):
        days = [day for day in days_of_files(self.journal.archive_files()) if day.extent == extent]
        return export_readings(self.folder, days, 0, 2**60)


def correct(network, rng, count):
    """Carry out so many different statements, in random order."""
    tick = network.now_ms // CATALOG.tick_ms
    for text in rng.sample(STATEMENTS, count):
        text = text.format(tick=(tick - rng.randint(10, 40)) // 10 * 10)
        network.durable.take_data(Command("correct", network.now_ms, text), text)


def last_window(network, number):
    """The tick and the rows of the last window of a query."""
    lines = [json.loads(line) for line in network.answers(number).splitlines()]
    last, rows = max(line["tick"] for line in lines if "tick" in line), []
    for line in lines:
        if line.get("tick") == last:
            rows += line.get("rows", [])
    return last, sorted(map(str, rows))


def replayed(network, extent, tick):
    """The rows of HISTORY at a tick in a replay of an export."""
    table = network.export(extent)
    ignored = [name for name in ("_time", "_index", "_revision") if name in table.column_names]
    recording = read_recording(CATALOG, {extent: table.drop_columns(ignored)})
    statements = read_statements([(QUERIES[extent], 0)], CATALOG)
    # The first tuple may be stamped ahead of its delivery, which is then before all ticks.
    replay = Replay(recording, statements, tick, begin=recording.begin())
    result = Result(replay.queries)
    for updates in replay.updates():
        result.add(updates)
    return sorted(str(list(row)) for row in result.current(1)[tick, 1])


@pytest.mark.promise("archived")
def test_exported_corrections_replay_to_the_live_history(tmp_path, rng, counts):
    for run in range(counts(1, 10)):
        network = ArchivedNetwork(tmp_path / str(run), CATALOG)
        for extent in QUERIES:
            network.submit(QUERIES[extent])
        network.submit("SELECT volt FROM field")
        for _ in range(25):
            network.live(rng.choice([0.5, 3, 6]))
            tick = network.now_ms // CATALOG.tick_ms
            rows = [{"lane": rng.randint(1, 3), "kind": rng.choice(["car", None])} for _ in range(rng.randint(1, 3))]
            upload(network, [*rows, {"lane": 9, "_tick": tick + rng.choice([0, 4, 60])}])
            if rng.random() < 0.6:
                correct(network, rng, 2)
            if rng.random() < 0.3:
                network.roll()
            if rng.random() < 0.2:
                network.compact()
            if rng.random() < 0.2:
                network.restart()
        network.live(20)
        correct(network, rng, len(STATEMENTS))  # so that each kind occurs, whatever was drawn
        network.live(20)
        network.roll()
        assert {row["_weight"] for row in network.export("field").to_pylist()} == {1, -1}
        for number, extent in enumerate(QUERIES, 1):
            tick, rows = last_window(network, number)
            assert replayed(network, extent, tick) == rows, extent
        assert pa.compute.max(network.export("traffic")["_revision"]).as_py() == 0
        network.end()
