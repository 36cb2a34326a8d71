"""Recordings in the form of their authors: their windowed means equal an independent computation in plain Python.

The excerpts are made up here, in the form of each data set. The files themselves are replayed where they are at hand.
"""

import csv
import gzip
import io
import math
import re
from collections import defaultdict
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from basestation.cli import replay as verb
from gateway.cli import parser_of

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ROOT / "examples" / "recordings"
HOUR = 3600
BLANKS = re.compile("[ \t]+")


def lines_of(path):
    with gzip.open(path, "rb") as file:
        return file.read().decode("latin-1").rstrip("\n").split("\n")


def snapped(seconds, interval):
    """The nearest multiple; None just between two."""
    due = math.floor(seconds / interval + 0.5) * interval
    return None if 2 * abs(due - seconds) == interval else due


def intel(path):
    table = pq.read_table(path).to_pydict()
    sites = [name for name in table if name != "epoch"]
    for at, epoch in enumerate(table["epoch"]):
        for name in sites:
            if table[name][at] is not None:
                yield 30 * epoch, int(name[1:]), table[name][at]


def alps(path):
    for fields in map(BLANKS.split, filter(str.strip, lines_of(path))):
        yield snapped(int(fields[7]), 120), int(fields[0]), None if fields[8] == "NaN" else float(fields[8])


def ulb(interval):
    def read(path):
        for fields in map(BLANKS.split, filter(str.strip, lines_of(path))):
            value = float(fields[3].replace(".", "").replace("\xa0", "").replace(",", "."))
            yield snapped(int(fields[0]) // 1000, interval), int(fields[1]), value

    return read


def zoned(text, zone):
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


def links(path):
    for number, row in enumerate(csv.DictReader(lines_of(path)[1:])):
        yield zoned(row["datetime"], "Europe/Paris"), number, float(row["pdr"])


def room(path):
    for row in csv.DictReader(lines_of(path)):
        yield zoned(row["timestamp"], "UTC"), 1, float(row["value"])


SETS = {
    "intel": ("intel.toml", "temp", intel, "intel_fixture.parquet"),
    "alps": ("sensorscope.toml", "ambient", alps, "sensorscope_stb.txt.gz"),
    "office": ("ulb.toml", "temp", ulb(300), "ulb_no5_readings.txt.gz"),
    "library": ("ulb.toml", "temp", ulb(60), "ulb_library1_readings.txt.gz"),
    "links": ("k7.toml", "pdr", links, "k7_grenoble.csv.gz"),
    "room": ("nab.toml", "value", room, "nab_ambient.csv.gz"),
}


def hourly(readings):
    """(mean, count) by the hour that ends a window (w - 1 h, w]; of several readings of a site and tick the first counts."""
    found, seen = defaultdict(list), set()
    for tick, site, value in readings:
        if tick is not None and (tick, site) not in seen:
            seen.add((tick, site))
            found[-(-tick // HOUR) * HOUR].append(value)
    means = {}
    for window, values in found.items():
        present = [value for value in values if value is not None]
        means[window] = (math.fsum(present) / len(present) if present else None, len(values))
    return means


def replayed(extent, form, attribute, path, capsys):
    query = f"SELECT AVG({attribute}) AS mean, COUNT(*) AS n FROM {extent} [FROM NOW-3599 SEC TO NOW SLIDE 1 HOUR]"
    given = [
        "--schema",
        f"{FORMATS}/schema.sneeql",
        "--input",
        f"{extent}={path}",
        "--format",
        f"{FORMATS}/{form}",
        query,
    ]
    assert verb.run(parser_of("replay", verb).parse_args([*given, "-o", "csv"])) == 0
    found = {}
    for row in csv.DictReader(io.StringIO(capsys.readouterr().out)):
        if row["_weight"] == "1":
            found[int(row["_tick"])] = (None if row["mean"] == "" else float(row["mean"]), int(row["n"]))
    return found


def check(extent, path, capsys):
    form, attribute, read, _ = SETS[extent]
    expected = hourly(read(path))
    found = {tick: answer for tick, answer in replayed(extent, form, attribute, path, capsys).items() if answer[1]}
    expected = {tick: answer for tick, answer in expected.items() if tick in found or tick < max(found)}
    assert found.keys() == expected.keys() and len(found) > 1
    for tick, (mean, count) in expected.items():
        assert found[tick][1] == count, tick
        assert found[tick][0] == (None if mean is None else pytest.approx(mean, rel=1e-12)), tick


EXCERPTS = {
    "alps": "\n".join(
        f"{site} 2007 09 13 15 35 {i} {1189690540 + 120 * i + 7 * site} 1.3{i} {'NaN' if i == 3 else 5 + i}"
        "  3.2 635.4 80.0 12.3 -12.8 NaN 27.3"
        for i in range(60)
        for site in (2, 5)
    ),
    "office": "\n".join(
        f"{1163700900984 + 300_031 * i} {site} {i} 18,{10 + i}\t{'1.000' if i == 4 else '3'} 57,25 24,11 1 2"
        for i in range(40)
        for site in (7, 0)
    ),
    "links": '{"tx_length": 100}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n'
    + "".join(
        f"2018-01-25T0{1 + i // 20}:{3 * (i % 20):02}:22.0,{i % 5},3,11,-6{i % 10}.5,0.{i + 10},100\n"
        for i in range(75)
    ),
    "room": "timestamp,value\n"
    + "".join(f"2013-11-0{2 + i // 24} {i % 24:02}:00:00,{60 + i / 8}\n" for i in range(60)),
}


@pytest.mark.parametrize("extent", EXCERPTS)
def test_means_of_excerpt_equal_independent_ones(extent, tmp_path, capsys):
    path = tmp_path / "excerpt.gz"
    path.write_bytes(gzip.compress((EXCERPTS[extent] + "\n").encode()))
    check(extent, path, capsys)


def test_means_of_wide_excerpt_equal_independent_ones(tmp_path, capsys):
    motes = {
        f"m{site}": [None if (at + site) % 7 == 0 else 1800 + at * site for at in range(300)] for site in (1, 4, 54)
    }
    table = pa.table(
        {"epoch": pa.array(range(8700, 9000), pa.int32())} | {n: pa.array(v, pa.int16()) for n, v in motes.items()}
    )
    pq.write_table(table, tmp_path / "excerpt.parquet")
    check("intel", tmp_path / "excerpt.parquet", capsys)


@pytest.mark.parametrize("extent", SETS)
def test_means_of_original_file_equal_independent_ones(extent, shared_data, capsys):
    check(extent, shared_data / SETS[extent][3], capsys)
