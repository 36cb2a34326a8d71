"""Damage of a station's file: a start refuses what it reads, the check in the background finds the rest."""

import sqlite3

import pytest

from basestation.station.file_check import FileCheck
from basestation.station.journal import Command, Journal, ResultChunk, Steps
from basestation.station.journal_file import NAME, JournalError, check
from basestation.station.live_control import LiveControl
from basestation.station.retention import Budget
from basestation.station.runner import Runner, ScaledClock
from tests.station.small_network import QUERIES, SmallNetwork


def zero_root(path, name):
    """Fill the page at which a table begins with zeros."""
    database = sqlite3.connect(path)
    (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


def zero_oldest_result(path):
    """Fill the page that has the oldest results of the newest query with zeros."""
    database = sqlite3.connect(path)
    (body,) = database.execute("SELECT body FROM results ORDER BY query DESC, first LIMIT 1").fetchone()
    (size,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    at = path.read_bytes().index(body)
    with path.open("r+b") as file:
        file.seek(at - at % size)
        file.write(bytes(size))


def tables_of(path):
    database = sqlite3.connect(path)
    found = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    database.close()
    return found


@pytest.mark.promise("durable")
def test_start_refuses_damage_of_all_tables_but_results(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([Steps([(1, b"abc")]), Command("stop", 5, "1")], [ResultChunk(1, 1, 2, "a\n")])
    journal.close()
    whole, refused = (tmp_path / NAME).read_bytes(), set()
    for table in (tables := tables_of(tmp_path / NAME)):
        (tmp_path / NAME).write_bytes(whole)
        zero_root(tmp_path / NAME, table)
        with pytest.raises(JournalError, match="damaged") as error:
            check(tmp_path / NAME)
        assert "moteloom restore" in error.value.help
        try:
            Journal(tmp_path).close()
        except JournalError as error:
            refused.add(table)
            assert "damaged" in str(error) and "moteloom restore" in error.help
    assert refused == set(tables) - {"results"} and len(refused) >= 9


@pytest.mark.promise("durable")
def test_damaged_results_are_an_event_and_fail_health(tmp_path):
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.journal.commit([], [ResultChunk(9, n, n + 1, str(n) * 50) for n in range(1_000)])  # more than a page
    network.durable.snapshot(network.now_ms)
    network.end()
    zero_oldest_result(tmp_path / NAME)
    network.start()
    check = FileCheck(network.journal.path)
    runner = Runner(network.durable, ScaledClock(lambda: 0.0, network.now_ms), beside=network, file_check=check)
    check.wait()
    runner.look(network.now_ms + 250)
    problems = LiveControl(runner).health()["problems"]
    assert any("station.db is damaged" in each and "moteloom restore FILE" in each for each in problems)
    for second in range(1, 40):
        runner.look(network.now_ms + 1_000 * second)
    assert network.events().count("the check of the file fails") == 1


def test_damaged_index_of_results_stops_the_start(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([], [ResultChunk(1, 1, 2, "a\n")])
    journal.close()
    zero_root(tmp_path / NAME, "results_by_age")
    with pytest.raises(JournalError, match="damaged") as error:
        Journal(tmp_path)
    assert "moteloom restore" in error.value.help


def test_check_of_a_sound_file_finds_nothing(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([Steps([(1, b"abc")])], [ResultChunk(1, n, n + 1, "a\n" * n) for n in range(1, 2_000)])
    check = FileCheck(journal.path)
    check.wait()
    assert check.problem is None
    check.close()


def test_check_that_is_ended_early_finds_nothing(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([], [ResultChunk(1, n, n + 1, "a\n" * n) for n in range(1, 5_000)])
    check = FileCheck(journal.path)
    check.close()
    assert check.problem is None


def test_kept_measure_of_results_is_their_size(tmp_path, rng):
    journal, number, now = Journal(tmp_path), 0, 0
    for _ in range(40):
        now += rng.randrange(3)
        results = [ResultChunk(query, number + 1, number + 2, "x" * rng.randrange(99), now) for query in (1, 2)]
        journal.commit([], results)
        number += 1
        if rng.random() < 0.3:
            now += rng.randrange(3)
            journal.trim(Budget(rng.randrange(1, 30), rng.randrange(200, 2_000), rng.randrange(5, 50)), now)
            journal.commit([], [ResultChunk(3, number, number + 1, "y", now)])  # at the time of the trim
        journal.close()
        journal = Journal(tmp_path)
        (size,) = journal._db.execute("SELECT sum(size) FROM results").fetchone()
        assert journal.storage.result_bytes == size
