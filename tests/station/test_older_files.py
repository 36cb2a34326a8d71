"""Files of older programs: a start migrates them after copying them, and computes the state anew where the log has it all.

`older/versionN.sql` were dumped from stations of the program at commits 580e3c3 (version 1), 1703420 (version 2)
and 4df2dc4 (version 3): two queries on the motes of `SmallNetwork`, submitted at its begin; the first is stopped after 45 s, the
station ends after 60 s. The snapshot of version 3 has the head of an older engine and no state.
"""

import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from basestation.station import schema_migration
from basestation.station.journal import Journal, ResultChunk
from basestation.station.journal_file import NAME, PROGRAM, VERSION, JournalError, check, restore
from basestation.station.recovery import begin_station
from tests.station.small_network import SmallNetwork

OLDER = Path(__file__).parent / "older"
VERSIONS = range(1, VERSION)
each_version = pytest.mark.parametrize("version", VERSIONS)


def write_older(folder, version):
    """Make the data directory of an older station; returns the lines of each query's feed."""
    folder.mkdir(exist_ok=True)
    with closing(sqlite3.connect(folder / NAME)) as database:
        database.executescript((OLDER / f"version{version}.sql").read_text(encoding="utf-8"))
        rows = database.execute("SELECT query, body FROM results ORDER BY query, first").fetchall()
    lines = {}
    for query, body in rows:
        lines[query] = lines.get(query, "") + zlib.decompress(body).decode()
    return lines


def version_of(path):
    with closing(sqlite3.connect(path)) as database:
        return database.execute("PRAGMA user_version").fetchone()[0]


def windows(network, query):
    return [json.loads(line) for line in network.answers(query).splitlines()]


@pytest.mark.promise("durable")
@each_version
def test_older_file_is_copied_and_goes_on(version, tmp_path):
    before = write_older(tmp_path, version)
    network = SmallNetwork(tmp_path)
    assert version_of(tmp_path / NAME) == VERSION and version_of(tmp_path / f"{NAME}.v{version}") == version
    assert len(before) == 2 and all(network.answers(query) == lines for query, lines in before.items())
    network.now_ms = network.durable.last_ms
    network.live(180)
    assert network.events().count("the state was computed anew from the log") == 1
    assert (network.query(1)["state"], network.query(2)["state"]) == ("stopped", "running")
    found = windows(network, 2)
    assert network.answers(2).startswith(before[2])
    assert [line["number"] for line in found] == list(range(1, len(found) + 1)) and len(found) >= 10
    assert found[-1]["coverage"]["field"] == [6, 6]
    assert network.query(1)["text"] == "SELECT temp FROM field [NOW]"
    answers = network.answers(2)
    network.restart()
    network.live(1)
    assert network.answers(2).startswith(answers)
    assert network.events().count("the state was computed anew from the log") == 1


@pytest.mark.parametrize("version", [1, 2])
def test_older_results_age_from_the_newest_time_in_their_file(version, tmp_path):
    """The older file has no times of results; with the time 0 all would be dropped at the next trim."""
    write_older(tmp_path, version)
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        newest = [database.execute(f"SELECT max(at_ms) FROM {table}").fetchone()[0] for table in ("commands", "events")]
    Journal(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / NAME)) as database:
        times = {at_ms for (at_ms,) in database.execute("SELECT at_ms FROM results")}
    assert len(times) == 1 and min(times) >= max(filter(None, newest)) > 1_700_000_000_000


def test_station_computed_anew_begins_when_it_began_first(tmp_path):
    begun = []
    for now_ms in (1_000, 5_000):
        with closing(Journal(tmp_path)) as journal:
            begin_station(journal, lambda _, at_ms: begun.append(at_ms), None, now_ms)
    assert begun == [1_000, 1_000]


@pytest.mark.promise("durable")
@each_version
def test_migration_that_fails_changes_nothing(version, tmp_path, monkeypatch):
    before = write_older(tmp_path, version)
    done = []

    def fail(database):
        done.append(database.execute("UPDATE entries SET body = x'00'").rowcount)
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(schema_migration, "_STEPS", (*schema_migration._STEPS[:-1], fail))
        with pytest.raises(JournalError, match="cannot become") as error:
            Journal(tmp_path)
    assert done[0] > 0 and "nothing has changed" in error.value.help and version_of(tmp_path / NAME) == version
    assert SmallNetwork(tmp_path).answers(2) == before[2]


@each_version
def test_migration_without_room_for_a_copy_is_refused(version, tmp_path, monkeypatch):
    write_older(tmp_path, version)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=100_000))
    with pytest.raises(JournalError, match="must be copied before its format") as error:
        Journal(tmp_path)
    assert "free space" in error.value.help
    assert version_of(tmp_path / NAME) == version and not (tmp_path / f"{NAME}.v{version}").exists()


@each_version
def test_backup_of_an_older_station_is_restored(version, tmp_path):
    before = write_older(tmp_path / "backup", version)
    check(tmp_path / "backup" / NAME)
    restore(tmp_path / "backup" / NAME, tmp_path / "data")
    assert SmallNetwork(tmp_path / "data").answers(2) == before[2]


@pytest.mark.promise("durable")
def test_older_state_without_its_log_names_the_program(tmp_path):
    write_older(tmp_path, 2)
    journal = Journal(tmp_path)
    journal.state_fact(PROGRAM, "0.0.7")
    journal._db.execute("DELETE FROM entries WHERE number < 5").connection.commit()
    journal.close()
    with pytest.raises(JournalError, match="moteloom station 2 on engine 17") as error:
        SmallNetwork(tmp_path)
    assert "start with moteloom 0.0.7" in error.value.help


@pytest.mark.promise("durable")
def test_results_go_on_above_those_of_the_older_program(tmp_path):
    """The older program gave numbers 1 to 5 of query 2, of which the log explains 1 to 3: the next one is 6."""
    before = write_older(tmp_path, 2)
    journal = Journal(tmp_path)
    assert journal.bounds(2) == (1, 4)
    journal.commit([], [ResultChunk(2, 4, 6, '{"number": 4}\n{"number": 5}\n')])
    journal.close()
    network = SmallNetwork(tmp_path)
    network.now_ms = network.durable.last_ms
    network.live(60)
    assert network.answers(2).startswith(before[2] + '{"number": 4}\n{"number": 5}\n')
    numbers = [line["number"] for line in windows(network, 2)]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 6
