"""Readings round-trip through the memory archive and the Parquet archive; files are complete or absent."""

import datetime
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.batch import Batch, mask_of
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type
from basestation.archive.layout import arrow_schema, batch_of, table_of
from basestation.archive.memory import MemoryArchive
from basestation.archive.parquet import ParquetArchive

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
    found = batch_of(EXTENT, table_of(EXTENT, batch(*rows), 1000))
    assert rows_of(found) == rows
    assert found.arrival.tolist() == [row[0] + 3 for row in rows]


def test_scaled_attribute_is_exact_decimal():
    table = table_of(EXTENT, batch((0, 3, -2005, 1, 1.5, "x"), (10, 3, None, 1, 1.5, "x")), 1000)
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


def test_file_is_sorted_by_tick_and_site(tmp_path):
    archive = ParquetArchive(tmp_path, 1000)
    archive.append(EXTENT, batch((7, 4, 1, 1, 1.0, "a"), (7, 3, 1, 1, 1.0, "a"), (6, 9, 1, 1, 1.0, "a")))
    table = pq.read_table(archive.files(EXTENT)[0], partitioning=None)
    assert table.select(["_tick", "_site"]).to_pydict() == {"_tick": [6, 7, 7], "_site": [9, 3, 4]}


def test_files_carry_schema(tmp_path):
    archive = ParquetArchive(tmp_path, 1000)
    archive.append(EXTENT, batch((0, 3, 1, 1, 1.0, "a")))
    [file] = archive.files(EXTENT)
    found = pq.read_schema(file)
    assert found.remove_metadata() == arrow_schema(EXTENT, 1000).remove_metadata()
    assert found.metadata[b"moteloom.tick_ms"] == b"1000"


@pytest.mark.promise("end-to-end")
def test_spark_is_imported_lazily():
    """A gateway without Java runs everything else: importing the whole station must not import pyspark."""
    script = (
        "import basestation.station.service, basestation.archive.spark.session, sys; sys.exit('pyspark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
