"""A recording is the world of a scenario in one line, with the times that replay takes."""

import json

import pytest

from basestation.testbed.scenarios import read_scenario
from gateway.toml import ConfigError
from tests.simulation.scenario_judge import FOLDER
from tests.simulation.test_cli import moteloom_sim

FIRST = 1_795_075_200
"""2026-11-19T08:00:00Z"""
QUERY = 'queries.all.text = "SELECT site, temp FROM hall [NOW] WHERE temp > 0"\n'
ROWS = [(60 * minute, site, 20 + site + minute / 4) for minute in range(3) for site in (3, 4)]


def scenario(tmp_path, world, times, head="when,mote,temp"):
    """The path of a scenario whose recording has these times."""
    lines = [f"{time},{site},{value}" for time, (_, site, value) in zip(times, ROWS, strict=True)]
    (tmp_path / "day.csv").write_text("\n".join([head, *lines]) + "\n")
    path = tmp_path / "day.toml"
    path.write_text(f'deployment = "{FOLDER / "hall.toml"}"\n{QUERY}{world}\n')
    return path


def utc(second, hour=8):
    return f"2026-11-19T{hour:02}:{second // 60:02}:{second % 60:02}"


WORLD = 'world = { file = "day.csv", time_column = "when", site_column = "mote"%s }'


@pytest.mark.parametrize(
    ("world", "times"),
    [
        (WORLD % "", [f"{utc(second)}Z" for second, _, _ in ROWS]),
        (WORLD % ', zone = "Europe/Zurich"', [utc(second, 9) for second, _, _ in ROWS]),
        (WORLD % "", [(FIRST + second) * 1_000 for second, _, _ in ROWS]),
    ],
    ids=["rfc 3339", "zone", "milliseconds since 1970"],
)
@pytest.mark.parametrize("way", ["--swept", "--always-on"])
def test_motes_measure_what_was_recorded(tmp_path, capsys, world, times, way):
    path = scenario(tmp_path, world, times)
    assert moteloom_sim(path, "--for", "3min", way, "--out", tmp_path / "out") == 0
    lines = map(json.loads, (tmp_path / "out/seed-1/answers.jsonl").read_text().splitlines())
    rows = {(line["tick"] - FIRST, *row) for line in lines for row in line.get("rows") or line.get("added", ())}
    expected = {(tick, site, value) for second, site, value in ROWS for tick in range(second, second + 60, 10)}
    if way == "--always-on":  # the clock of a mote may be a millisecond early, and find the value before
        rows, expected = ({row for row in each if row[0] % 60} for each in (rows, expected))
    assert rows <= expected and {(site, value) for _, site, value in rows} == {row[1:] for row in ROWS}


def test_plain_recording_is_a_world_in_one_line(tmp_path):
    path = scenario(tmp_path, 'world.file = "day.csv"', [second + 500 for second, _, _ in ROWS], "_tick,_site,temp")
    found = read_scenario(path)
    assert (
        found.begin_ms == 500_000
        and set(found.world) == {"temperature"}
        and found.world["temperature"].column == "temp"
    )
    path.write_text(f'begin = "10 min"\n{path.read_text()}\n[world.supply]\nmean = 3.0\n')
    found = read_scenario(path)
    assert found.begin_ms == 600_000 and found.world["supply"].mean == 3.0 and "temperature" in found.world


@pytest.mark.promise("bad-files")
@pytest.mark.parametrize(
    ("world", "head", "message"),
    [
        (WORLD % "", "whem,mote,temp", "the column `when` is missing"),
        (WORLD % "", "when,mote,heat", "no column has the name of an attribute or sensor"),
        (WORLD % ', zone = "Mars"', "when,mote,temp", "there is no zone `Mars`"),
        (WORLD % ', mean = 3', "when,mote,temp", "`mean`: expected a table"),
        ('world.file = "night.csv"', "when,mote,temp", "there is no file"),
        ('world.file = 7', "when,mote,temp", "`file`: expected a text in quotes"),
    ],
)  # fmt: skip
def test_wrong_recording_points_into_the_scenario(tmp_path, world, head, message):
    path = scenario(tmp_path, world, [f"{utc(second)}Z" for second, _, _ in ROWS], head)
    with pytest.raises(ConfigError) as error:
        read_scenario(path)
    assert message in str(error.value) and "day.toml:3:" in str(error.value)


@pytest.mark.promise("bad-files")
def test_time_that_is_missing_is_named_by_its_row(tmp_path, capsys):
    path = scenario(
        tmp_path, WORLD % "", [f"{utc(ROWS[0][0])}Z", "", *(f"{utc(second)}Z" for second, _, _ in ROWS[2:])]
    )
    assert moteloom_sim(path, "--for", "1min") == 3
    assert "day.csv, row 2, column when: there is no time" in capsys.readouterr().err
