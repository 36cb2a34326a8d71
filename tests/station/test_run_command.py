"""`moteloom run` as its user starts it: a process of its own, killed and started again, asked by the other commands."""

import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.docs.pages import ROOT

SCENARIO = ROOT / "examples/roadbridge/night.scenario.toml"
QUERY = "SELECT COUNT(*) AS n FROM road [NOW]"


def moteloom(*arguments, code=0, **more):
    done = subprocess.run(
        [sys.executable, "-m", "gateway.cli", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        **more,
    )
    assert done.returncode == code, done.stderr
    return done


class StationProcess:
    """Starts `moteloom run`, and starts it again on the same data."""

    def __init__(self, folder):
        self.data, self.log = folder / "data", folder / "log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.at = ("--url", f"http://127.0.0.1:{self.port}", "--data", self.data)
        self.process = None

    def start(self):
        command = [
            "-m",
            "gateway.cli",
            "run",
            "--simulate",
            SCENARIO,
            "--speed",
            "20",
            "--data",
            self.data,
            "--port",
            self.port,
        ]
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([sys.executable, *map(str, command)], cwd=ROOT, stderr=log)
        for _ in range(300):
            if self.log.read_text().count("Ctrl-C") and self._listens():
                return
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    def _listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self, number):
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@pytest.fixture
def station(tmp_path):
    running = StationProcess(tmp_path)
    yield running
    if running.process and running.process.poll() is None:
        running.process.kill()
        running.process.wait()


@pytest.mark.promise("durable")
@pytest.mark.timeout(300)
def test_killed_station_goes_on_with_queries_and_result_numbers(station):
    station.start()
    assert moteloom("query", "submit", QUERY, *station.at).stdout == "1\n"
    watched = moteloom("query", "watch", 1, "--count", 3, "-o", "json", *station.at).stdout.splitlines()
    before = [json.loads(line) for line in watched]
    assert [line["number"] for line in before] == [1, 2, 3]
    assert oct((station.data / "token").stat().st_mode & 0o777) == "0o600"
    assert station.end(signal.SIGKILL) == -signal.SIGKILL
    moteloom("query", "list", *station.at, code=4)
    station.start()
    assert moteloom("query", "list", *station.at).stdout == f"   1  running    {QUERY}\n"
    after = [
        json.loads(line)
        for line in moteloom("query", "watch", 1, "--count", 6, "-o", "json", *station.at).stdout.splitlines()
    ]
    assert after[:3] == before and [line["number"] for line in after] == [1, 2, 3, 4, 5, 6]
    assert moteloom("query", "stop", 1, *station.at).stdout.startswith("query 1, stopped")
    assert len(moteloom("motes", "-o", "json", *station.at).stdout.splitlines()) == 4
    assert station.end(signal.SIGTERM) == 0
    assert "stopped; everything is kept" in station.log.read_text()


@pytest.mark.timeout(120)
def test_wrong_commands_get_one_clear_message(station, tmp_path):
    station.start()
    refused = moteloom("query", "submit", "SELECT tmep FROM road [NOW]", *station.at, code=2)
    assert "did you mean `temp`?" in refused.stderr and "^^^^" in refused.stderr
    assert (
        "there is no query 7; none has been submitted yet" in moteloom("query", "show", 7, *station.at, code=2).stderr
    )
    wrong = moteloom("query", "list", "--url", station.at[1], "--token", "wrong", code=2)
    assert "send `Authorization: Bearer <token>`" in wrong.stderr
    same = moteloom("run", "--simulate", SCENARIO, "--data", station.data, "--port", 0, code=1)
    assert "another station uses the data directory" in same.stderr
    port = moteloom("run", "--simulate", SCENARIO, "--data", tmp_path / "other", "--port", station.port, code=1)
    assert f"cannot listen on 127.0.0.1:{station.port}" in port.stderr
    copy = tmp_path / "copy.db"
    moteloom("backup", copy, "--data", station.data)
    assert station.end(signal.SIGINT) == 0
    moteloom("restore", copy, "--data", station.data)
    assert "no file" in moteloom("restore", tmp_path / "none.db", "--data", station.data, code=1).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--simulate", "nothing.toml"], 3, "nothing.toml"),
        (["--link", "/dev/there-is-none", "-c", "examples/lab54/deployment.toml"], 1, "cannot be opened"),
        (["--link", "/dev/there-is-none"], 1, "-c FILE"),
        (["--simulate", str(SCENARIO), "--no-token", "--host", "0.0.0.0"], 1, "this machine only"),
        (["--simulate", str(SCENARIO), "--speed", "0"], 2, "no speed"),
        ([], 2, "--simulate"),
    ],
)
def test_station_that_cannot_start_says_why(arguments, code, words, tmp_path):
    done = moteloom("run", *arguments, "--data", tmp_path / "data", code=code, env=dict(os.environ))
    assert words in done.stderr and "Traceback" not in done.stderr
