"""`moteloom.replay`: the replay of recordings as Python programs call it."""

import csv
import io
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import moteloom
from basestation.cli import replay as verb
from gateway.cli import parser_of

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "recordings"
FORM = {
    "time_column": "when",
    "zone": "Europe/Zurich",
    "site_column": "sensor",
    "null": ["NA"],
    "skip_bad": 5,
    "snap": True,
}
QUERY = "SELECT site, AVG(air) AS air FROM house [FROM NOW-50 MIN TO NOW SLIDE 1 HOUR] GROUP BY site"
HOUSE = {"house": EXAMPLE / "greenhouse.csv"}
SCHEMA = "room: sensed (site:integer, temp:integer) every 1 min at sites 1, 2"


def test_call_answers_as_the_command(capsys):
    result = moteloom.replay(EXAMPLE / "greenhouse.sneeql", HOUSE, QUERY, begin="+3h", until="-1day", **FORM)
    files = [f"--schema={EXAMPLE}/greenhouse.sneeql", f"--input=house={EXAMPLE}/greenhouse.csv"]
    options = [f"--format={EXAMPLE}/greenhouse.toml", "--from=+3h", "--until=-1day", "-o", "csv"]
    assert verb.run(parser_of("replay", verb).parse_args([*files, *options, QUERY])) == 0
    out, err = capsys.readouterr()
    rows = [row for row in csv.DictReader(io.StringIO(out)) if row["_weight"] == "1"]
    table = result.to_arrow()
    assert table.column_names == ["_time", "_tick", "_n", "site", "air"] and len(rows) > 50
    assert [
        (str(t), str(s), repr(a))
        for t, s, a in zip(*(table[n].to_pylist() for n in ("_tick", "site", "air")), strict=True)
    ] == [(row["_tick"], row["site"], row["air"]) for row in rows]
    assert [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in table["_time"].to_pylist()] == [row["_time"] for row in rows]
    assert all(note in err for note in result.notes) and len(result.notes) == 3


def test_data_frames_and_tables_are_inputs():
    eight = datetime(2026, 11, 18, 8, tzinfo=UTC)
    table = pa.table({"when": [eight] * 2, "_site": [1, 2], "temp": [20, 22]})
    query = "SELECT MAX(temp) AS hottest FROM room [NOW]"
    for data in (table, table.to_pandas()):
        result = moteloom.replay(SCHEMA, {"room": data}, query, time_column="when")
        assert result.to_arrow().to_pylist() == [
            {"_time": eight, "_tick": int(eight.timestamp()), "_n": 1, "hottest": 22}
        ]
    history = result.to_arrow(history=True)
    assert history["_revision"].to_pylist() == [0] and history["_time"].to_pylist() == [eight]


def test_polars_data_frames_go_in_and_out():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"_tick": [60, 60], "_site": [1, 2], "temp": [20, 22]})
    found = moteloom.replay(SCHEMA, {"room": frame}, "SELECT MAX(temp) AS hottest FROM room [NOW]").to_polars()
    assert found["hottest"].to_list() == [22]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"snap": "soon"}, "expected a span such as `5s` for `snap`, found `soon`"),
        ({"tick": "0s"}, "for `tick`"),
        ({"time_unit": "x"}, "for `time_unit`"),
        ({"zone": "Mars/Base"}, "there is no zone `Mars/Base`"),
        ({"begin": "noon"}, "`noon` is no time"),
        ({"begin": "2026-01-01"}, "has no zone"),
        ({"begin": 99}, "expected a begin up to the last clock tick 60"),
        ({"ask": 99}, "expected a time to ask from tick 60 to 60, found tick 99"),
        ({"encoding": "rot13"}, "there is no encoding `rot13`"),
        ({"encoding": "latn"}, "there is no encoding `latn`"),
        ({"delimiter": "ab"}, "expected one sign for `delimiter`, found `ab`"),
    ],
)
def test_wrong_argument_is_a_value_error(given, words):
    rows = [{"_tick": 60, "_site": 1, "temp": 20}]
    with pytest.raises(ValueError, match=r"expected|no") as caught:
        moteloom.replay(SCHEMA, {"room": rows}, "SELECT temp FROM room", **given)
    assert words in str(caught.value)


def test_recording_off_schedule_is_refused_unless_allowed():
    rows = [{"_tick": 61, "_site": 1, "temp": 20}]
    with pytest.raises(moteloom.InputError, match="off the schedule"):
        moteloom.replay(SCHEMA, {"room": rows}, "SELECT temp FROM room")
    assert moteloom.replay(SCHEMA, {"room": rows}, "SELECT temp FROM room", allow_rejected=True).tuples() == []


def test_one_off_query_is_asked_at_the_end():
    rows = [{"_tick": 60 * at, "_site": 1, "temp": at} for at in range(10)]
    query = "SELECT COUNT(*) AS n FROM room.HISTORY"
    assert moteloom.replay(SCHEMA, {"room": rows}, query).to_arrow()["n"].to_pylist() == [10]
    assert moteloom.replay(SCHEMA, {"room": rows}, query, ask=120).to_arrow()["n"].to_pylist() == [3]


def test_windows_of_long_stretches_without_data_are_counted():
    rows = [{"_tick": 60 * at, "_site": 1, "temp": 20} for at in (0, 20_000)]
    query = "SELECT COUNT(*) AS n FROM room [NOW]"
    short, whole = (moteloom.replay(SCHEMA, {"room": rows}, query, all_windows=each) for each in (False, True))
    [skipped] = short.skipped
    windows = whole.windows()
    assert len(windows) == 20_001 and whole.skipped == []
    assert short.windows() == [each for each in windows if not skipped.first <= each.tick <= skipped.last]
    assert len(short.windows()) + skipped.count == 20_001


def test_module_imports_nothing_heavy_before_it_is_used():
    code = "import sys, moteloom; print([n for n in ('numpy', 'pyarrow', 'basestation', 'pandas') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=EXAMPLE.parents[1])
    assert done.stdout.strip() == "[]", done.stderr
    with pytest.raises(AttributeError, match="has no attribute 'reply'"):
        moteloom.reply  # noqa: B018
