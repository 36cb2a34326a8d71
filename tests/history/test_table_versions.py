"""Versions of stored extents in Spark."""

import pytest

from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from tests.history.in_spark import views


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
def test_versions_after_an_empty_one_have_their_rows(spark, tmp_path):
    catalog = read_schema("kinds: stored (n:integer)")
    recording = read_recording(catalog, {"kinds": [(0, [{"n": 1}, {"n": 2}]), (6, []), (10, [{"n": 3}])]})
    views(spark, recording, tmp_path, "versions_")
    found = spark.sql("SELECT _version, _position, n FROM versions_e_kinds ORDER BY 1, 2").collect()
    assert [tuple(row) for row in found] == [(0, 0, 1), (0, 1, 2), (10, 0, 3)]
