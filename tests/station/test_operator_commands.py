"""`moteloom init`, `config` and `doctor`: from nothing to a deployment that is right, and to a machine that can run it."""

import json
import os
import socket
import sqlite3
from pathlib import Path

import pytest

from basestation.cli import doctor, init
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.journal import Journal
from basestation.testbed.live_motes import MoteScenario
from gateway.cli import dispatch
from innet.costs.hardware import list_hardware
from innet.deployment.toml_reader import read_deployment
from tests.docs.commands import verbs
from tests.docs.pages import ROOT

VERBS = verbs()


@pytest.fixture
def moteloom(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", open(os.devnull))

    def command(*arguments, code=0):
        assert dispatch([*map(str, arguments)], VERBS) == code
        return capsys.readouterr()

    return command


@pytest.mark.parametrize("hardware", list_hardware())
@pytest.mark.parametrize("quantity", init.QUANTITIES)
def test_written_deployment_is_right(hardware, quantity, moteloom, tmp_path):
    moteloom("init", "net", "--hardware", hardware, "--quantity", quantity, "--motes", 7, "--every", 5)
    deployment = read_deployment(tmp_path / "net/deployment.toml")
    extent = read_deployed_catalog(deployment).extents["readings"]
    assert (extent.interval, extent.sites, deployment.motes[7].hardware) == (5, tuple(range(1, 8)), hardware)
    motes = MoteScenario(str(tmp_path / "net/simulated.scenario.toml")).start(0, 1, seed=None)
    motes.advance(1_000)
    assert moteloom("config", "check", "net/deployment.toml").out.startswith(
        "net/deployment.toml is right: station; motes: 7,"
    )


def test_terminal_is_asked_until_the_answer_is_right(moteloom, monkeypatch, capsys):
    asked, answers = [], iter(["greenhouse", "many", "3", "telsob", "telosb", "light", ""])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or next(answers))
    found = moteloom("init")
    assert len(asked) == 7 and "did you mean `telosb`" in found.err and "from 1 to 200" in found.err
    assert read_deployment("deployment.toml").name == "greenhouse"


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [("motes", "0", "from 1 to 200"), ("motes", "9" * 5_000, "from 1 to 200"), ("every", "-1", "from 1 to 86,400"),
     ("hardware", "mica", "did you mean `mica2`"), ("name", 'a"b', "without quotes"), ("name", "", "64 characters")],
)  # fmt: skip
def test_wrong_flag_writes_nothing(flag, value, words, moteloom, tmp_path):
    assert words in moteloom("init", f"--{flag}={value}", code=2).err
    assert not list(tmp_path.iterdir())


def test_doctor_refuses_a_port_that_is_none(moteloom, capsys):
    with pytest.raises(SystemExit):
        moteloom("doctor", "--port", 99_999)
    assert "no port between 0 and 65535" in capsys.readouterr().err


def test_init_overwrites_nothing(moteloom, tmp_path):
    Path("deployment.toml").write_text("mine")
    assert "deployment.toml is there already" in moteloom("init", code=1).err
    assert [path.name for path in tmp_path.iterdir()] == ["deployment.toml"] and Path(
        "deployment.toml"
    ).read_text() == "mine"


def test_every_error_of_a_deployment_is_shown_at_once(moteloom):
    moteloom("init")
    text = Path("deployment.toml").read_text()
    Path("wrong.toml").write_text(text.replace("tick_ms", "tik_ms").replace('"telosb"', '"telsob"'))
    err = moteloom("config", "check", "wrong.toml", code=3).err
    assert "did you mean `tick_ms`" in err and "did you mean `telosb`" in err and "wrong.toml:3:1" in err
    lines = moteloom("config", "check", "-o", "json", "wrong.toml", code=3).out.splitlines()
    assert {json.loads(line)["code"] for line in lines} == {"SN702", "SN706"}
    Path("wrong.toml").write_text(text.replace("at sites all", "at sites 9"))
    assert "there is no mote 9" in moteloom("config", "check", "wrong.toml", code=2).err
    assert "SN501" in moteloom("config", "show", "none.toml", code=3).err


def test_each_value_is_shown_with_its_origin(moteloom):
    moteloom("init", "--motes", 1)
    Path("deployment.toml").write_text(Path("deployment.toml").read_text().replace("tick_ms = 1000", "#"))
    lines = [json.loads(line) for line in moteloom("config", "show", "-o", "json", "deployment.toml").out.splitlines()]
    found = {line["key"]: (line["value"], line["line"]) for line in lines}
    text = Path("deployment.toml").read_text().splitlines()
    assert found["tick_ms"] == (1_000, None) and found["links.radio.exponent"][1] is None
    assert found["boards.node.battery_mah"] == (2_900, text.index("battery_mah = 2900") + 1)
    assert found["motes.1.at"][0] == [8, 0] and text[found["motes.1.at"][1] - 1].startswith("1 = { at")
    shown = moteloom("config", "show", "--origin", "deployment.toml").out
    assert 'name = "station"    # deployment.toml:2\n' in shown and "tick_ms = 1000    # default\n" in shown


def test_doctor_finds_a_machine_that_is_well(moteloom):
    moteloom("init")
    Journal(Path("data")).close()
    found = moteloom("doctor", "-c", "deployment.toml", "--data", "data", "--port", 0, "-o", "json").out.splitlines()
    levels = {line["what"]: line["level"] for line in map(json.loads, found)}
    assert list(levels) == ["program", "data", "disk", "store", "port", "clock", "memory", "java", "deployment"]
    assert {levels[what] for what in ("program", "disk", "store", "port", "deployment")} <= {"ok", "warning"}


def test_doctor_names_what_fails_and_its_remedy(moteloom):
    database = sqlite3.connect("station.db")
    database.execute("CREATE TABLE t (x)").connection.close()
    Path("wrong.toml").write_text("name = 3\n")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        out = moteloom("doctor", "-c", "wrong.toml", "--data", ".", "--port", port, code=1).out
    lines = {line.split()[1]: line for line in out.splitlines()}
    assert lines["store"].startswith("failure") and lines["store"].endswith("choose another directory with --data")
    assert lines["port"].startswith("failure") and f"127.0.0.1:{port}" in lines["port"]
    assert lines["deployment"].endswith("moteloom config check wrong.toml shows where")


@pytest.mark.parametrize(("year", "level"), [(1970, "failure"), (2026, "ok"), (2200, "failure")])
def test_clock_that_cannot_be_right_fails(year, level, monkeypatch):
    monkeypatch.setattr(doctor.Path, "exists", lambda _: False)
    assert doctor._clock((year - 1970) * 31_557_600 + 86_400).level == level


def test_disk_that_is_full_or_slow_is_found(monkeypatch, tmp_path):
    def free(count):
        monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: Usage(count))

    class Usage:
        def __init__(self, free):
            self.free = free

    for count, level in ((10**6, "failure"), (5 * 10**8, "warning"), (10**10, "ok")):
        free(count)
        assert doctor._folder(tmp_path / "to/be/made").level == level
    ticks = iter(range(100))
    monkeypatch.setattr(doctor.time, "perf_counter", lambda: next(ticks))
    assert doctor._sync_speed(tmp_path).level == "warning" and not list(tmp_path.iterdir())


def test_commands_are_named_by_the_page():
    page = (ROOT / "docs/operating.md").read_text()
    for verb in ("init", "config check", "config show --origin", "doctor", "events --follow"):
        assert f"moteloom {verb}" in page


def test_archive_limits_of_an_unknown_extent_are_named(moteloom, tmp_path):
    moteloom("init", "net")
    path = tmp_path / "net/deployment.toml"
    path.write_text(path.read_text() + "\n[archive.reading]\nkeep_days = 30\n")
    found = moteloom("config", "check", path, code=3)
    assert "`[archive.reading]`: there is no extent `reading`" in found.err and "did you mean `readings`?" in found.err
    path.write_text(path.read_text().replace("[archive.reading]", "[archive.readings]"))
    moteloom("config", "check", path)
