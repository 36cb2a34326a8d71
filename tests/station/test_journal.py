"""The station's file: what it refuses, with which words, and what it keeps."""

import os
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.station import journal_file as module
from basestation.station import retention
from basestation.station.journal import Command, CommandRecord, Journal, QueryRow, ResultChunk, Steps, Upload
from basestation.station.journal_file import JournalError, backup, restore
from basestation.station.retention import Budget, measure

LOOKS = Steps([(1_000, b"abc"), (1_250, b""), (-3, bytes(range(256)))])


def test_entries_come_back_in_their_order(tmp_path):
    entries = [LOOKS, Command("submit", 2**40, "SELECT é FROM r"), Command("stop", 5, "1"), Steps([])]
    entries.append(Upload("push", -5, "träffic", bytes(range(256))))
    journal = Journal(tmp_path)
    journal.commit(entries[:2])
    journal.commit(entries[2:])
    journal.close()
    journal = Journal(tmp_path)
    assert list(journal.entries(0)) == list(enumerate(entries, 1))
    assert [number for number, _ in journal.entries(2)] == [3, 4, 5]


def test_entries_that_two_snapshots_cover_are_dropped(tmp_path):
    journal = Journal(tmp_path)
    for _ in range(4):
        journal.commit([LOOKS, LOOKS])
        journal.save_snapshot(journal.last, 0, b"state")
    assert [number for number, *_ in journal.snapshots()] == [8, 6]
    assert [number for number, _ in journal.entries(0)] == [7, 8]
    journal.close()
    assert Journal(tmp_path).last == 8


def test_results_are_read_from_a_number_on(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([], [ResultChunk(1, 1, 4, "a\nb\nc\n"), ResultChunk(1, 4, 5, "d\n"), ResultChunk(2, 1, 2, "x\n")])
    assert [chunk.lines for chunk in journal.results(1, 0, 100)] == ["a\nb\nc\n", "d\n"]
    assert [chunk.lines for chunk in journal.results(1, 3, 100)] == ["d\n"]
    assert [chunk.lines for chunk in journal.results(1, 2, 1)] == ["a\nb\nc\n"]
    assert (journal.bounds(1), journal.bounds(2), journal.bounds(3)) == ((1, 5), (1, 2), (1, 1))
    assert journal.trim(Budget(numbers=1), 0)["results"] == 3
    assert journal.bounds(1) == (4, 5)


def test_reads_and_drops_of_results_use_the_key(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([], [ResultChunk(query, n, n + 1, "a\n") for query in (1, 5) for n in range(1, 3_001)])
    plans = []
    journal._reader.set_trace_callback(plans.append)
    journal._db.set_trace_callback(plans.append)
    assert [chunk.first for chunk in journal.results(5, 2_998, 100)] == [2_999, 3_000]
    assert journal.bounds(5) == (1, 3_001)
    with journal._db:
        assert retention._drop_numbers(journal._db, keep=10)[0] == 2 * 2_990
    assert (journal.bounds(1), journal.bounds(5), journal.bounds(9)) == ((2_991, 3_001), (2_991, 3_001), (1, 1))
    for statement in [each for each in plans if each.startswith(("SELECT", "DELETE"))]:
        steps = journal._db.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert not [step for *_, step in steps if step.startswith("SCAN") and "CONSTANT" not in step], statement


def test_old_events_are_dropped(tmp_path):
    journal = Journal(tmp_path)
    for _ in range(2):
        journal.commit([], events=[(n, "kind", "{}") for n in range(5)])
        journal.trim(Budget(events=3), 0)
    assert [number for number, *_ in journal.events(0, 100)] == [8, 9, 10]


def test_entry_that_cannot_be_decoded_names_the_remedy(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([LOOKS])
    journal._db.execute("UPDATE entries SET body = x'00'")
    with pytest.raises(JournalError, match="damaged: entry 1"):
        list(journal.entries(0))


def test_result_that_is_kept_is_not_replaced(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([], [ResultChunk(1, 1, 2, "first\n")])
    journal.commit([], [ResultChunk(1, 1, 2, "again\n")])
    assert journal.results(1, 0, 10)[0].lines == "first\n"


def test_second_station_on_one_directory_is_refused(tmp_path):
    first = Journal(tmp_path)
    with pytest.raises(JournalError, match="another station uses"):
        Journal(tmp_path)
    first.close()
    Journal(tmp_path).close()


def test_closed_directory_is_free_though_a_copy_lives(tmp_path):
    journal = Journal(tmp_path)
    reads, writes = os.pipe()
    copy = os.fork()
    if copy == 0:  # as a snapshot in the background does, before it has closed what it inherited
        os.read(reads, 1)
        os._exit(0)
    try:
        journal.close()
        Journal(tmp_path).close()
    finally:
        os.write(writes, b"!")
        os.waitpid(copy, 0)
        os.close(reads)
        os.close(writes)


def test_file_is_for_its_owner_only(tmp_path):
    journal = Journal(tmp_path)
    journal.commit([LOOKS])
    assert {path.stat().st_mode & 0o077 for path in tmp_path.glob("station.db*")} == {0}


def test_file_of_another_program_is_refused(tmp_path):
    sqlite3.connect(tmp_path / module.NAME).execute("CREATE TABLE t (x)").connection.close()
    with pytest.raises(JournalError, match="not the file of a station"):
        Journal(tmp_path)


def test_file_of_a_newer_program_is_refused(tmp_path):
    Journal(tmp_path).close()
    database = sqlite3.connect(tmp_path / module.NAME)
    database.execute(f"PRAGMA user_version = {module.VERSION + 1}").connection.close()
    with pytest.raises(JournalError, match=f"has format {module.VERSION + 1}"):
        Journal(tmp_path)


def test_damaged_file_names_the_remedy(tmp_path, rng, counts):
    journal = Journal(tmp_path)
    for _ in range(200):
        journal.commit([Steps([(1, rng.randbytes(500))])])
    journal.close()
    whole = (tmp_path / module.NAME).read_bytes()
    refused = 0
    for _ in range(counts(20, 200)):
        torn = bytearray(whole)
        at = rng.randrange(0, len(torn) - 4_096, 512)
        torn[at : at + 4_096] = bytes(4_096)
        (tmp_path / module.NAME).write_bytes(torn)
        try:
            journal = Journal(tmp_path)
        except JournalError as error:
            refused += 1
            assert "restore" in error.help or "--data" in error.help
        else:
            journal.close()
    assert refused


def test_backup_is_restored_after_a_check(tmp_path):
    journal = Journal(tmp_path / "data")
    journal.commit([LOOKS])
    backup(tmp_path / "data", tmp_path / "copy.db")
    journal.commit([LOOKS])
    journal.close()
    (tmp_path / "torn.db").write_bytes((tmp_path / "copy.db").read_bytes()[:5_000])
    for source, words in ((tmp_path / "torn.db", "damaged"), (tmp_path / "none.db", "no file")):
        with pytest.raises(JournalError, match=words):
            restore(source, tmp_path / "data")
    restore(tmp_path / "copy.db", tmp_path / "data")
    assert Journal(tmp_path / "data").last == 1


def test_restore_keeps_what_the_station_had_committed(tmp_path):
    journal = Journal(tmp_path / "data")
    backup(tmp_path / "data", tmp_path / "copy.db")
    for _ in range(3):
        journal.commit([LOOKS])
    for name in ("station.db", "station.db-wal"):  # as after kill -9: the commits are in the -wal alone
        (tmp_path / "killed").mkdir(exist_ok=True)
        (tmp_path / "killed" / name).write_bytes((tmp_path / "data" / name).read_bytes())
    restore(tmp_path / "copy.db", tmp_path / "killed")
    before = sqlite3.connect(tmp_path / "killed/station.db.before-restore")
    assert before.execute("SELECT count(*) FROM entries").fetchone() == (3,)
    assert Journal(tmp_path / "killed").last == 0


def test_backup_and_restore_spare_the_station_itself(tmp_path):
    Journal(tmp_path / "data").close()
    (tmp_path / "folder").mkdir()
    for path, words in (
        (tmp_path / "data/station.db", "data directory itself"),
        (tmp_path / "none/copy.db", "cannot be copied"),
        (tmp_path / "folder", "cannot be replaced"),
    ):
        with pytest.raises(JournalError, match=words):
            backup(tmp_path / "data", path)
    with pytest.raises(JournalError, match="own file"):
        restore(tmp_path / "data/station.db", tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "folder"]
    Journal(tmp_path / "data").close()


def test_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalError, match="cannot be used"):
        Journal(tmp_path / "file" / "data")


def test_oldest_results_go_first_and_are_counted(tmp_path):
    """
    query 1   a(1) b(3) c(5)        by age or bytes the oldest go, whichever query they belong to;
    query 2     d(2) e(4)           c and e stay as the newest of their queries
    """
    journal = Journal(tmp_path)
    chunks = [(1, 1, 1), (2, 1, 2), (1, 2, 3), (2, 2, 4), (1, 3, 5)]
    journal.commit([], [ResultChunk(query, n, n + 1, f"{query} {n}\n", at_ms) for query, n, at_ms in chunks])
    size = measure(journal._db).result_bytes // 5
    assert journal.trim(Budget(age_ms=8), 9) == {"results": 1, "events": 0, "commands": 0}
    assert (journal.bounds(1), journal.bounds(2)) == ((2, 4), (1, 3))
    assert journal.trim(Budget(result_bytes=3 * size), 9)["results"] == 1
    assert (journal.bounds(1), journal.bounds(2)) == ((2, 4), (2, 3))
    assert journal.trim(Budget(age_ms=0, result_bytes=0), 99)["results"] == 1
    assert (journal.bounds(1), journal.bounds(2)) == ((3, 4), (2, 3))
    journal.close()
    again = Journal(tmp_path)
    assert again.storage.dropped == {"results": 3} and again.storage.result_bytes == 2 * size


def test_commands_are_kept_by_count(tmp_path):
    journal = Journal(tmp_path)
    made = [CommandRecord(Command("submit", n, "{}"), f"key {n}", n) for n in range(10)]
    journal.commit([LOOKS], commands=made)
    assert journal.trim(Budget(commands=4), 0)["commands"] == 6
    assert journal.command_of("key 5") is None and journal.command_of("key 6") == ("submit", "{}", 6)
    assert journal.storage.log_bytes > 0


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3)), max_size=12), st.integers(0, 5), st.integers(-1, 40))
def test_number_before_a_time_is_that_of_the_last_earlier_result(chunks, dropped, at_ms):
    with TemporaryDirectory() as folder:
        journal, number, now, results = Journal(Path(folder)), 1, 0, []
        for count, pause in chunks:
            now += pause
            results.append(ResultChunk(1, number, number + count, "{}\n" * count, now))
            number += count
        journal.commit([], results)
        kept = results[min(dropped, max(0, len(results) - 1)) :]
        if kept:
            journal.trim(Budget(numbers=number - kept[0].first), 0)
        first = kept[0].first if kept else 1
        earlier = [chunk.behind - 1 for chunk in kept if chunk.at_ms < at_ms]
        assert journal.number_before(1, at_ms) == max(earlier, default=first - 1)
        journal.close()


def test_ten_thousand_queries_are_listed_without_a_scan(tmp_path):
    journal, plans = Journal(tmp_path), []
    states = ["running", "stopped"]
    rows = [QueryRow(n, None, states[n % 2], f'{{"number": {n}, "extents": ["field"]}}') for n in range(1, 10_001)]
    journal.commit([], queries=rows)
    journal._reader.set_trace_callback(plans.append)
    for state, last in ((None, 5_100), ("stopped", 5_199)):
        found = journal.queries(5_000, 100, state)
        assert len(found) == 100 and f'"number": {last}' in found[-1][0]
    assert len(journal.queries(5_000, 100, extent="field")) == 100
    journal._reader.set_trace_callback(None)
    for statement in plans:
        steps = [step for *_, step in journal._reader.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()]
        assert not [step for step in steps if step.startswith("SCAN") and "json_each" not in step], steps
