"""`moteloom gateway` and `moteloom run` with a broker between them, as their user starts them; and their messages."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from gateway.broker_settings import BrokerSettings
from gateway.cli import main
from gateway.transports.mqtt import BrokerConnection
from tests.brokers import Amqtt, BrokerWire, wait_until
from tests.docs.pages import ROOT
from tests.station.test_run_command import moteloom

QUERY = "SELECT COUNT(*) AS n FROM road [NOW]"


@pytest.fixture
def folder(tmp_path):
    """The road bridge, sampled every second, so that a test need not wait for a minute."""
    bridge = tmp_path / "bridge"
    shutil.copytree(ROOT / "examples/roadbridge", bridge)
    schema = bridge / "schema.sneeql"
    text = schema.read_text()
    for old, new in (("every 1 min", "every 1 sec"), ("wait 30 sec", "wait 2 sec"), ("ahead 1 min", "ahead 10 sec")):
        assert old in text
        text = text.replace(old, new)
    schema.write_text(text)
    return tmp_path


@pytest.fixture
def start(folder):
    processes = []

    def start_(*arguments):
        log = folder / f"{arguments[0]}.log"
        with open(log, "w") as file:
            command = [sys.executable, "-m", "gateway.cli", *map(str, arguments)]
            processes.append(subprocess.Popen(command, cwd=folder, stderr=file))
        wait_until(lambda: "Ctrl-C" in log.read_text() or processes[-1].poll() is not None, 60)
        assert processes[-1].poll() is None, log.read_text()
        return processes[-1], log

    yield start_
    for process in processes:
        if process.poll() is None:
            process.kill()
            process.wait()


def _published(messages):
    """The values of n; amqtt also delivers retained messages of other topics."""
    return [json.loads(each.payload)["n"] for each in messages if each.topic == "bridge/v1/query/1/result"]


@pytest.mark.promise("broker")
@pytest.mark.timeout(300)
def test_station_hears_motes_behind_a_broker(folder, start):
    wire = BrokerWire(Amqtt, folder)
    deployment = folder / "bridge/deployment.toml"
    with deployment.open("a") as file:
        file.write(f'\n[link]\nurl = "mqtt://127.0.0.1:{wire.port}/bridge"\n')
    gateway, gateway_log = start("gateway", "--simulate", "bridge/night.scenario.toml", "-c", deployment)
    station, station_log = start("run", "-v", "-c", deployment, "--publish", "--data", folder / "data", "--port", 0)
    reader = BrokerConnection(
        BrokerSettings("127.0.0.1", wire.port, "bridge"), "reader", None, ["bridge/v1/query/+/result"]
    )
    reader.open()
    at = ("--url", (folder / "data/url").read_text().strip(), "--data", folder / "data")
    moteloom("query", "submit", QUERY, *at)
    lines = moteloom("query", "watch", 1, "--count", 14, "-o", "json", *at).stdout.splitlines()
    best = max(json.loads(line)["coverage"]["road"][0] for line in lines)
    assert best >= 2, station_log.read_text()
    assert f"link       mqtt://127.0.0.1:{wire.port}/bridge, without a user, no TLS" in station_log.read_text()
    arrived = []
    wait_until(lambda: arrived.extend(reader.take()) or any(n >= 2 for n in _published(arrived)), 30)
    reader.close()
    gateway.send_signal(signal.SIGTERM)
    assert gateway.wait(timeout=30) == 0 and "stopped; frames: " in gateway_log.read_text()
    wait_until(lambda: "gateway 0 is stopped" in station_log.read_text(), 30)
    station.send_signal(signal.SIGINT)
    assert station.wait(timeout=60) == 0
    assert "Traceback" not in station_log.read_text() + gateway_log.read_text()
    wire.close()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["gateway"], 2, "--radio"),
        (["gateway", "--radio", "/dev/none", "--link", "mqtt://127.0.0.1:9"], 1, "/dev/none cannot be opened"),
        (["gateway", "--radio", "loop://", "--number", "65535"], 2, "no gateway's number"),
        (["gateway", "--radio", "loop://"], 1, "a gateway needs its broker: --link"),
        (["gateway", "--radio", "loop://", "--link", "/dev/ttyUSB0"], 1, "expected the URL of a broker"),
        (["gateway", "--simulate", "none.toml", "--link", "mqtt://127.0.0.1:9"], 3, "none.toml"),
        (["run", "--simulate", "examples/roadbridge/night.scenario.toml", "--publish"], 1, "--publish needs a broker"),
        (["run", "-c", "examples/roadbridge/deployment.toml"], 1, "has no table [link]"),
        (["run", "-c", "examples/roadbridge/deployment.toml", "--link", "mqtt://a:s3cret@b/c"], 1, "table [link]"),
    ],
)
def test_command_that_cannot_start_says_why(arguments, code, words, tmp_path, capsys):
    data = ["--data", str(tmp_path / "data")] if arguments[0] == "run" else []
    try:
        found = main([*arguments, *data])
    except SystemExit as misused:
        found = misused.code
    error = capsys.readouterr().err
    assert found == code and words in error and "s3cret" not in error
