"""`moteloom history ls`: what an archive holds and how complete it is; and charts of answers."""

import json
import random
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from basestation.archive.parquet import ParquetArchive
from basestation.archive.reports import report_extent
from basestation.history.answer_chart import draw_answer
from basestation.history.completeness import measure_completeness
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.cli import main
from tests.history.in_spark import archive

SVG = "{http://www.w3.org/2000/svg}"
HOUR, DAY = 3_600, 86_400
SCHEMA = "lab: sensed (site:integer, temp:float) every 1 hour at sites 1, 2, 3 wait 5 sec\nnote: pushed (text:string)\n"
LOST = {1: set(), 2: {5, 6, 7, 30}, 3: {*range(20, 48)}}
"""The hours that a site lost, of two days and of the day after next."""
HOURS = [*range(48), *range(72, 96)]


@pytest.fixture
def data(tmp_path):
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    catalog = read_schema(SCHEMA)
    rows = [
        {"_tick": hour * HOUR, "_site": site, "temp": 20.5 + site}
        for hour in HOURS
        for site in (1, 2, 3)
        if hour not in LOST[site]
    ]
    archive(read_recording(catalog, {"lab": rows}), tmp_path, random.Random(1))
    return tmp_path


def ls(data, *arguments):
    return main(["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), "ls", *map(str, arguments)])


def rows_of(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_ls_counts_days_without_readings(data, capsys):
    assert ls(data, "-o", "json") == 0
    [found] = rows_of(capsys)
    assert (found["days"], found["missing_days"]) == (3, 1)
    assert ls(data) == 0
    assert "1970-01-01 to 1970-01-04, 1 missing" in capsys.readouterr().out


def test_completeness_counts_gaps_of_each_site(data, capsys):
    """A gap may go on over midnight; the day without readings is one for all."""
    assert ls(data, "lab", "-o", "json") == 0
    assert rows_of(capsys) == [
        {"site": 1, "due": 96, "readings": 72, "filtered": 0, "complete": 0.75, "gaps": 1, "longest_gap_s": 24 * HOUR},
        {"site": 2, "due": 96, "readings": 68, "filtered": 0, "complete": 0.7083, "gaps": 3, "longest_gap_s": 24 * HOUR},
        {"site": 3, "due": 96, "readings": 44, "filtered": 0, "complete": 0.4583, "gaps": 1, "longest_gap_s": 52 * HOUR},
    ]  # fmt: skip


def test_completeness_of_range_counts_its_ends(data, capsys):
    """Half of the hours 4 to 9 of site 2 are lost: 5, 6, 7."""
    assert ls(data, "lab", "--from", 4 * HOUR, "--to", 9 * HOUR, "-o", "json") == 0
    assert [(row["due"], row["readings"], row["gaps"]) for row in rows_of(capsys)] == [(6, 6, 0), (6, 3, 1), (6, 6, 0)]
    assert ls(data, "lab", "--from", 6 * HOUR, "--to", 6 * HOUR, "-o", "json") == 0
    assert [row["complete"] for row in rows_of(capsys)] == [1.0, 0.0, 1.0]


def test_filtered_readings_are_no_gap(data):
    catalog = read_schema(SCHEMA)
    extent = catalog.extents["lab"]
    recording = read_recording(catalog, {"lab": [{"_tick": h * HOUR, "_site": 2, "temp": 0.0} for h in (5, 6, 7, 8)]})
    ParquetArchive(data, catalog.tick_ms).append(report_extent(extent), recording.streams["lab"].whole())
    record = measure_completeness(data, extent, catalog.tick_ms, 0, 9 * HOUR)[1]
    assert (record.readings, record.filtered, record.gaps, record.complete) == (7, 3, 0, 1.0), "hour 8 stands in both"


def test_heat_map_has_a_cell_for_each_site_and_day(data):
    assert ls(data, "lab", "--plot", data / "lab.svg", "-o", "csv") == 0
    cells = {}
    for cell in ElementTree.fromstring((data / "lab.svg").read_text()).iter(f"{SVG}rect"):
        title = cell.find(f"{SVG}title")
        if title is not None:
            cells[title.text] = float(cell.attrib["fill-opacity"])
    assert len(cells) == 12
    assert cells["site 1, 1970-01-01: 100.0 %"] == 1.0
    assert cells["site 3, 1970-01-02: 0.0 %"] == 0.0
    assert cells["site 2, 1970-01-03: 0.0 %"] == 0.0
    assert "site 2, 1970-01-02: 95.8 %" in cells
    assert not list(data.glob("*.part"))


def test_completeness_of_many_stations_names_them(data, tmp_path_factory, capsys):
    many = tmp_path_factory.mktemp("many")
    (many / "schema.sneeql").write_text(SCHEMA)
    for name in ("north", "south"):
        (many / f"station={name}").symlink_to(data)
    assert ls(many, "lab", "-o", "json") == 0
    assert [(row["_station"], row["site"], row["readings"]) for row in rows_of(capsys)][2:4] == [
        ("north", 3, 44),
        ("south", 1, 72),
    ]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["note"], 2, "expected a sensed extent, found `note`; there are `lab`"),
        (["lba"], 2, "found `lba`"),
        (["lab", "--from", "9", "--to", "8"], 2, "--from is tick 9"),
        (["lab", "--from", "0", "--to", "2100-01-01T00:00:00Z"], 3, "choose a part with --from and --to"),
        (["lab", "--plot", "nowhere/lab.svg"], 3, "cannot be written: No such file"),
    ],
)
@pytest.mark.promise("errors-point")
def test_wrong_use_of_ls_is_refused(data, capsys, monkeypatch, arguments, code, says):
    monkeypatch.chdir(data)
    assert ls(data, *arguments) == code
    said = capsys.readouterr()
    assert says in said.err and not said.out


def test_query_takes_no_extent(data, capsys):
    assert main(["history", "--data", str(data), "SELECT * FROM lab", "lab"]) == 2
    assert "only `ls` takes an extent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "says"), [("SELECT text FROM note", "no number"), ("SELECT COUNT(*) FROM lab.history AS h", "one answer")]
)
def test_chart_of_what_has_none_is_refused(data, capsys, query, says):
    recording = read_recording(read_schema(SCHEMA), {"note": [{"_tick": 9, "text": "x"}]})
    archive(recording, data, random.Random(1))
    arguments = ["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), "--plot", str(data / "x.svg")]
    assert main([*arguments, query]) == 2
    assert f"this query has {says}" in capsys.readouterr().err


def test_chart_has_panel_for_each_number_and_line_for_each_site():
    table = pa.table(
        {
            "_tick": [0, 0, 60, 60],
            "_n": [1, 1, 1, 1],
            "site": [1, 2, 1, 2],
            "room": ["a", "a", "a", None],
            "mean": [-3.0, 2.0, 1.0, None],
            "n": [5, 5, 4, 3],
        }
    )
    found = ElementTree.fromstring(draw_answer("lab", table, 1_000))
    lines = [(each.find(f"{SVG}title").text, each.attrib["points"].split()) for each in found.iter(f"{SVG}polyline")]
    assert [(name, len(points)) for name, points in lines] == [
        ("site 1, a", 2), ("site 2, a", 1), ("site 1, a", 2), ("site 2, a", 1), ("site 2", 1),
    ]  # fmt: skip
    heights = [float(pair.split(",")[1]) for pair in lines[0][1] + lines[1][1]]
    assert heights[0] > heights[1] > heights[2], "-3, 1 and 2 upwards"
    texts = [each.text for each in found.iter(f"{SVG}text")]
    assert texts[0] == "lab: 1970-01-01T00:00:00Z to 1970-01-01T00:01:00Z" and {"mean", "n"} < {*texts}


def test_chart_of_empty_answer_says_so():
    assert "lab: no rows" in draw_answer("lab", pa.table({"_tick": pa.array([], pa.int64()), "n": []}), 1_000)
