"""`moteloom pipeline`: daily readings and rollups of archives, equal to a replay of the same readings, however the files come."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter

import pyarrow.dataset
import pytest

from acquisition.extent import ExtentKind
from basestation.archive.spark.session import SparkFailedError
from basestation.cli.pipeline import repeat
from basestation.history.pipeline import Pipeline, Rollup, check_rollup, name_sites
from basestation.history.refusal import SparkRefusedError
from basestation.planner.catalog import read_schema
from basestation.replay.driver import Replay
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_statements
from gateway.cli import main
from tests.history.in_spark import archive

HOUR, DAY = 3_600, 86_400
SCHEMA = "lab: sensed (temp:integer, wind:float {scale 1}) every 2 hours at sites 1, 2 wait 5 sec\n"
ROLLUPS = {
    "span": "SELECT site, COUNT(*) AS n, MAX(temp) AS most, AVG(wind) AS wind FROM lab [FROM NOW-9 HOUR TO NOW-2 HOUR SLIDE 6 HOUR] GROUP BY site",
    "count": "SELECT COUNT(*) AS n FROM lab [FROM NOW-1 HOUR TO NOW SLIDE 4 HOUR]",
}
"""Windows of the one reach into the next day; the other has windows without readings."""
COMBINED = (
    "SELECT COUNT(*) AS n, MIN(a.temp) AS least FROM lab [FROM NOW-3 HOUR TO NOW SLIDE 10 HOUR] a, "
    "lab [FROM NOW-5 HOUR TO NOW SLIDE 14 HOUR] b WHERE a.site = b.site"
)
"""Windows that slide otherwise."""


def rows_of(hours, sites=(1, 2)):
    return [{"_tick": h * HOUR, "_site": s, "temp": h % 11 + s, "wind": h / 10} for h in hours for s in sites]


def plans(catalog):
    catalog = name_sites(catalog)
    rollups = [Rollup(name, text, read_statements([text], catalog)[0].plan) for name, text in ROLLUPS.items()]
    readings = {
        e.name: read_statements([f"SELECT * FROM {e.name}"], catalog)[0].plan
        for e in catalog
        if e.kind is not ExtentKind.STORED
    }
    return readings, rollups


def stored(out, folder):
    """The rows of a folder without `_time` and `date`."""
    table = pyarrow.dataset.dataset(out / folder, partitioning="hive").to_table().drop_columns(["_time", "date"])
    return sorted(tuple(row.values()) for row in table.to_pylist())


def replayed(rows, text):
    """The windows of a replay of rows: (tick, number, values of a row)."""
    catalog = name_sites(read_schema(SCHEMA))
    recording = read_recording(catalog, {"lab": rows})
    statements = read_statements([text], catalog)
    run = Replay(recording, statements, recording.end(), begin=recording.begin())
    result = Result(run.queries)
    for updates in run.updates():
        result.add(updates)
    result.finish(run.until, run.ledger())
    return sorted((*key[:2], *row) for key, rows in result.current(1).items() for row in rows)


def assert_equals_replay(out, rows):
    for name, text in ROLLUPS.items():
        assert stored(out, f"rollups/{name}") == replayed(rows, text), name
    found = [row[:3] for row in stored(out, "readings/extent=lab")]
    assert found == sorted((row["_tick"], row["_site"], row["temp"]) for row in rows)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.promise("history-is-live")
def test_rollups_equal_replay_after_each_run(spark, tmp_path, monkeypatch):
    """New files, late ones, days after and before the others with a gap between, copies, and a run that fails half way."""
    data, out = tmp_path / "data", tmp_path / "out"
    readings, rollups = plans(read_schema(SCHEMA))

    def add(rows):
        archive(read_recording(read_schema(SCHEMA), {"lab": rows}), data, random.Random(1))

    def pipeline():
        return Pipeline(spark.newSession(), data, out, readings, {}, rollups)

    first = rows_of(range(78, 112, 2))
    add(first)
    written = pipeline().run()
    assert written["readings/extent=lab"] == {"1970-01-04", "1970-01-05"}
    assert_equals_replay(out, first)
    assert pipeline().run() == {}

    more = rows_of([4], sites=(2,)) + rows_of([76], sites=(1,)) + rows_of(range(172, 182, 2))
    add(more + first[-2:])  # two come again
    failing = pipeline()
    write, calls = failing._write, []

    def fail(folder, *rest):
        calls.append(folder.name)
        if len(calls) == 2:
            raise OSError("the disk is full")
        write(folder, *rest)

    monkeypatch.setattr(failing, "_write", fail)
    with pytest.raises(OSError, match="the disk is full"):
        failing.run()
    written = pipeline().run()
    assert written["readings/extent=lab"] == {"1970-01-01", "1970-01-04", "1970-01-05", "1970-01-08"}
    assert_equals_replay(out, first + more)


@pytest.mark.spark
@pytest.mark.timeout(600)
@pytest.mark.promise("history-is-live")
def test_rollup_that_combines_windows_equals_replay(spark, tmp_path):
    """A day alone lacks windows of the day before, which its own are combined with. The clock of a mote is wrong."""
    catalog, data, out = name_sites(read_schema(SCHEMA)), tmp_path / "data", tmp_path / "out"
    readings, _ = plans(catalog)
    rollup = Rollup("combined", COMBINED, read_statements([COMBINED], catalog)[0].plan)
    rows = rows_of(range(78, 250, 4))
    wrong = [{"_tick": 4_000 * HOUR, "_site": 1, "_arrival": 90 * HOUR, "temp": 1, "wind": 0.5}]
    late = [row for row in rows if row["_tick"] == 202 * HOUR]
    for add in ([row for row in rows if row not in late] + wrong, late):
        archive(read_recording(catalog, {"lab": add}), data, random.Random(1))
        Pipeline(spark.newSession(), data, out, readings, {}, [rollup]).run()
    assert stored(out, "rollups/combined") == replayed(rows + wrong, COMBINED)


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_changed_rollup_is_computed_for_all_days(spark, tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    readings, rollups = plans(read_schema(SCHEMA))
    rows = rows_of(range(0, 40, 2))
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), data, random.Random(1))
    Pipeline(spark.newSession(), data, out, readings, {}, rollups[1:]).run()
    text = ROLLUPS["span"]
    written = Pipeline(spark.newSession(), data, out, readings, {}, [Rollup("count", text, rollups[0].plan)]).run()
    assert {*written} == {"rollups/count"}
    assert stored(out, "rollups/count") == replayed(rows, text)
    assert json.loads((out / "rollups.json").read_text()) == {"count": text}


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_late_reading_of_a_dropped_day_leaves_it_as_it_was(spark, tmp_path):
    """The station drops the first day; a late reading of it comes, and one of the last day."""
    data, out = tmp_path / "data", tmp_path / "out"
    readings, rollups = plans(read_schema(SCHEMA))
    first, more, late = rows_of(range(0, 60, 2)), rows_of([60]), rows_of([4], sites=(1,))
    archive(read_recording(read_schema(SCHEMA), {"lab": first}), data, random.Random(1))
    Pipeline(spark.newSession(), data, out, readings, {}, rollups).run()
    shutil.rmtree(data / "archive" / "extent=lab" / "date=1970-01-01")
    archive(read_recording(read_schema(SCHEMA), {"lab": late + more}), data, random.Random(1))
    pipeline = Pipeline(spark.newSession(), data, out, readings, {}, rollups)
    written = pipeline.run()
    assert_equals_replay(out, first + more)
    assert written["readings/extent=lab"] == {"1970-01-03"} and pipeline.kept["readings/extent=lab"] == {"1970-01-01"}


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_files_older_than_the_newest_by_years_are_taken(spark, tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    readings, _ = plans(read_schema(SCHEMA))
    for hours, written in ((range(24, 30, 2), 1_790_000_000), (range(0, 6, 2), 1_600_000_000)):
        known = set(data.rglob("*.parquet"))
        archive(read_recording(read_schema(SCHEMA), {"lab": rows_of(hours)}), data, random.Random(1))
        for path in {*data.rglob("*.parquet")} - known:
            os.utime(path, (written, written))
        Pipeline(spark.newSession(), data, out, readings, {}, []).run()
    assert len(stored(out, "readings/extent=lab")) == 12


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_run_cut_short_at_the_list_of_rollups_is_repeated(spark, tmp_path, monkeypatch):
    """The disk fails while the list of rollups is written, at each of its two times."""
    data, out = tmp_path / "data", tmp_path / "out"
    readings, rollups = plans(read_schema(SCHEMA))
    rows = rows_of(range(0, 40, 2))
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), data, random.Random(1))
    Pipeline(spark.newSession(), data, out, readings, {}, [Rollup("count", ROLLUPS["span"], rollups[0].plan)]).run()
    write_text, cut = type(out).write_text, []

    def fail(path, text, **how):
        if text == cut[-1]:
            write_text(path, text[:3], **how)
            raise OSError("the disk is full")
        return write_text(path, text, **how)

    texts = {rollup.name: rollup.text for rollup in rollups}
    for each in ({}, texts):
        cut.append(json.dumps(each))
        monkeypatch.setattr(type(out), "write_text", fail)
        with pytest.raises(OSError, match="the disk is full"):
            Pipeline(spark.newSession(), data, out, readings, {}, rollups).run()
        monkeypatch.undo()
    Pipeline(spark.newSession(), data, out, readings, {}, rollups).run()
    assert_equals_replay(out, rows)


@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.promise("history-is-live")
def test_killed_continuous_pipeline_keeps_each_window_once(spark, tmp_path, rng, counts, tally):
    """`--every` with kill -9 for it and its Spark while new files, late ones too, are taken; another run goes on."""
    data, out, schema = tmp_path / "data", tmp_path / "out", tmp_path / "schema.sneeql"
    schema.write_text(SCHEMA)
    readings, rollups = plans(read_schema(SCHEMA))
    hours, rows, kills = list(range(78, 200, 2)), [], Counter()
    rng.shuffle(hours)

    def add(count):
        new = rows_of(sorted(hours.pop() for _ in range(count)))
        rows.extend(new)
        archive(read_recording(read_schema(SCHEMA), {"lab": new}), data, random.Random(len(rows)))

    add(12)
    command = [sys.executable, "-m", "gateway.cli", "pipeline", "--data", data, "--schema", schema, "--out", out]
    command += ["--every", "1s", "-o", "json", *(f"--rollup={name}={text}" for name, text in ROLLUPS.items())]
    for _ in range(counts(1, 5)):
        with (tmp_path / "errors").open("w") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True
            )
        try:
            assert process.stdout.readline(), (tmp_path / "errors").read_text()
            add(6)
            time.sleep(rng.uniform(0, 3))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        kills["within a run" if list(out.rglob("_temporary")) else "between two"] += 1
        add(2)
    Pipeline(spark.newSession(), data, out, readings, {}, rollups).run()
    assert_equals_replay(out, rows)
    assert Pipeline(spark.newSession(), data, out, readings, {}, rollups).run() == {}
    tally("kills of a pipeline", kills)


def test_failed_run_is_reported_and_repeated(capsys):
    """As `--every` does; it ends where the test interrupts the third wait."""
    outcomes, waits = (
        [SparkFailedError("Spark failed: full"), OSError("no room"), {"readings/extent=lab": {"1970-01-04"}}],
        [],
    )

    def run():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def sleep(seconds):
        waits.append(seconds)
        if not outcomes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repeat(run, 5_000, "json", sleep)
    said = capsys.readouterr()
    assert waits == [5, 5, 5] and said.err.count("the next run repeats this one") == 2
    assert json.loads(said.out) == {"folder": "readings/extent=lab", "days": ["1970-01-04"]}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("SELECT * FROM lab", "no query over time windows"),
        ("SELECT COUNT(*) AS date FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]", "a column is named `date`"),
        ("SELECT FIRST(temp) FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]", "order of tuples"),
        ("SELECT COUNT(*) FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY] FOR 9 DAYS", "FOR or SINCE"),
    ],
)
def test_rollups_that_need_more_than_their_day_are_refused(text, says):
    [statement] = read_statements([text], read_schema(SCHEMA))
    with pytest.raises(SparkRefusedError, match=says):
        check_rollup(Rollup("x", text, statement.plan))


@pytest.mark.parametrize(
    ("rollups", "code", "says"),
    [
        (["SELECT COUNT(*) FROM lab"], 2, "expected NAME=QUERY"),
        (["../x=SELECT COUNT(*) FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]"], 2, "expected a name of letters"),
        (["x=SELECT COUNT(*) FROM lba [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]"], 2, "lba"),
        (["x=SELECT FIRST(temp) FROM lab [FROM NOW-1 DAY TO NOW SLIDE 1 DAY]"], 4, "rollup `x`: it goes by the order"),
    ],
)
@pytest.mark.promise("errors-point")
def test_wrong_rollup_is_refused_before_spark_starts(tmp_path, capsys, rollups, code, says):
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    given = [argument for rollup in rollups for argument in ("--rollup", rollup)]
    arguments = ["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--schema", str(tmp_path / "schema.sneeql")]
    assert main(["pipeline", *arguments, *given]) == code
    said = capsys.readouterr()
    assert says in said.err and "starting Spark" not in said.err
    assert not (tmp_path / "out").exists()
