"""`moteloom history` over archives that are not as they should be: each names the file or the days, before Spark starts."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from basestation.history.answer import answer
from basestation.history.file_checks import find_damaged
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.station.declarations import read_declarations
from basestation.station.history_question import read_question
from gateway.cli import main
from tests.history.in_spark import archive

DAY = 86_400
SCHEMA = "lab: sensed (site:integer, temp:integer) every 6 hours at sites 1, 2 wait 5 sec\n"
QUERY = "SELECT COUNT(*) AS n FROM lab [FROM NOW-18 HOUR TO NOW SLIDE 1 DAY]"


class StartedError(Exception):
    """Spark would be started now."""


@pytest.fixture
def data(tmp_path, monkeypatch):
    """The first and the third day of an archive. Spark does not start."""
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    ticks = [*range(0, DAY, DAY // 4), *range(2 * DAY, 3 * DAY, DAY // 4)]
    for site in (1, 2):  # two files or more for each day
        rows = [{"_tick": tick, "_site": site, "temp": site} for tick in ticks]
        archive(read_recording(read_schema(SCHEMA), {"lab": rows}), tmp_path, random.Random(site))

    def start(*_, **__):
        raise StartedError

    monkeypatch.setattr("basestation.archive.spark.session.start_session", start)
    return tmp_path


def history(data, *arguments):
    return main(["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), *arguments])


def files_of(data, day="*"):
    return sorted(data.glob(f"archive/extent=lab/date={day}/*.parquet"))


def damage_pages(path):
    """Change the pages of a file; its footer stays whole."""
    content = bytearray(path.read_bytes())
    content[4:200] = bytes(196)
    path.write_bytes(content)


@pytest.mark.promise("errors-point")
def test_days_without_readings_are_named(data, capsys):
    with pytest.raises(StartedError):
        history(data, QUERY)
    assert "no reading of `lab` on 1 days of the range: 1970-01-02" in capsys.readouterr().err
    with pytest.raises(StartedError):
        history(data, QUERY, "--from", str(2 * DAY))
    assert "no reading" not in capsys.readouterr().err


@pytest.mark.parametrize("ends", [("0", "9"), ("900000", "990000")], ids=["before the first", "after the last"])
@pytest.mark.promise("errors-point")
def test_range_outside_archive_is_refused(data, capsys, ends):
    for path in files_of(data, "1970-01-01"):
        path.unlink()
    assert history(data, QUERY, "--from", ends[0], "--to", ends[1]) == 2
    assert "the archive has readings of the ticks 172800 to 237600" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (SCHEMA.replace("temp:integer", "temp:string"), "expected `temp` as string, found int64"),
        (SCHEMA.replace("site:integer, temp", "site:integer, gust"), None),
        (SCHEMA.replace("temp:integer", "temp:float"), None),
    ],
    ids=["other type", "attribute added", "widened"],
)
@pytest.mark.promise("errors-point", "bad-files")
def test_archive_of_other_schema_is_named(data, capsys, schema, says):
    (data / "schema.sneeql").write_text(schema)
    query = "SELECT COUNT(*) AS n FROM lab [NOW]"
    if says is None:
        with pytest.raises(StartedError):
            history(data, query)
        return
    assert history(data, query) == 3
    said = capsys.readouterr().err
    assert says in said and str(files_of(data)[0]) in said


def test_ticks_of_other_length_are_named(data, capsys):
    [file, *_] = files_of(data)
    table = pq.read_table(file, partitioning=None)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"moteloom.tick_ms": b"500"}), file)
    assert history(data, QUERY) == 3
    assert f"{file}: expected ticks of 1000 ms, found 500 ms" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "says"),
    [("notes.parquet", None), ("part-x.zstd.parquet", "is no file of an archive"), ("../date=today", "expected a day such as")],
)  # fmt: skip
@pytest.mark.promise("bad-files")
def test_foreign_file_is_ignored_or_named(data, capsys, name, says):
    """Only names of the archive are read."""
    place = files_of(data)[0].parent / name
    if place.suffix:
        pq.write_table(pa.table({"_tick": [1], "_arrival": [1]}), place)
    else:
        place.mkdir()
    if says is None:
        with pytest.raises(StartedError):
            history(data, QUERY)
        return
    assert history(data, QUERY) == 3
    said = capsys.readouterr().err
    assert says in said and place.name in said


@pytest.mark.promise("bad-files")
def test_damaged_files_are_left_out_only_if_asked(data, capsys):
    [cut, *_], [other, *_] = files_of(data, "1970-01-01"), files_of(data, "1970-01-03")
    cut.write_bytes(cut.read_bytes()[:-9])
    damage_pages(other)
    assert history(data, QUERY) == 3
    assert str(cut) in capsys.readouterr().err
    assert {*find_damaged(data, "lab")} == {cut, other}
    with pytest.raises(StartedError):
        history(data, QUERY, "--skip-damaged")
    said = capsys.readouterr().err
    assert f"left out {cut}" in said and f"left out {other}" in said


@pytest.mark.spark
@pytest.mark.promise("bad-files")
def test_rest_is_answered_without_damaged_and_foreign_files(spark, data):
    [damaged, *rest] = files_of(data, "1970-01-01")
    kept = sum(pq.read_metadata(path).num_rows for path in rest)
    damage_pages(damaged)
    pq.write_table(pa.table({"_tick": [1], "_site": [1]}), damaged.with_name("notes.parquet"))
    catalog, tables = read_declarations(data, None, str(data / "schema.sneeql"))
    question = read_question(data, catalog, tables, QUERY, until=DAY, begin=0, skip_damaged=True)
    table = answer(spark, data, question.plan, tables, question.span, question.skipped)
    assert [*question.skipped] == [damaged]
    assert sum(table.column("n").to_pylist()) == kept > 0
