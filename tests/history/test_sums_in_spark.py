"""Sums in Spark: one sum where the footers of the files show that it is exact, two where they do not; and differences of windows."""

import random

import pyarrow.parquet as pq
import pytest

from basestation.archive.layout import SUFFIX
from basestation.history.answer import answer
from basestation.history.archive_views import describe_extent, open_views
from basestation.history.compiler import compile_plan
from basestation.history.statement import HistoryRange
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_statements
from tests.history.in_spark import archive

SCHEMA = "lab: pushed (n:integer, level:float {scale 2}, name:string)\n"
TOTALS = "SELECT SUM(n) AS total, AVG(n) AS mean, SUM(level) AS levels FROM lab [FROM NOW-9 TO NOW SLIDE 10 SEC]"


def write(folder, values):
    catalog = read_schema(SCHEMA)
    rows = [{"_tick": at, "n": n, "level": level, "name": None} for at, (n, level) in enumerate(values, 1)]
    archive(read_recording(catalog, {"lab": rows}), folder, random.Random(1))
    return catalog


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize(
    ("numbers", "is_one_sum"),
    [([3, 4, None, -5], True), ([2**52, 2**52 - 1, 1], False), ([2**62, 2**61, 3], False), ([-(2**63), 2, 4], False),
     ([2**62, 2**62, 2**62], False)],
)  # fmt: skip
def test_sum_is_exact_whatever_the_footers_allow(spark, tmp_path, numbers, is_one_sum):
    catalog = write(tmp_path, [(n, 0.25) for n in numbers])
    [given] = read_statements([TOTALS], catalog)
    span = HistoryRange(10, 10, 0, 10)
    views = open_views(spark, tmp_path, catalog, list(catalog), {})
    assert ("shiftright" not in compile_plan(given.plan, views, span).text) == is_one_sum
    [found] = answer(spark, tmp_path, given.plan, {}, span).to_pylist()
    known = [n for n in numbers if n is not None]
    total = sum(known)
    assert found["total"] == (total if abs(total) < 2**63 else None)
    assert (found["mean"], found["levels"]) == (total / len(known), 0.25 * len(numbers))


def test_footers_bound_each_number(tmp_path):
    """Of a column without statistics in one file nothing is known; one with nulls only has no values."""
    write(tmp_path, [(-7, 1.25), (3, None), (None, -90.5)])
    assert largest(tmp_path) == {"n": 7.0, "level": 90.5}
    [file, *_] = sorted(tmp_path.rglob(f"part-*{SUFFIX}"))
    table = pq.read_table(file, partitioning=None)
    pq.write_table(
        table,
        file.with_name(f"part-9{SUFFIX}"),
        write_statistics=[name for name in table.column_names if name != "n"],
    )
    assert largest(tmp_path) == {"level": 90.5}


def largest(folder):
    return {name: float(value) for name, value in describe_extent(folder, "lab").largest.items()}


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
@pytest.mark.parametrize(
    ("converter", "expected"), [("ISTREAM", [(1, 3), (1, 3), (2, 4), (3, 3)]), ("DSTREAM", [(2, 3), (2, 3), (3, 4)])]
)
def test_difference_of_windows_counts_equal_rows(spark, tmp_path, converter, expected):
    """
    tick       1      2    3
    windows  3, 3     4    3
    """
    catalog = read_schema(SCHEMA)
    rows = [{"_tick": tick, "n": n, "level": None, "name": "a"} for tick, n in ((1, 3), (1, 3), (2, 4), (3, 3))]
    archive(read_recording(catalog, {"lab": rows}), tmp_path, random.Random(1))
    [given] = read_statements([f"{converter}(SELECT n, name FROM lab [FROM NOW TO NOW SLIDE 1 SEC])"], catalog)
    found = answer(spark, tmp_path, given.plan, {}, HistoryRange(1, 3, 1, 3)).to_pylist()
    assert [(row["_tick"], row["n"]) for row in found] == expected
