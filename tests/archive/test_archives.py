"""Readings round-trip through the memory archive and the Parquet archive; files are complete or absent."""

import datetime
import decimal
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import BY_KEY, Batch, mask_of
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type
from basestation.archive.layout import SYSTEM, ArchiveSchemaError, arrow_schema, batch_of, table_of
from basestation.archive.memory import MemoryArchive
from basestation.archive.numbering import TupleNumbers
from basestation.archive.parquet import ParquetArchive
from basestation.planner.catalog import read_schema

ATTRIBUTES = (
    Attribute("temp", Type.FLOAT, unit="Cel", scale=2),
    Attribute("volt", Type.INTEGER),
    Attribute("wind", Type.FLOAT),
    Attribute("name", Type.STRING),
)
EXTENT = Extent("field", ExtentKind.SENSED, Schema(ATTRIBUTES), 10, (3, 4))
MIDNIGHT = 1_763_510_400  # 2025-11-19T00:00:00Z


def batch(*rows, names=("temp", "volt", "wind", "name")):
    """From (tick, site, temp, volt, wind, name), None for null."""
    size = len(rows)
    columns, valid = {}, {}
    for at, (name, kind, zero) in enumerate(
        (("temp", np.int64, 0), ("volt", np.int64, 0), ("wind", float, 0.0), ("name", object, None)), start=2
    ):
        if name in names:
            there = np.array([row[at] is not None for row in rows], bool)
            columns[name] = np.array([zero if row[at] is None else row[at] for row in rows], kind)
            if not there.all():
                valid[name] = there
    tick, site = (np.array([row[at] for row in rows], np.int64) for at in (0, 1))
    return Batch(tick, site, tick + 3, np.ones(size, np.int64), columns, valid)


def numbered(*rows):
    return TupleNumbers().number(EXTENT, batch(*rows))


def rows_of(found):
    columns = [
        [value if there else None for value, there in zip(found.columns[n].tolist(), mask_of(found, n), strict=True)]
        for n in EXTENT.schema.names
    ]
    return list(zip(found.tick.tolist(), found.site.tolist(), *columns, strict=True))


INT64 = st.integers(-(10**17), 10**17)
row = st.tuples(
    st.integers(MIDNIGHT - 20, MIDNIGHT + 20),
    st.integers(1, 9),
    st.none() | INT64,
    st.none() | st.integers(-(2**63), 2**63 - 1),
    st.none() | st.floats(allow_nan=False, allow_infinity=False),
    st.none() | st.text(max_size=5),
)


@given(st.lists(row, max_size=8))
def test_batch_roundtrips_through_table(rows):
    found = batch_of(EXTENT, table_of(EXTENT, numbered(*rows), 1000))
    assert rows_of(found) == rows
    assert found.arrival.tolist() == [row[0] + 3 for row in rows]


def test_scaled_attribute_is_exact_decimal():
    table = table_of(EXTENT, numbered((0, 3, -2005, 1, 1.5, "x"), (10, 3, None, 1, 1.5, "x")), 1000)
    assert table.schema.field("temp").type == pa.decimal128(18, 2)
    assert [str(value) for value in table.column("temp").to_pylist()] == ["-20.05", "None"]
    assert table.column("_time").to_pylist()[1] == datetime.datetime(1970, 1, 1, 0, 0, 10, tzinfo=datetime.UTC)
    assert table.schema.field("temp").metadata == {b"unit": b"Cel"}
    table.validate(full=True)


@pytest.fixture(params=["memory", "parquet"])
def archive(request, tmp_path):
    return MemoryArchive() if request.param == "memory" else ParquetArchive(tmp_path, 1000)


def test_archive_returns_readings_in_order(archive):
    archive.append(EXTENT, batch((MIDNIGHT, 4, 1, 1, 1.0, "a"), (MIDNIGHT - 1, 3, None, 2, None, None)))
    archive.append(EXTENT, batch((MIDNIGHT, 3, 5, 3, 3.0, "c")))
    assert rows_of(archive.read(EXTENT, MIDNIGHT - 1, MIDNIGHT)) == [
        (MIDNIGHT - 1, 3, None, 2, None, None),
        (MIDNIGHT, 3, 5, 3, 3.0, "c"),
        (MIDNIGHT, 4, 1, 1, 1.0, "a"),
    ]
    assert len(archive.read(EXTENT, MIDNIGHT, MIDNIGHT)) == 2
    assert len(archive.read(EXTENT, MIDNIGHT + 1, MIDNIGHT + 9)) == 0


def test_unsampled_columns_are_null(archive):
    archive.append(EXTENT, batch((MIDNIGHT, 3, 7, None, None, None), names=("temp",)))
    assert rows_of(archive.read(EXTENT, 0, 2**40)) == [(MIDNIGHT, 3, 7, None, None, None)]


def test_files_by_extent_and_day_continue_after_restart(tmp_path):
    ParquetArchive(tmp_path, 1000).append(
        EXTENT, batch((MIDNIGHT - 1, 3, 1, 1, 1.0, "a"), (MIDNIGHT, 3, 1, 1, 1.0, "a"))
    )
    ParquetArchive(tmp_path, 1000).append(EXTENT, batch((MIDNIGHT, 4, 1, 1, 1.0, "a")))
    files = [str(file.relative_to(tmp_path)) for file in ParquetArchive(tmp_path, 1000).files(EXTENT)]
    assert [re.sub(r"-[0-9a-f]{8}\.", ".", file) for file in files] == [
        "archive/extent=field/date=2025-11-18/part-000000000001.zstd.parquet",
        "archive/extent=field/date=2025-11-19/part-000000000001.zstd.parquet",
        "archive/extent=field/date=2025-11-19/part-000000000001.zstd.parquet",
    ]


def test_indexes_count_on_and_corrections_keep_them(archive):
    """A correction names its reading by key, with index 0, and the extent counts its revisions. An inserted tuple has an index too."""
    archive.append(EXTENT, batch((0, 3, 1, 1, 1.0, "a"), (0, 4, 1, 1, 1.0, "a")))
    corrections = batch((0, 4, 2, 1, 1.0, "a"), (0, 4, 3, 1, 1.0, "a"), (0, 3, 4, 1, 1.0, "a"), (5, 3, 5, 1, 1.0, "a"))
    archive.append_corrections(EXTENT, replace(corrections, replaces=np.array([BY_KEY, BY_KEY, BY_KEY, 0])))
    archive.append(EXTENT, batch((6, 3, 6, 1, 1.0, "a")))
    if isinstance(archive, MemoryArchive):
        [found] = archive.take_all().values()
        rows = list(zip(found.columns["temp"], found.columns["_index"], found.columns["_revision"], strict=True))
    else:
        tables = [pq.read_table(file, partitioning=None) for file in archive.files(EXTENT)]
        table = pa.concat_tables(tables).sort_by([("_arrival", "ascending"), ("temp", "ascending")])
        values = [int(temp * 100) for temp in table["temp"].to_pylist()]
        rows = list(zip(values, table["_index"].to_pylist(), table["_revision"].to_pylist(), strict=True))
    assert sorted(rows) == [(1, 1, 0), (1, 2, 0), (2, 0, 1), (3, 0, 2), (4, 0, 3), (5, 3, 4), (6, 4, 0)]


def narrow_file(folder, name, array, metadata=None):
    """A file of an older schema: `temp` and one other column."""
    fields = [
        *SYSTEM,
        pa.field("temp", pa.decimal128(18, 1), metadata={"unit": "Cel"}),
        pa.field(name, array.type, metadata=metadata),
    ]
    system = [pa.array([7], field.type) for field in SYSTEM]
    temp = pa.array([decimal.Decimal("20.5")], pa.decimal128(18, 1))
    table = pa.Table.from_arrays([*system, temp, array], schema=pa.schema(fields))
    path = folder / "archive" / "extent=field" / "date=1970-01-01" / "part-000000000001-00000000.zstd.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)


def test_older_schema_is_read_under_newer(tmp_path):
    """`temp` had one digit less, `wind` was an integer, `volt` and `name` were added."""
    narrow_file(tmp_path, "wind", pa.array([4]))
    assert rows_of(ParquetArchive(tmp_path, 1000).read(EXTENT, 0, 10)) == [(7, 7, 2050, None, 4.0, None)]


@pytest.mark.parametrize(
    ("name", "array", "metadata", "message"),
    [
        ("volt", pa.array([2.5]), None, "expected `volt` as int64, found double"),
        ("wind", pa.array([2.5]), {"unit": "m/s"}, "expected `wind` in no unit, found m/s"),
    ],
)
def test_schema_that_does_not_fit_is_named(tmp_path, name, array, metadata, message):
    narrow_file(tmp_path, name, array, metadata)
    with pytest.raises(ArchiveSchemaError, match=message) as caught:
        ParquetArchive(tmp_path, 1000).read(EXTENT, 0, 10)
    assert "part-000000000001" in str(caught.value)


@pytest.mark.promise("end-to-end")
def test_unfinished_file_is_not_in_archive(tmp_path, monkeypatch):
    """The rename fails: the staged file is not read, and does not block the next append."""
    archive = ParquetArchive(tmp_path, 1000)

    def cut(*_):
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr("basestation.archive.parquet.Path.rename", cut)
        with pytest.raises(OSError, match="no power"):
            archive.append(EXTENT, batch((0, 3, 1, 1, 1.0, "a")))
    assert not list((tmp_path / "staging").iterdir())
    assert len(archive.read(EXTENT, 0, 10)) == 0
    archive.append(EXTENT, batch((0, 3, 2, 1, 1.0, "a")))
    assert archive.read(EXTENT, 0, 10).columns["temp"].tolist() == [2]


def test_file_is_sorted_by_site_and_tick(tmp_path):
    archive = ParquetArchive(tmp_path, 1000)
    archive.append(EXTENT, batch((7, 4, 1, 1, 1.0, "a"), (7, 3, 1, 1, 1.0, "a"), (6, 3, 1, 1, 1.0, "a")))
    table = pq.read_table(archive.files(EXTENT)[0], partitioning=None)
    assert table.select(["_tick", "_site"]).to_pydict() == {"_tick": [6, 7, 7], "_site": [3, 3, 4]}


def test_tick_across_midnight_is_in_the_day_in_which_it_begins(tmp_path):
    """7 s do not divide a day: the first tick of a day begins some seconds after midnight."""
    tick_ms, day_ms = 7_000, 86_400_000
    archive = ParquetArchive(tmp_path, tick_ms)
    noons = [(day * day_ms + day_ms // 2) // tick_ms for day in range(1, 15)]
    archive.append(EXTENT, batch(*((tick, 3, 1, 1, 1.0, "a") for tick in noons)))
    found = {
        path.parent.name: pq.read_table(path, partitioning=None)["_tick"].to_pylist() for path in archive.files(EXTENT)
    }
    assert found == {f"date=1970-01-{day + 1:02}": [tick] for day, tick in enumerate(noons, 1)}


def test_files_carry_schema(tmp_path):
    archive = ParquetArchive(tmp_path, 1000)
    archive.append(EXTENT, batch((0, 3, 1, 1, 1.0, "a")))
    [file] = archive.files(EXTENT)
    found = pq.read_schema(file)
    assert found.remove_metadata() == arrow_schema(EXTENT, 1000).remove_metadata()
    assert found.metadata[b"moteloom.tick_ms"] == b"1000" and found.metadata[b"moteloom.layout"] == b"2"
    other = Extent("field", ExtentKind.SENSED, Schema((*ATTRIBUTES[:3], Attribute("name", Type.STRING, unit="m"))), 10)
    assert arrow_schema(other, 1000).metadata[b"moteloom.schema"] != found.metadata[b"moteloom.schema"]


def test_example_of_the_page_reads_the_archive(tmp_path, monkeypatch):
    """docs/archive.md reads it with pandas, Polars, DuckDB and pyarrow."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "archive.md").read_text()
    code = page.split("```python\n")[1].split("```")[0].replace("extent=lab", "extent=field")
    readings = batch(
        (MIDNIGHT - 1, 7, 150, 1, 1.0, "a"), (MIDNIGHT, 7, 250, None, 1.0, "b"), (MIDNIGHT, 8, None, 1, 1.0, "c")
    )
    ParquetArchive(tmp_path / "moteloom-data", 1000).append(EXTENT, readings)
    monkeypatch.chdir(tmp_path)
    scope = {}
    exec(code.split("FOLDER = ")[0] + "FOLDER = " + code.split("FOLDER = ")[1].split("\n")[0], scope)
    pandas_, polars_, duckdb_, arrow = [eval(line, scope) for line in code.strip().splitlines()[-4:]]
    temps = [None, decimal.Decimal("1.50"), decimal.Decimal("2.50")]
    assert sorted(pandas_["temp"].tolist(), key=str) == sorted(temps, key=str)
    assert pandas_["_index"].tolist() == [1, 2, 3] and len(set(pandas_["date"])) == 2
    assert polars_["_site"].to_list() == [7, 7] and polars_["temp"].to_list() == temps[1:]
    assert sorted(duckdb_.fetchall()) == [(7, 2.0), (8, None)]
    assert arrow.column_names == ["_time", "temp"] and arrow["temp"].to_pylist() == [temps[1], temps[2], None]
    moment = datetime.datetime(2025, 11, 19, tzinfo=datetime.UTC)
    assert arrow["_time"].to_pylist()[1:] == [moment, moment]


@pytest.mark.promise("end-to-end")
def test_spark_is_imported_lazily():
    """A gateway without Java runs everything else: importing the whole station must not import pyspark."""
    script = (
        "import basestation.station.service, basestation.archive.spark.session, sys; sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


def test_oldest_days_are_taken_and_the_rest_stays():
    catalog = read_schema("hits: pushed (k:integer)\nother: pushed (k:integer)")
    archive, day = MemoryArchive(), 86_400
    for name, days in (("hits", [3, 0, 1, 0]), ("other", [1, 2])):
        tick = np.array(days) * day + 7
        values = {"k": np.array(days)}
        archive.append(catalog.extents[name], Batch(tick, 0 * tick, tick, 0 * tick + 1, values))
    first = archive.take_oldest(2, catalog.tick_ms)
    assert {name: batch.columns["k"].tolist() for name, batch in first.items()} == {"hits": [0, 1, 0]}
    assert archive.rows == 3
    archive.give_back(first)
    assert archive.rows == 6
    rest = [archive.take_oldest(2, catalog.tick_ms) for _ in range(4)]
    assert [{name: sorted(batch.columns["k"].tolist()) for name, batch in taken.items()} for taken in rest] == [
        {"hits": [0, 0, 1]}, {"other": [1, 2]}, {"hits": [3]}, {}]  # fmt: skip
