"""`moteloom history`: the command over an archive on disk."""

import json
import random
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from basestation.archive.spark.java import SparkUnavailableError
from basestation.archive.spark.session import SparkFailedError
from basestation.cli.history_arguments import print_errors
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.cli import main
from tests.history.in_spark import archive
from tests.station.small_network import QUERIES
from tests.station.test_archiving import SECONDS, ArchivedNetwork

SCHEMA = """road: sensed (site:integer, temp:float {scale 1}, wind:float) every 10 sec at sites 1, 2 wait 5 sec
grade: stored (low:integer, name:string) from 'grade.csv'
"""
ROWS = [
    {"_tick": 10, "_site": 1, "temp": 1.5, "wind": 0.1},
    {"_tick": 10, "_site": 2, "temp": 2.5, "wind": 0.2},
    {"_tick": 20, "_site": 1, "temp": 3.0, "wind": None},
    {"_tick": 20, "_site": 2, "_arrival": 90, "temp": 4.0, "wind": 0.4},
]


@pytest.fixture
def data(tmp_path):
    """A data directory with an archive, and the schema of its extents."""
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    (tmp_path / "grade.csv").write_text("low,name\n0,cold\n3,warm\n")
    archive(read_recording(read_schema(SCHEMA), {"road": ROWS}), tmp_path, random.Random(1))
    return tmp_path


def history(data, *arguments):
    return main(["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), *arguments])


@pytest.mark.spark
@pytest.mark.promise("history-is-live", "errors-point")
def test_history_command_prints_windows_as_csv(need, data):
    """In a process of its own, with a Spark of its own. The late reading of tick 20 is in its window."""
    need("java")
    command = [sys.executable, "-m", "gateway.cli", "history", "--data", data, "--schema", data / "schema.sneeql"]
    query = "SELECT COUNT(*) AS n, AVG(temp) AS mean FROM road [FROM NOW-10 SEC TO NOW SLIDE 10 SEC]"
    done = subprocess.run(
        [*command, "--to", "30", "-o", "csv", "--plot", data / "mean.svg", query],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "_time,_tick,n,mean",
        "1970-01-01T00:00:10Z,10,2,2.0",
        "1970-01-01T00:00:20Z,20,4,2.75",
        "1970-01-01T00:00:30Z,30,2,3.5",
    ], done.stderr
    assert "starting Spark" in done.stderr
    assert (data / "mean.svg").read_text().count("<polyline") == 2
    assert "WARN" not in done.stderr and "Traceback" not in done.stderr
    assert done.returncode == 0


def test_history_ls_describes_extents_from_footers(data, capsys):
    assert history(data, "ls", "-o", "json") == 0
    [line] = capsys.readouterr().out.splitlines()
    found = json.loads(line)
    assert (found["extent"], found["rows"], found["first_tick"], found["last_tick"]) == ("road", 4, 10, 20)
    assert (found["days"], found["first_day"]) == (1, "1970-01-01")


@pytest.mark.parametrize("kind", [SparkUnavailableError, SparkFailedError])
@pytest.mark.promise("errors-point")
def test_failure_of_spark_is_one_line_and_code_1(capsys, kind):
    def fail():
        raise kind("Spark failed: full")

    assert print_errors(fail, False) == 1
    assert capsys.readouterr().err == "moteloom: Spark failed: full\n"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["SELECT tmep FROM road"], 2, "did you mean `temp`"),
        (["SELECT temp FROM road", "--from", "50", "--to", "40"], 2, "the range begins at tick 50"),
        (["SELECT temp FROM road", "--from", "500", "--to", "600"], 2, "readings of the ticks 10 to 20"),
        (["SELECT temp FROM road", "--from", "2026-11-19T08:00:00"], 2, "after the last window"),
        (["DELETE FROM road WHERE temp = 1"], 2, "expected one query"),
        (["SELECT temp FROM road", "-o", "parquet"], 2, "--out FILE"),
        (["SELECT temp FROM road LIFETIME 9 DAYS"], 4, "LIFETIME plans for motes"),
        (["SELECT COUNT(*) FROM road [NOW] HAVING SUM(wind) > 1.0"], 4, "rounds otherwise"),
    ],
)
@pytest.mark.promise("errors-point")
def test_history_refuses_before_spark_starts(data, capsys, monkeypatch, arguments, code, says):
    def start(*_, **__):
        raise AssertionError("Spark was started")

    monkeypatch.setattr("basestation.archive.spark.session.start_session", start)
    assert history(data, *arguments) == code
    said = capsys.readouterr()
    assert says in said.err
    assert not said.out


def test_history_without_archive_names_what_is_missing(data, capsys, tmp_path):
    assert history(data, "ls", "--data", str(tmp_path / "nothing")) == 2
    assert "there is no archive" in capsys.readouterr().err


def test_damaged_file_is_named(data, capsys):
    [file, *_] = sorted(data.glob("archive/extent=road/*/*.parquet"))
    file.write_bytes(file.read_bytes()[:-9])
    assert history(data, "SELECT temp FROM road") == 3
    assert str(file) in capsys.readouterr().err


def test_missing_java_is_one_line(data, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(sys, "prefix", str(data))
    assert history(data, "SELECT temp FROM road") == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("moteloom")]
    assert "sudo apt install openjdk-17-jre-headless" in line


def test_catalog_comes_from_snapshot_of_station(tmp_path):
    """Neither -c nor --schema: the newest snapshot in the data directory has the extents."""
    from basestation.station.saved_state import read_saved_state

    network = ArchivedNetwork(tmp_path / "data")
    network.submit(QUERIES[2])
    network.live(SECONDS)
    network.durable.snapshot(network.now_ms)
    state = read_saved_state(tmp_path / "data")
    assert state.catalog == network.durable.station.world.catalog
    network.end()


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
def test_plan_reads_only_days_and_columns_of_query(spark, tmp_path):
    """Physical plans have no Python node, and files of other days are not opened."""
    schema = "road: sensed (site:integer, temp:integer, gust:float) every 1 hour at sites 1, 2"
    rows = [{"_tick": 3600 * h, "_site": s, "temp": h, "gust": 0.5} for h in range(96) for s in (1, 2)]
    recording = read_recording(read_schema(schema), {"road": rows})
    archive(recording, tmp_path, random.Random(1))
    from basestation.history.compiler import compile_plan
    from basestation.history.statement import HistoryRange
    from basestation.replay.statements import read_statements
    from tests.history.in_spark import views

    sources = views(spark, recording, tmp_path, "pruned_")
    text = "SELECT site, MAX(temp) FROM road [FROM NOW-1 HOUR TO NOW SLIDE 1 HOUR] GROUP BY site"
    [given] = read_statements([text], recording.catalog)
    made = compile_plan(given.plan, sources, HistoryRange(2 * 86_400, 2 * 86_400 + 7_200, 0, 0))
    plan = spark.sql(f"EXPLAIN FORMATTED {made.text}").first()[0]
    assert "PartitionFilters: [isnotnull(date" in plan
    assert "1970-01-02" in plan and "1970-01-03" in plan and "1970-01-04" not in plan
    assert "gust" not in plan
    assert not any(word in plan for word in ("Python", "Pandas", "CartesianProduct"))
    assert spark.sql(f"SELECT count(1) FROM ({made.text})").first()[0] == 6


def test_parquet_output_has_time_and_types(tmp_path):
    import pyarrow as pa

    from basestation.history.output import write_answer

    table = pa.table({"_tick": [60, 120], "_n": [1, 1], "mean": [1.5, None]})
    write_answer(table, "parquet", tmp_path / "out.parquet", False, 1000)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column_names == ["_time", "_tick", "mean"]
    assert found.column("_time").to_pylist()[1] == "1970-01-01T00:02:00Z"


@pytest.mark.parametrize(
    ("copies", "is_unique"), [(0, True), (1, False)], ids=["each reading once", "a reading in two files"]
)
def test_copies_of_reading_are_found_in_files(tmp_path, copies, is_unique):
    """Where there are none, a statement has no step that looks for them."""
    from datetime import date

    from basestation.history.archive_views import has_unique_keys

    recording = read_recording(read_schema(SCHEMA), {"road": ROWS})
    archive(recording, tmp_path, random.Random(1))
    for _ in range(copies):
        again = read_recording(read_schema(SCHEMA), {"road": ROWS[1:2]})
        archive(again, tmp_path / "again", random.Random(1))
        for file in (tmp_path / "again").glob("archive/extent=road/*/*.parquet"):
            file.rename(tmp_path / "archive" / "extent=road" / file.parent.name / file.name)
    day = date(1970, 1, 1)
    assert has_unique_keys(tmp_path, "road", day, day) is is_unique
    assert has_unique_keys(tmp_path, "road", date(1970, 1, 2), date(1970, 1, 9))


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize("copies", [0, 1], ids=["each tuple once", "each tuple in two files"])
def test_pushed_tuple_that_came_again_counts_once(spark, tmp_path, copies):
    """After a restore; two equal tuples of one delivery are two."""
    from datetime import date

    from basestation.history.answer import answer
    from basestation.history.archive_views import has_unique_indexes
    from basestation.history.statement import HistoryRange
    from basestation.replay.statements import read_statements

    catalog = read_schema("traffic: pushed (weight:integer)")
    rows = [{"_tick": tick, "weight": 900} for tick in (7, 7, 8)]
    recording = read_recording(catalog, {"traffic": rows})
    archive(recording, tmp_path, random.Random(1))
    for _ in range(copies):
        archive(recording, tmp_path / "again", random.Random(2))
        for file in (tmp_path / "again").glob("archive/extent=traffic/*/*.parquet"):
            file.rename(tmp_path / "archive" / "extent=traffic" / file.parent.name / file.name)
    day = date(1970, 1, 1)
    assert has_unique_indexes(tmp_path, "traffic", day, day) is not bool(copies)
    [given] = read_statements(["SELECT COUNT(*) AS n FROM traffic [FROM NOW TO NOW SLIDE 1 SEC]"], catalog)
    found = answer(spark, tmp_path, given.plan, {}, HistoryRange(7, 8, 0, 8))
    assert found.column("n").to_pylist() == [2, 1]


@pytest.mark.spark
@pytest.mark.promise("errors-point")
def test_failure_of_spark_is_one_line(spark, data):
    """A scalar subquery with two rows fails in Spark, when it runs."""
    from basestation.archive.spark.session import SparkFailedError
    from basestation.history.answer import answer
    from basestation.history.archive_views import read_tables
    from basestation.history.statement import HistoryRange
    from basestation.replay.statements import read_statements

    catalog = read_schema(SCHEMA)
    [given] = read_statements(["SELECT name FROM grade WHERE low = (SELECT low FROM grade)"], catalog)
    with pytest.raises(SparkFailedError, match=r"Spark failed: .*[Mm]ore than one row") as caught:
        answer(spark, data, given.plan, read_tables(catalog, data), HistoryRange(0, 10, 0, 10))
    assert "\n" not in str(caught.value)
