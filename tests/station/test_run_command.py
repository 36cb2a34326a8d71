"""`moteloom run` as its user starts it: a process of its own, killed and started again, asked by the other commands."""

import http.server
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import ClassVar

import pytest

from basestation.cli.run import _seconds
from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.testbed.live_motes import MoteScenario
from moteloom.client import StationError, connect
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

    def __init__(self, folder, program=("-m", "gateway.cli"), speed=20):
        self.program, self.speed = program, speed
        self.data, self.log = folder / "data", folder / "log"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.at = ("--url", f"http://127.0.0.1:{self.port}", "--data", self.data)
        self.process = None

    def start(self):
        command = [
            *self.program,
            "run",
            "--simulate",
            SCENARIO,
            "--speed",
            self.speed,
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
    ended = moteloom("query", "watch", 1, "-o", "json", *station.at).stdout.splitlines()
    assert [json.loads(line)["number"] for line in ended] == list(range(1, len(ended) + 1)) and len(ended) >= 6
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
    ("more", "words"),
    [
        (["--simulate", "examples/lab54/calm.scenario.toml"], "another deployment than 'lab54': 'roadbridge'"),
        (["--simulate", str(SCENARIO), "--agenda"], "start it without --agenda"),
    ],
)
def test_data_of_another_deployment_are_refused(more, words, tmp_path):
    make = make_factory(MoteScenario(str(SCENARIO)).deployment, is_duty_cycled=False)
    journal = Journal(tmp_path / "data")
    make.check(DurableStation(journal, make, 1_763_452_795_000).station)
    journal.close()
    done = moteloom("run", *more, "--data", tmp_path / "data", "--port", 0, code=1)
    assert words in done.stderr and "Traceback" not in done.stderr


class Stranger(http.server.BaseHTTPRequestHandler):
    """A web server that is no station: /moved goes elsewhere, the rest is text."""

    given: ClassVar[list[str | None]] = []

    def do_GET(self):
        self.given.append(self.headers["authorization"])
        self.send_response(302 if self.path.startswith("/moved") else 200)
        self.send_header("location", "/elsewhere")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_):
        """Say nothing."""


def test_client_names_what_is_no_station(tmp_path):
    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for wrong in (url, f"{url}/moved", "nowhere", "http://[", "http://127.0.0.1:1"):
            with pytest.raises(StationError, match="no station answers at"):
                connect(wrong, "secret").get("/v1/queries")
        with pytest.raises(StationError, match="answers 501") as refused:
            connect(url, data=tmp_path).post("/v1/queries", "")
        assert refused.value.problem["status"] == 501
        server.shutdown()
    assert Stranger.given == ["Bearer secret", "Bearer secret"]


def test_clock_goes_on_while_the_machine_sleeps(monkeypatch):
    asked = []
    monkeypatch.setattr(time, "clock_gettime", lambda clock: asked.append(clock) or 1.0)
    assert _seconds() == 1.0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME", raising=False)
    assert _seconds() == 1.0
    assert asked[-1] == time.CLOCK_MONOTONIC and (sys.platform != "linux" or asked[0] != time.CLOCK_MONOTONIC)


@pytest.mark.timeout(120)
def test_open_event_stream_does_not_delay_the_end(station):
    station.start()
    moteloom("query", "submit", QUERY, *station.at)
    token = (station.data / "token").read_text().strip()
    head = f"GET /v1/queries/1/results HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
    with socket.create_connection(("127.0.0.1", station.port)) as reader:
        reader.sendall(f"{head}Accept: text/event-stream\r\n\r\n".encode())
        assert b"200 OK" in reader.recv(1_000)
        begun = time.monotonic()
        assert station.end(signal.SIGTERM) == 0
        assert time.monotonic() - begun < 9
    assert "Traceback" not in station.log.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--simulate", "nothing.toml"], 3, "nothing.toml"),
        (["--link", "/dev/there-is-none", "-c", "examples/lab54/deployment.toml"], 1, "cannot be opened"),
        (["--link", "/dev/there-is-none"], 1, "-c FILE"),
        (["--simulate", str(SCENARIO), "--no-token", "--host", "0.0.0.0"], 1, "this machine only"),
        (["--simulate", str(SCENARIO), "--speed", "0"], 2, "no speed"),
        (["--simulate", str(SCENARIO), "--port", "99999"], 2, "no port"),
        ([], 2, "--simulate"),
    ],
)
def test_station_that_cannot_start_says_why(arguments, code, words, tmp_path):
    done = moteloom("run", *arguments, "--data", tmp_path / "data", code=code, env=dict(os.environ))
    assert words in done.stderr and "Traceback" not in done.stderr
