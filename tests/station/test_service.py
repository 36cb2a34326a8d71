"""The station as a service of systemd: ready, watchdog, files read again, JSON log, and how it ends."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from basestation.cli.init import _deployment, _scenario
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.reload import describe_changes
from basestation.station.runner import Runner, ScaledClock
from basestation.station.service_manager import ServiceManager
from gateway.log import configure_logging
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import ROOT
from tests.station.small_network import QUERIES, SmallNetwork

SCENARIO = ROOT / "examples/roadbridge"


@pytest.fixture
def systemd(tmp_path):
    """A socket like that of systemd; `systemd()` is what came next."""
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    wire.bind(str(tmp_path / "notify"))

    def read(seconds=60):
        return wire.recv(1_000).decode() if select.select([wire], [], [], seconds)[0] else None

    read.environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "2000000"}
    yield read
    wire.close()


def test_watchdog_is_answered_four_times_in_its_time(systemd):
    now = 100.0
    manager = ServiceManager(systemd.environment, lambda: now)
    manager.ready()
    assert systemd() == "READY=1"
    for step in range(21):  # 2 s in steps of 0.1 s
        now = 100.0 + step / 10
        manager.progress()
    assert [systemd(0) for _ in range(6)] == ["WATCHDOG=1"] * 5 + [None]
    manager.reloading()
    assert systemd().startswith("RELOADING=1\nMONOTONIC_USEC=")


def test_without_systemd_nothing_is_sent(systemd):
    for environment in ({}, {"WATCHDOG_USEC": "20"}, systemd.environment | {"WATCHDOG_PID": "1"}):
        ServiceManager(environment, lambda: 0.0).progress()
    assert systemd(0) is None


def test_missing_socket_is_a_warning(tmp_path, capsys):
    configure_logging("warning")
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "none")}).ready()
    assert "systemd cannot be notified" in capsys.readouterr().err


def test_progress_follows_the_data_path(tmp_path):
    """The watchdog is answered after a look, and not while one hangs."""
    network, rounds = SmallNetwork(tmp_path), []
    runner = Runner(
        network.durable, ScaledClock(lambda: 0.0, network.now_ms), on_progress=lambda: rounds.append(len(looks))
    )
    looks, look = [], runner.look

    def noted(now_ms):
        assert len(rounds) == len(looks)  # none while a look goes on
        looks.append(now_ms)
        look(now_ms)
        runner.stop()

    runner.look = noted
    runner.run()
    assert rounds == [1]


def test_action_that_fails_is_in_the_log(tmp_path, capsys):
    configure_logging("warning")
    network = SmallNetwork(tmp_path)
    runner = Runner(network.durable, ScaledClock(lambda: 0.0, network.now_ms))
    runner.post(lambda now_ms: 1 / 0)
    runner.post(lambda now_ms: runner.stop())
    runner.run()
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_changes_of_a_deployment_are_named():
    running = read_deployment(SCENARIO / "deployment.toml")
    catalog = read_deployed_catalog(running)
    assert describe_changes(running, catalog, running) == []
    moved = replace(running.motes[2], position=(1.0, 1.0, 1.0))
    fresh = replace(running, tick_ms=500, motes={**running.motes, 2: moved, 9: running.motes[1]}, links={})
    found = describe_changes(running, catalog, fresh)
    assert found[:3] == ["`tick_ms` is 500, the station runs with 1000", "mote 2 changed", "mote 9 is new"]
    assert found[3].startswith("`links` changed") and found[4:] == [
        "extent road changed",
        "extent traffic changed",
    ]  # their tick
    assert describe_changes(fresh, catalog, running)[2] == "mote 9 is missing"


@pytest.mark.timeout(120)
def test_service_is_ready_reads_its_files_again_and_stops(tmp_path, systemd):
    folder = tmp_path / "net"
    folder.mkdir()
    for motes in (2, 3):
        (folder / f"{motes}.toml").write_text(_deployment("net", motes, "telosb", "light", 10))
    (folder / "simulated.scenario.toml").write_text(_scenario("light"))
    shutil.copy(folder / "2.toml", folder / "deployment.toml")
    command = ["run", "--simulate", "net/simulated.scenario.toml", "--port", "0", "--data", "data", "--log", "json"]
    with open(tmp_path / "log", "w") as log:
        station = subprocess.Popen([sys.executable, "-m", "gateway.cli", *command], cwd=tmp_path, stderr=log,
                                   env={**os.environ, "PYTHONPATH": str(ROOT), **systemd.environment})  # fmt: skip
    try:
        assert systemd() == "READY=1"
        assert systemd() == "WATCHDOG=1" == systemd()
        shutil.copy(folder / "3.toml", folder / "deployment.toml")
        station.send_signal(signal.SIGHUP)
        assert states(systemd, 2) == ["RELOADING=1", "READY=1"]
        (folder / "deployment.toml").write_text("name = 3")
        station.send_signal(signal.SIGHUP)
        assert states(systemd, 2) == ["RELOADING=1", "READY=1"]
        station.send_signal(signal.SIGTERM)
        assert states(systemd, 1) == ["STOPPING=1"]
        assert station.wait(timeout=60) == 0
    finally:
        station.kill()
        station.wait()
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    events = [(line["event"], line.get("why", "").split("\n")[0]) for line in lines]
    assert ("a change of the deployment is not taken", "mote 3 is new") in events
    assert any(event == "reading the deployment again fails" for event, _ in events)
    assert {"station ready", "station stopped"} <= {event for event, _ in events}
    assert all({"time", "level", "log", "event"} <= line.keys() for line in lines)


def states(systemd, count):
    """The next states but those of the watchdog."""
    found = []
    while len(found) < count:
        state = systemd().splitlines()[0]
        found += [state] if state != "WATCHDOG=1" else []
    return found


def test_events_of_a_replay_are_not_logged_again(tmp_path, capsys):
    configure_logging("info")
    network = SmallNetwork(tmp_path)
    network.submit(QUERIES[0])
    network.live(20)
    assert capsys.readouterr().err.count('event="query running"') == 1
    network.restart()
    assert "query" not in capsys.readouterr().err
