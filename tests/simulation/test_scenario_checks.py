"""A scenario is checked before anything runs, and each fault is shown at its place in the TOML."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.simulation.scenario_judge import FOLDER
from tests.simulation.test_cli import moteloom_sim

HALL = (FOLDER / "hall.toml").read_text()
CALM = (FOLDER / "calm.toml").read_text()


def scenario(tmp_path, more="", hall=None):
    """The path of the calm scenario with further lines, perhaps with another deployment."""
    where = FOLDER / "hall.toml"
    if hall is not None:
        where = tmp_path / "hall.toml"
        where.write_text(hall)
    path = tmp_path / "some.toml"
    path.write_text(CALM.replace('"hall.toml"', f'"{where}"') + more)
    return path


def refused(capsys, path, code, *arguments):
    """The standard error of a refused run, which runs nothing."""
    assert moteloom_sim(path, "--for", "1min", *arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.promise("bad-files")
def test_wrong_query_points_into_the_scenario(tmp_path, capsys):
    path = scenario(tmp_path, "\n[queries.odd]\ntext = '''\nSELECT temp\nFROM hal [NOW]\n'''\n")
    err = refused(capsys, path, 2)
    line = path.read_text().splitlines().index("FROM hal [NOW]") + 1
    assert f"some.toml:{line}:6\n  FROM hal [NOW]\n       ^^^" in err and "did you mean `hall`?" in err


@pytest.mark.promise("bad-files")
def test_wrong_query_of_a_file_points_into_that_file(tmp_path, capsys):
    (tmp_path / "odd.sneeql").write_text("-- a query\nSELECT tmp FROM hall [NOW]\n")
    err = refused(capsys, scenario(tmp_path, '\n[queries.odd]\nfile = "odd.sneeql"\n'), 2)
    assert f"{tmp_path / 'odd.sneeql'}:2:8" in err and "query `odd` was refused" in err
    (tmp_path / "odd.sneeql").write_bytes(b"SELECT \xff")
    err = refused(capsys, tmp_path / "some.toml", 3)
    assert "SN708: `odd.sneeql` cannot be read" in err and 'file = "odd.sneeql"' in err


@pytest.mark.promise("bad-files")
def test_every_wrong_query_is_reported(tmp_path, capsys):
    more = "\n".join(f'[queries.{name}]\ntext = "SELECT {name} FROM hall [NOW]"' for name in ("warm", "cold"))
    assert moteloom_sim(scenario(tmp_path, f"\n{more}\n"), "--for", "1min", "-o", "json") == 2
    errors = list(map(json.loads, capsys.readouterr().out.splitlines()))
    assert [(each["query"], each["code"]) for each in errors] == [("warm", "SN202"), ("cold", "SN202")]
    assert errors[0]["line"] + 2 == errors[1]["line"]


@pytest.mark.promise("bad-files")
def test_impossible_lifetime_is_refused_before_the_run(tmp_path, capsys):
    path = scenario(tmp_path, '\n[queries.ever]\ntext = "SELECT temp FROM hall LIFETIME 90000 DAYS"\n')
    assert "SN513: motes last " in (err := refused(capsys, path, 2)) and "some.toml:" in err
    text = path.read_text().replace("90000 DAYS", "10 DAYS")
    path.write_text(text)
    assert "LIFETIME needs duty-cycled motes" in refused(capsys, path, 2, "--always-on")


@pytest.mark.promise("bad-files")
def test_gateway_without_links_is_refused(tmp_path, capsys):
    links = HALL[HALL.index("[links]") :].split("\n[", 1)[0]
    err = refused(
        capsys, scenario(tmp_path, hall=HALL.replace(links, "[links]\ntable = [[1, 2, 0.9], [2, 1, 0.9]]\n")), 3
    )
    assert "SN530: no mote reaches a gateway" in err and "some.toml:2:14" in err and "links to gateway 0" in err
    err = refused(capsys, scenario(tmp_path, "\n[radio]\ndelivery = 0\n"), 3)
    assert "links deliver nothing" in err and "delivery = 0\n             ^" in err


@pytest.mark.promise("bad-files")
def test_mote_without_a_route_is_named(tmp_path, capsys):
    lines = [line for line in HALL.splitlines() if not line.strip().startswith(("[8,", "[7, 8")) and ", 8," not in line]
    assert len(lines) < len(HALL.splitlines())
    assert moteloom_sim(scenario(tmp_path, hall="\n".join(lines)), "--for", "1s") == 0
    assert "no route to a gateway from 8; their readings cannot arrive" in capsys.readouterr().err


@pytest.mark.promise("bad-files")
def test_recording_without_its_column_points_at_the_file(tmp_path, capsys):
    (tmp_path / "day.csv").write_text("_tick,_site,warmth\n0,1,20\n")
    text = scenario(tmp_path).read_text()
    old = text[text.index("[world.temperature]") : text.index("[world.supply]")]
    (tmp_path / "some.toml").write_text(text.replace(old, '[world.temperature]\nfile = "day.csv"\ncolumn = "heat"\n\n'))
    err = refused(capsys, tmp_path / "some.toml", 3)
    assert "SN708: " in err and "needs the column `heat`" in err and 'file = "day.csv"\n         ^^^^^^^^^' in err


@pytest.mark.promise("bad-files")
def test_schema_with_site_0_is_refused(tmp_path, capsys):
    (tmp_path / "hall.sneeql").write_text(
        "hall: sensed (site:integer, time:integer, temp:float {unit 'Cel', scale 2, sensor 'temperature'}) every 10 sec at sites 0\n"
    )
    extents = HALL[HALL.index("[extents]") :].split("\n[", 1)[0]
    hall = HALL.replace(extents, '[extents]\nfile = "hall.sneeql"\n')
    assert "SN709: there is no mote 0" in refused(capsys, scenario(tmp_path, hall=hall), 2)


def test_seeds_run_in_processes_as_they_run_alone(tmp_path, capsys):
    found = []
    for jobs in ("1", "2"):
        out = tmp_path / jobs
        assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--seeds", "4..5", "--jobs", jobs, "--out", out,
                            "-o", "json") == 0  # fmt: skip
        files = {str(file.relative_to(out)): file.read_bytes() for file in sorted(out.rglob("*.*"))}
        found.append((capsys.readouterr().out, files))
    assert found[0] == found[1] and len(found[0][1]) == 8


def test_error_in_a_process_is_reported(tmp_path, capsys):
    (tmp_path / "seed-2").write_text("in the way")
    assert moteloom_sim(FOLDER / "calm.toml", "--for", "1min", "--seeds", "1..2", "--jobs", 2, "--out", tmp_path) == 3
    assert f"{tmp_path / 'seed-2'}: cannot be written: " in capsys.readouterr().err


@pytest.mark.promise("bad-files")
@pytest.mark.parametrize("jobs", [1, 2])
def test_interrupted_run_marks_its_files(tmp_path, jobs):
    """Files of a run before are gone: a folder never mixes two runs."""
    (tmp_path / "seed-1").mkdir()
    (tmp_path / "seed-1" / "motes.csv").write_text("of a run before\n")
    command = [sys.executable, "-c", "import sys; from gateway.cli import main; sys.exit(main())", "sim", "run",
               str(FOLDER / "calm.toml"), "--for", "30d", "--seeds", "1..2", "--jobs", str(jobs), "--out", str(tmp_path)]  # fmt: skip
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # also where the tests run in the background
    ) as process:  # fmt: skip
        trace = tmp_path / f"seed-{jobs}" / "trace.txt.part"
        while not (trace.exists() and trace.stat().st_size):
            assert process.poll() is None
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == f"moteloom sim: interrupted; unfinished files under {tmp_path} end in .part\n"
    assert {file.name for file in (tmp_path / "seed-1").iterdir()} == {"answers.jsonl.part", "trace.txt.part"}


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "99999"])
def test_senseless_number_of_jobs_is_misuse(jobs):
    with pytest.raises(SystemExit) as left:
        moteloom_sim(FOLDER / "calm.toml", "--for", "1min", f"--jobs={jobs}")
    assert left.value.code == 2
