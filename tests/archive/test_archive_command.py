"""`moteloom archive`: what a user types, beside a stopped station's data directory."""

import csv
import json
import re
import shlex

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acquisition.batch import Batch
from basestation.archive.manifest import FileChange
from basestation.archive.numbering import TupleNumbers
from basestation.planner.catalog import read_schema
from basestation.station.archive_recovery import open_archive, read_manifest
from basestation.station.journal import Journal
from gateway.cli import dispatch
from tests.docs.commands import verbs
from tests.docs.pages import ROOT

VERBS = verbs()
SCHEMA = "lab: sensed (site:integer, temp:float {unit 'Cel', scale 2}) every 30 sec at sites 1, 2"
DEPLOYMENT = f"""
name = "two"
[gateways]
0 = {{ at = [0, 0] }}
[boards.probe]
hardware = "telosb"
battery_mah = 2900
sensors.temp = {{ raw = [0, 4095], scale = 2, unit = "Cel" }}
[motes]
1 = {{ at = [8, 3], board = "probe" }}
2 = {{ at = [9, 3], board = "probe" }}
[links]
table = [[0, 1, 0.9], [1, 0, 0.9], [2, 0, 0.9], [0, 2, 0.9]]
[extents]
text = "{SCHEMA}"
"""
CATALOG = read_schema(SCHEMA)
EXTENT = CATALOG.extents["lab"]
DAY = 1_763_510_400  # 2025-11-19T00:00:00Z
ROWS = [(DAY + 30 * k, site, 2000 + k + site) for k in range(4) for site in (1, 2)] + [(DAY + 86_400, 1, 1999)]


def batch(rows, delay=2):
    tick, site, temp = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return Batch(tick, site, tick + delay, np.ones(len(rows), np.int64), {"site": site, "temp": temp})


class DataDirectory:
    """The data directory of a station that has stopped."""

    def __init__(self, folder):
        self.folder, self.numbers = folder, TupleNumbers()
        self.roll(ROWS[:3], 1)
        self.roll(ROWS[3:6], 2)
        self.roll(ROWS[6:], 3)

    def roll(self, rows, entry):
        journal = Journal(self.folder)
        archive = open_archive(self.folder, 1_000, journal)
        staged = archive.stage(entry, EXTENT, self.numbers.number(EXTENT, batch(rows)))
        journal.commit([], files=FileChange(tuple(staged)))
        archive.settle(journal.archive_files())
        journal.close()

    def paths(self):
        return sorted((self.folder / "archive").rglob("*.parquet"))

    def rows(self):
        tables = [pq.ParquetFile(path).read(["_tick", "_site", "temp"]) for path in self.paths()]
        return sorted(
            (t, s, int(v * 100)) for table in tables for t, s, v in zip(*table.to_pydict().values(), strict=True)
        )


@pytest.fixture
def data(tmp_path):
    return DataDirectory(tmp_path / "moteloom-data")


@pytest.fixture
def command(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, code=0):
        assert dispatch(["archive", *map(str, arguments)], VERBS) == code
        return capsys.readouterr()

    return run


def lines(found):
    return [json.loads(line) for line in found.out.splitlines()]


def test_ls_shows_extents_and_days(data, command):
    [lab] = lines(command("ls", "-o", "json"))
    assert (lab["extent"], lab["days"], lab["files"], lab["rows"]) == ("lab", 2, 4, 9)
    assert (lab["first"], lab["last"]) == ("2025-11-19T00:00:00Z", "2025-11-20T00:00:00Z")
    days = lines(command("ls", "lab", "-o", "json"))
    assert [(day["day"], day["rows"]) for day in days] == [("2025-11-19", 8), ("2025-11-20", 1)]
    assert "2025-11-20" in command("ls", "lab").out and "lab" in command("ls").out


def test_extent_that_is_not_there_is_named(data, command):
    assert "no extent `lib`; did you mean `lab`?" in command("ls", "lib", code=3).err
    assert "no extent `lib`" in lines(command("export", "lib", "--out", "x.csv", "-o", "json", code=3))[0]["message"]


@pytest.mark.parametrize("verb", ["ls", "verify", "compact"])
def test_directory_without_a_station_is_named_and_stays(verb, command, tmp_path):
    assert "is not the data directory of a station" in command(verb, "--data", "nothing", code=1).err
    assert not (tmp_path / "nothing").exists()


def test_verify_of_a_whole_archive_finds_nothing(data, command):
    found = command("verify")
    assert found.out == "" and "4 files with 9 readings compared, 0 findings" in found.err


def test_verify_names_each_kind_of_fault(data, command):
    first, second, third, fourth = data.paths()
    second.unlink()
    third.write_bytes(third.read_bytes()[:-1] + b"x")
    fourth.write_bytes(fourth.read_bytes()[:-9])
    (first.parent / "copy.parquet").write_bytes(first.read_bytes())
    found = {(each["kind"], each["path"]) for each in lines(command("verify", "-o", "json", code=1))}
    named = {("missing", second), ("damaged", third), ("damaged", fourth), ("foreign", first.parent / "copy.parquet")}
    assert found == {(kind, str(path.relative_to(data.folder.parent))) for kind, path in named}
    assert "is gone, and" in command("verify", code=1).out


def test_verify_tells_staged_and_leaving_files(data, command):
    journal = Journal(data.folder)
    archive = open_archive(data.folder, 1_000, journal)
    staged = archive.stage(9, EXTENT, data.numbers.number(EXTENT, batch(ROWS[:1])))
    leaving = read_manifest(data.folder)[0].name
    journal.commit([], files=FileChange(tuple(staged), (leaving,)))
    journal.close()
    found = lines(command("verify", "-o", "json", code=1))
    assert [each["kind"] for each in found] == ["unfinished", "unfinished"]
    open_archive(data.folder, 1_000, journal := Journal(data.folder))
    journal.close()
    assert command("verify").out == ""


@pytest.mark.promise("archived")
def test_compact_merges_days_and_keeps_each_reading(data, command):
    before = data.rows()
    [day] = lines(command("compact", "-o", "json"))
    assert (day["day"], day["files"], day["rows"]) == ("2025-11-19", 3, 8)
    assert data.rows() == before and len(data.paths()) == 2
    assert command("verify").out == "" and command("compact").out == ""
    table = pq.ParquetFile(data.paths()[0]).read()
    assert table["_index"].to_pylist() == [1, 3, 5, 7, 2, 4, 6, 8]
    assert table.schema.field("temp").metadata[b"unit"] == b"Cel"


def test_reading_that_came_again_is_compacted_to_one(data, command):
    """After a restore; a reading that differs in any attribute stays beside the other."""
    data.roll([ROWS[0], (*ROWS[1][:2], 7)], 4)
    command("compact")
    assert data.rows() == sorted([*ROWS, (*ROWS[1][:2], 7)])


@pytest.mark.parametrize("flip", [True, False])
def test_day_with_a_damaged_file_stays_as_it_is(flip, data, command):
    """Also where the damage would not show when it is read."""
    first, *_ = data.paths()
    body = bytearray(first.read_bytes())
    body[len(body) // 3] ^= flip
    first.write_bytes(body if flip else body[:100])
    found = command("compact", code=1)
    assert f"lab 2025-11-19 stays as it is: moteloom-data/{first.relative_to(data.folder)} is damaged" in found.err
    assert len(data.paths()) == 4


def test_compact_beside_a_station_is_refused(data, command):
    journal = Journal(data.folder)
    assert "another station uses the data directory" in command("compact", code=1).err
    assert lines(command("ls", "-o", "json"))[0]["rows"] == 9
    journal.close()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_replay_of_an_export_gives_the_same_tuples(suffix, data, command, tmp_path, capsys):
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    assert "9 rows" in command("export", "lab", "--out", f"lab{suffix}").err
    replay = [
        "replay",
        "--schema",
        "schema.sneeql",
        "--input",
        f"lab=lab{suffix}",
        "-o",
        "json",
        "SELECT site, temp FROM lab",
    ]
    assert dispatch(replay, VERBS) == 0
    found = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if line["type"] == "tuple"]
    assert [(each["tick"], *each["row"]) for each in found] == [(t, s, v / 100) for t, s, v in ROWS]


def test_export_takes_days_times_and_ticks(data, command, tmp_path):
    def count(*range):
        command("export", "lab", "--out", "x.csv", *range)
        return len(list(csv.reader((tmp_path / "x.csv").open()))) - 1

    assert count("--from", "2025-11-19", "--until", "2025-11-19") == 8
    assert count("--from", "2025-11-19T00:01:00Z") == 5
    assert count("--until", DAY + 30) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from", "2025-12-01"], "has no reading of `lab` in this range; it has 2025-11-19T00:00:00Z to"),
        (["--until", "1999-01-01"], "has no reading of `lab` in this range"),
        (["--from", "yesterday"], "`yesterday` is no tick, day or time"),
        (["--out", "x.xls"], "expected a name that ends in .parquet or .csv"),
    ],
)
def test_range_or_file_that_cannot_be_exported_is_named(arguments, message, data, command, tmp_path):
    assert message in command("export", "lab", "--out", "x.csv", *arguments, code=3).err
    assert not list(tmp_path.glob("*x.*"))


@pytest.fixture
def recording(tmp_path):
    (tmp_path / "deployment.toml").write_text(DEPLOYMENT)
    path = tmp_path / "old.csv"
    rows = [*ROWS[:2], (DAY - 30, 1, 1850), (DAY + 120, 2, 2100)]
    path.write_text("_tick,_site,temp\n" + "".join(f"{t},{s},{v / 100}\n" for t, s, v in rows))
    return path


def test_import_adds_the_readings_that_are_missing(data, command, recording):
    [found] = lines(command("import", "lab", recording, "-c", "deployment.toml", "-o", "json"))
    assert found == {"extent": "lab", "rows": 2, "days": 2, "already": 2}
    assert data.rows() == sorted([*ROWS, (DAY - 30, 1, 1850), (DAY + 120, 2, 2100)])
    assert command("verify").out == ""
    again = command("import", "lab", recording, "-c", "deployment.toml", code=3)
    assert "is in the archive already: 2 readings" in again.err


def test_import_that_cannot_be_taken_changes_nothing(data, command, recording):
    for text, message in (
        ("_tick,_site,temp\n1,1,warm\n", "warm"),
        ("_tick,_site,temp,_weight\n1,1,,-1\n", "an archive takes no corrections"),
        ("temp\n1\n", "_tick"),
    ):
        recording.write_text(text)
        assert message in command("import", "lab", recording, "-c", "deployment.toml", code=3).err
    assert "there is no file gone.csv" in command("import", "lab", "gone.csv", "-c", "deployment.toml", code=3).err
    assert "declares no extent `lib`" in command("import", "lib", recording, "-c", "deployment.toml", code=3).err
    assert data.rows() == sorted(ROWS) and not list((data.folder / "staging").iterdir())


def test_import_into_a_stored_extent_is_refused(data, command, recording):
    stored = DEPLOYMENT.replace(SCHEMA, SCHEMA + "\\nroom: stored (site:integer)")
    (data.folder / "stored.toml").write_text(stored)
    said = command("import", "room", recording, "-c", str(data.folder / "stored.toml"), code=3)
    assert "PUT /v1/extents/room/rows" in said.err


def test_days_of_two_schemas_are_merged_under_the_wider(data, command):
    """A file of before `temp` had two digits and before `site` was an attribute."""
    path = data.paths()[0]
    journal = Journal(data.folder)
    archive = open_archive(data.folder, 1_000, journal)
    table = pq.ParquetFile(path).read().drop_columns(["site"])
    at = table.schema.get_field_index("temp")
    narrow = pa.field("temp", pa.decimal128(17, 2), metadata={"unit": "Cel"})
    table = table.set_column(at, narrow, table["temp"].cast(narrow.type))
    file = archive.stage_table(1, "lab", "2025-11-19", table)
    old = next(each for each in journal.archive_files() if each.name == path.name)
    journal.commit([], files=FileChange((file,), (old.name,)))
    archive.settle(journal.archive_files())
    journal.close()
    command("compact")
    assert data.rows() == sorted(ROWS)
    merged = pq.ParquetFile(data.paths()[0]).read().sort_by("_index")
    assert merged["site"].to_pylist() == [None, None, None, 2, 1, 2, 1, 2]
    assert merged.schema.field("temp").type == pa.decimal128(18, 2)


@pytest.mark.promise("pages-are-true")
def test_commands_of_the_page_run(data, command, recording, capsys, tmp_path):
    """Those of docs/archive.md, in their order; the last line of `ls` is shown there."""
    page = (ROOT / "docs" / "archive.md").read_text()
    commands = re.findall(r"^\$ moteloom (.*)$", page, re.MULTILINE)
    assert [each.split()[1] for each in commands] == ["ls", "ls", "verify", "compact", "export", "import"]
    recording.rename(tmp_path / "last-year.csv")
    for each in commands:
        assert dispatch(shlex.split(each), VERBS) == 0
    printed = capsys.readouterr()
    assert "lab 2025-11-19: 3 files" in printed.out and "2 readings of 2 days added" in printed.err
