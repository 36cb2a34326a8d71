"""`moteloom.history`: data frames of Spark for Python programs, and the example that looks for drift."""

import random
import runpy
import sys

import pytest

import moteloom
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from basestation.station.history_question import HistoryQuestionError
from tests.conftest import ROOT
from tests.history.in_spark import archive

DAY = 86_400
SCHEMA = "lab: sensed (site:integer, temp:float) every 1 hour at sites 1, 2, 3, 4, 5, 6 wait 5 sec\n"
DRIFT = {2: 0.1, 5: -0.2}
"""By site, in a day. Neighbours share a room of three."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Ten days of six sites, which go up and down together but for the drift of two."""
    root = tmp_path_factory.mktemp("drift")
    (root / "schema.sneeql").write_text(SCHEMA)
    (root / "rooms.csv").write_text("site,room\n1,a\n2,a\n3,a\n4,b\n5,b\n6,b\n")
    rows = [
        {"_tick": at * 3600, "_site": site, "temp": 20.0 + at % 7 + site + DRIFT.get(site, 0.0) * (at // 24)}
        for at in range(24 * 10)
        for site in range(1, 7)
    ]
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), root, random.Random(1))
    return root


@pytest.mark.spark
@pytest.mark.promise("history-is-live", "pages-are-true")
def test_example_finds_sites_with_largest_drift(spark, data, monkeypatch, capsys):
    """The example runs in the Spark of the tests."""
    script = ROOT / "examples" / "history" / "drift.py"
    arguments = [
        "--data",
        data,
        "--schema",
        data / "schema.sneeql",
        "--rooms",
        data / "rooms.csv",
        "temp",
        "--days",
        "9",
        "--most",
        "3",
    ]
    monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
    runpy.run_path(str(script))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("site 5: -6.00 in 30 days")
    others = {f"site {site}: +3.00 in 30 days, seen on 9 days" for site in (2, 4, 6)}
    assert {*lines[1:]} < others, "4 and 6 rise by half as much against 5, which sinks"


@pytest.mark.spark
@pytest.mark.promise("history-is-live")
def test_frame_has_time_and_own_settings(spark, data):
    """The session of the program keeps its settings and gets no view."""
    zone, views = spark.conf.get("spark.sql.session.timeZone"), spark.catalog.listTables()
    query = "SELECT site, COUNT(*) AS n FROM lab [FROM NOW-2 HOUR TO NOW SLIDE 1 DAY] GROUP BY site"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        frame = moteloom.history(query, data, schema=data / "schema.sneeql", begin=DAY, until=2 * DAY, session=spark)
        table = frame.where("site = 3").toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert table.column_names == ["_time", "_tick", "_n", "site", "n"]
    assert [row["n"] for row in table.to_pylist()] == [3, 3]
    assert table.column("_time").to_pylist()[0].isoformat() == "1970-01-02T00:00:00+00:00"
    assert spark.catalog.listTables() == views


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("SELECT temp FROM lab; SELECT temp FROM lab", {}, "expected one query"),
        ("SELECT temp FROM lab", {"begin": 90 * DAY, "until": 91 * DAY}, "has none"),
        ("SELECT temp FROM lab", {"begin": 9, "until": 8}, "after the last window"),
    ],
)
@pytest.mark.promise("errors-point")
def test_wrong_question_is_refused_before_spark_starts(need, data, query, options, says):
    need("java")
    with pytest.raises(HistoryQuestionError, match=says):
        moteloom.history(query, data, schema=data / "schema.sneeql", **options)
