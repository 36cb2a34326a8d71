"""Recordings with times of any form, off the schedule, or of unknown sites, through the command."""

import csv
import io
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from acquisition.sources.input_format import InputFormat
from basestation.cli import replay as verb
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog
from gateway.cli import parser_of

SCHEMA = "room: sensed (site:integer, temp:integer) every 1 min at sites 1, 2\n"
EIGHT = int(datetime(2026, 11, 18, 8, tzinfo=UTC).timestamp())


class Desk:
    """A folder with a schema and a recording, and the command over them."""

    def __init__(self, folder, capsys):
        self.folder, self._capsys, self.errors = folder, capsys, ""
        self.schema(SCHEMA)

    def schema(self, text):
        (self.folder / "schema").write_text(text)

    def replay(self, content, *arguments, query="SELECT site, temp FROM room", code=0, output="csv"):
        """The rows that the command prints for a recording."""
        path = self.folder / "room.csv"
        if isinstance(content, str):
            path.write_text(content)
        else:
            pq.write_table(content, path)
        schema = () if "-c" in arguments else ("--schema", f"{self.folder}/schema")
        inputs = () if "--input" in arguments else ("--input", f"room={path}")
        given = [query, *schema, *inputs, "-o", output, *arguments]
        assert verb.run(parser_of("replay", verb).parse_args(given)) == code
        out, self.errors = self._capsys.readouterr()
        return list(csv.DictReader(io.StringIO(out)))

    def ticks(self, *arguments, **options):
        return [int(row["_tick"]) for row in self.replay(*arguments, **options)]


@pytest.fixture
def desk(tmp_path, capsys):
    return Desk(tmp_path, capsys)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("2026-11-18T08:00:00Z", ()),
        ("2026-11-18 08:00:00", ()),
        ("2026-11-18T09:00:00.750+01:00", ()),
        ("2026-11-18 09:00", ("--zone", "Europe/Zurich")),
        ("2026-11-18T03:00:00", ("--zone=-05:00",)),
        (str(EIGHT), ()),
        (f"{EIGHT}.25", ()),
        (str(EIGHT * 1_000), ()),
        (str(EIGHT * 1_000_000 + 17), ()),
        (str(EIGHT // 30), ("--time-unit", "30s")),
        ("18.11.2026 08:00", ("--time-format", "%d.%m.%Y %H:%M")),
        ("Wed Nov 18 08:00:00 2026", ("--time-format", "%a %b %d %H:%M:%S %Y")),
    ],
)
def test_times_of_any_form_become_ticks(desk, text, options):
    content = f"when,_site,temp\n{text},1,20\n{text},2,21\n"
    assert desk.ticks(content, "--time-column", "when", *options) == [EIGHT, EIGHT]


def test_small_numbers_of_a_time_column_are_ticks(desk):
    assert desk.ticks("epoch,_site,temp\n60,1,20\n120,1,21\n", "--time-column", "epoch") == [60, 120]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/Chicago"])
def test_timestamps_of_parquet_become_ticks(desk, unit, zone):
    moments = pa.array([EIGHT * 10**9, None], pa.timestamp("ns", zone)).cast(pa.timestamp(unit, zone))
    table = pa.table({"when": moments, "_tick": [0, 1], "mote": [1, 2], "temp": [20, 21]}).drop_columns("_tick")
    table = table.slice(0, 1)
    assert desk.ticks(table, "--time-column", "when", "--site-column", "mote") == [EIGHT]


def test_local_time_that_occurs_twice_is_the_first(desk):
    content = "when,_site,temp\n2026-10-25 02:30:00,1,20\n"
    first = int(datetime(2026, 10, 25, 0, 30, tzinfo=UTC).timestamp())
    assert desk.ticks(content, "--time-column", "when", "--zone", "Europe/Zurich") == [first]


def test_local_time_that_clocks_skip_is_wrong(desk):
    content = "when,_site,temp\n2026-03-29 01:59:59,1,20\n2026-03-29 02:30:00,1,20\n"
    desk.replay(content, "--time-column", "when", "--zone", "Europe/Zurich", code=3)
    assert "row 2, column when: expected a time of Europe/Zurich, found `2026-03-29 02:30:00`" in desk.errors
    assert "clocks skip this time there" in desk.errors and "`--zone +01:00`" in desk.errors
    given = "--time-column", "when", "--zone", "+01:00", "--allow-rejected"
    assert desk.ticks(content, *given) == [int(datetime(2026, 3, 29, 1, 30, tzinfo=UTC).timestamp())]


def test_wrong_time_is_named_with_row_and_column(desk):
    content = "when,_site,temp\n2026-11-18 08:00,1,20\nyesterday,2,21\n"
    desk.replay(content, "--time-column", "when", code=3)
    assert "room.csv, row 2, column when: expected a time, found `yesterday`" in desk.errors
    desk.replay(content, "--time-column", "wen", code=3)
    assert "the column `wen` is missing; did you mean `when`?" in desk.errors


@pytest.mark.parametrize("wrong", ["31.02.2026 08:00", "31.04.2026 08:00", "29.02.2026 08:00", "18.11.2026 08:60"])
def test_time_of_a_pattern_that_does_not_exist_is_wrong(desk, wrong):
    content = f"when,_site,temp\n18.11.2026 08:00,1,20\n{wrong},2,21\n"
    desk.replay(content, "--time-column", "when", "--time-format", "%d.%m.%Y %H:%M", code=3)
    assert f"row 2, column when: expected a time, found `{wrong}`" in desk.errors


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("18.11.2026 08:00:59", "%d.%m.%Y %H:%M:%S"),
        ("18/11/2026 08:00", "%d/%m/%Y %H:%M"),
        ("11/18/2026 8:00:00 PM", "%m/%d/%Y %I:%M:%S %p"),
        ("yesterday", "%d.%m.%Y %H:%M"),
    ],
)
def test_wrong_time_suggests_a_pattern_that_fits(desk, text, pattern):
    content = f"when,_site,temp\n{text},1,20\n"
    desk.replay(content, "--time-column", "when", code=3)
    assert f"`--time-format '{pattern}'`" in desk.errors


def test_wrong_pattern_is_shown_with_its_fields(desk):
    desk.replay("when,_site,temp\n18.11.2026,1,20\n", "--time-column", "when", "--time-format", "%d.%m.%y", code=3)
    assert "`--time-format` is `%d.%m.%y`: %Y is the year" in desk.errors


def test_pattern_without_a_field_fits_no_time(desk):
    desk.replay("when,_site,temp\n,2,21\n18.11.2026,1,20\n", "--time-column", "when", "--time-format=", code=3)
    assert "column when: expected a time, found `18.11.2026`" in desk.errors


def test_pattern_takes_numbers_without_leading_zeros(desk):
    content = "when,_site,temp\n1.3.2026 8:00,1,20\n01.03.2026 08:00,2,21\n"
    march = int(datetime(2026, 3, 1, 8, tzinfo=UTC).timestamp())
    assert desk.ticks(content, "--time-column", "when", "--time-format", "%d.%m.%Y %H:%M") == [march, march]


def test_whole_numbers_of_parquet_have_a_pattern_too(desk):
    table = pa.table({"day": [20261118], "mote": [1], "temp": [20]})
    form = "--time-column", "day", "--time-format", "%Y%m%d", "--site-column", "mote"
    assert desk.ticks(table, *form) == [EIGHT - 8 * 3_600]


def test_missing_time_and_site_are_named_as_in_the_file(desk):
    form = "--time-column", "when", "--site-column", "mote"
    desk.replay("when,mote,temp\n2026-11-18 08:00,1,20\n,2,21\n", *form, code=3)
    assert "row 2, column when: a reading needs its tick" in desk.errors
    desk.replay("when,mote,temp\n2026-11-18 08:00,1,20\n2026-11-18 08:00,M2,21\n", *form, code=3)
    assert "row 2, column mote: expected an integer, found `M2`" in desk.errors


def test_recording_without_sites_or_times_names_the_options(desk):
    desk.replay("_tick,temp\n60,20\n", code=3)
    assert "the column `_site` is missing" in desk.errors and "`--site-column`" in desk.errors
    desk.replay("_site,temp\n1,20\n", code=3)
    assert "the column `_tick` is missing" in desk.errors and "`--time-column`" in desk.errors
    desk.replay("Zeit,_site,temp\n1,1,20\n", code=3)
    assert "columns are `Zeit`, `_site`, `temp`; `--time-column`" in desk.errors
    desk.replay(",".join(["temp", "_site", *(f"c{i}" for i in range(90))]) + "\n", code=3)
    assert "`c17` and 72 more; `--time-column`" in desk.errors


def test_format_file_names_columns_as_the_option_does(desk):
    (desk.folder / "form.toml").write_text('columns = "_tick, -, _site, temp"\n')
    assert desk.ticks("60,x,1,20\n", "--format", f"{desk.folder}/form.toml") == [60]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--zone", "Europe/Zürich"),
        ("--time-unit", "5 rows"),
        ("--snap=soon",),
        ("--tick", "2days"),
        ("--tick=0s",),
        ("--encoding", "rot13"),
        ("--encoding", "hex"),
        ("--encoding", "undefined"),
    ],
)
def test_wrong_description_of_a_recording_is_misuse(desk, wrong):
    with pytest.raises(SystemExit) as left:
        desk.replay("_tick,_site,temp\n", *wrong)
    assert left.value.code == 2


def test_tick_option_and_deployment_set_the_tick(desk):
    content = "when,site,temp\n2026-11-18T08:00:00.250Z,1,20\n"
    desk.schema(SCHEMA.replace("1 min", "250 ms"))
    assert desk.ticks(content, "--time-column", "when", "--tick", "1ms") == [1_000 * EIGHT + 250]
    deployment = f"""
name = "room"
tick_ms = 250
gateways.0 = {{ at = [0, 0] }}
motes.1 = {{ at = [8, 3], hardware = "telosb", sensors.temp = {{ raw = [0, 99] }} }}
links.table = [[0, 1, 1.0], [1, 0, 1.0]]
extents.text = "{SCHEMA.strip().replace("1 min at sites 1, 2", "1 sec at sites 1")}"
"""
    (desk.folder / "deployment.toml").write_text(deployment)
    found = desk.ticks(content.replace(".250", ""), "--time-column", "when", "-c", f"{desk.folder}/deployment.toml")
    assert found == [4 * EIGHT]


# --- the schedule ----------------------------------------------------------------------------------------------------

JITTER = "_tick,_site,temp\n" + "".join(
    f"{60 * i + (-2, 0, 3, 1)[i % 4]},{site},{i}\n" for i in range(1, 13) for site in (1, 2)
)


def test_recording_off_schedule_is_refused_with_remedy(desk):
    assert desk.replay(JITTER, code=3) == []
    assert desk.errors == (
        "SN517: room: 18 of 24 readings are off the schedule of `room`, every 1 min: up to 3 sec from a multiple of it; "
        "`--snap` moves each reading to the nearest tick of the schedule; `--allow-rejected` runs anyway\n"
    )
    assert desk.ticks(JITTER, "--allow-rejected") == [60 * i for i in (1, 5, 9) for _ in (1, 2)]
    assert "room: 18 " not in desk.errors


def test_snap_moves_readings_and_counts_them(desk):
    assert desk.ticks(JITTER, "--snap", output="csv") == [60 * i for i in range(1, 13) for _ in (1, 2)]
    assert "room: 18 of 24 readings were moved to the schedule" in desk.errors
    assert desk.ticks(JITTER, "--snap=2s", "--allow-rejected") == [
        60 * i for i in range(1, 13) if i % 4 != 2 for _ in (1, 2)
    ]
    assert "room: 12 of 24 readings were moved to the schedule" in desk.errors


def test_ambiguous_reading_is_not_snapped(desk):
    content = "_tick,_site,temp\n60,1,20\n58,2,21\n61,2,22\n90,1,23\n" + "".join(
        f"{60 * i},1,{i}\n" for i in range(2, 40)
    )
    desk.replay(content, "--snap", output="table")
    assert "room: 42 received, 40 accepted, 1 conflict, 1 rejected: off the schedule" in desk.errors
    assert "room: 2 of 42 readings were moved" in desk.errors


def test_snap_to_an_interval_that_is_too_long_is_refused(desk):
    content = "_tick,_site,temp\n" + "".join(f"{31 * i},1,{i}\n" for i in range(50))
    assert desk.replay(content, "--snap", code=3) == []
    assert "of 50 readings would be moved to the tick of another one of their site, every 1 min" in desk.errors
    assert "most readings of a site are 31 sec apart: write `every 31 sec` in the schema" in desk.errors
    assert len(desk.replay(content, "--snap", "--allow-rejected")) == 26
    assert "23 of them to the tick of another one of their site: the first counts" in desk.errors


def test_wrong_interval_is_named(desk):
    desk.replay("_tick,_site,temp\n" + "".join(f"{31 * i},1,{i}\n" for i in range(50)), code=3)
    assert "most readings of a site are 31 sec apart: write `every 31 sec` in the schema" in desk.errors


def test_unknown_sites_are_named(desk):
    content = "_tick,_site,temp\n" + "".join(f"{60 * i},{7 if i == 5 else 1},{i}\n" for i in range(12))
    assert len(desk.replay(content)) == 11
    assert "room: 1 of 12 readings are of site 7, not among `at sites` of `room`" in desk.errors
    desk.replay(content.replace(",1,", ",8,"), code=3)
    assert "12 of 12 readings are of sites 7, 8, not among" in desk.errors and "`at sites all`" in desk.errors


def test_readings_ahead_of_their_arrival_are_refused(desk):
    desk.replay("_tick,_site,temp,_arrival\n600,1,20,0\n", code=3)
    assert "1 of 1 readings are stamped more than 1 min ahead of their arrival" in desk.errors


def test_snapped_readings_are_the_nearest_due_ticks(rng, counts):
    for _ in range(counts(20, 200)):
        interval, within = rng.randint(2, 90), rng.choice([None, 1, 5])
        catalog = read_catalog(f"room: sensed (site:integer, time:integer) every {interval} sec at sites 1")
        ticks = np.sort([rng.randrange(5_000) for _ in range(60)])
        batch = read_recording(catalog, {"room": {"_tick": ticks}}, form=InputFormat(snap=within)).batches["room"]
        for before, after, arrival, time in zip(ticks, batch.tick, batch.arrival, batch.columns["time"], strict=True):
            nearest = [due for due in range(0, 5_200, interval) if 2 * abs(due - before) < interval]
            near = nearest and (within is None or abs(nearest[0] - before) <= within)
            assert after == time == (nearest[0] if near else before)
            assert arrival == max(before, after)


# --- columns ---------------------------------------------------------------------------------------------------------


def test_further_columns_are_not_read_unless_one_may_be_misspelt(desk):
    content = "_tick,_site,temp,label,note\n0,1,20,x,\n"
    assert desk.replay(content)[0]["temp"] == "20"
    desk.replay(content.replace("temp", "tmep"), code=3)
    assert "unknown column `tmep`; did you mean `temp`?" in desk.errors
    desk.replay(content.replace("temp", "heat"), code=3)
    assert "unknown column `heat`, and `temp` is missing; known columns are `site`, `temp`" in desk.errors
    desk.replay(content.replace("temp", "heat").replace("note", "tmep"), code=3)
    assert "unknown column `tmep`; did you mean `temp`?" in desk.errors
    desk.replay(content.replace("label", "_arival"), code=3)
    assert "unknown column `_arival`; did you mean `_arrival`?" in desk.errors


def test_extent_with_one_site_needs_no_column_of_sites(desk):
    desk.schema(SCHEMA.replace("1, 2", "7"))
    [row] = desk.replay("_tick,temp\n60,20\n")
    assert row["site"] == "7"
    desk.schema(SCHEMA)
    desk.replay("_tick,temp\n60,20\n", code=3)
    assert "the column `_site` is missing" in desk.errors
