"""docs/operating.md is true: every command of it is run against the station that its first command starts."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from basestation.results.flat import flat_objects
from tests.brokers import Amqtt, BrokerWire, wait_until
from tests.docs.pages import DOCS, ROOT
from tests.docs.running_station import running_station

PAGE = (DOCS / "operating.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]
BROKER = [command for command in COMMANDS if "mqtt://" in command]
PUBLISHED = json.loads(re.search(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1])


@pytest.mark.promise("pages-are-true", "broker")
@pytest.mark.timeout(300)
def test_station_and_gateway_of_the_page_meet_at_a_broker(tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    wire = BrokerWire(Amqtt, tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    processes, logs = [], []
    for name, command in zip(("gateway", "run"), BROKER[:2], strict=True):
        assert command.startswith(f"moteloom {name} ")
        logs.append(tmp_path / f"{name}.log")
        command = command.replace("127.0.0.1:1883", f"127.0.0.1:{wire.port}")
        more = ["-v", *(["--port", "0"] if name == "run" else [])]
        with open(logs[-1], "w") as log:
            processes.append(
                subprocess.Popen([*shlex.split(command), *more], cwd=tmp_path, env=environment, stderr=log)
            )
    try:
        wait_until(lambda: 'event="gateway changed" gateway=0 state=ready' in logs[1].read_text(), 60)
        assert "--publish mqtt://127.0.0.1:1883/lab54" in BROKER[2] and len(BROKER) == 3
        line = {
            "type": "window", "time": PUBLISHED["_time"], "query": 1, "number": 7, "revision": 0,
            "coverage": {"lab": [54, 54]}, "rows": [[21.9, 54]],
        }  # fmt: skip
        assert list(flat_objects(line, ["mean", "n"])) == [PUBLISHED]
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(timeout=60) for process in processes] == [0, 0], [log.read_text() for log in logs]
        wire.close()


def watch_until_value(command, station):
    """Whether one of the next answers has a value: the first windows may end before motes know the query, the sooner the busier
    the machine is."""
    for count in range(2, 30):
        done = station.run(*shlex.split(command.replace("--count 2", f"--count {count}")))
        if re.search(r"[\d.]+, [1-9]\d*$", done.stdout):
            return True
    return False


@pytest.mark.promise("pages-are-true")
@pytest.mark.timeout(300)
def test_commands_of_the_page_work_in_their_order(tmp_path, need):
    need("bash", "curl")
    start, serial, *rest = (command for command in COMMANDS if command not in BROKER)
    assert start.startswith("moteloom run --simulate") and "--link /dev/ttyUSB0" in serial and len(rest) >= 7
    with running_station(start, tmp_path) as station:
        for command in rest:
            done = station.run("bash", "-c", command.replace("http://127.0.0.1:8137", station.url))
            assert done.returncode == 0 and done.stdout, command + done.stderr
            if " watch " in command:
                lines = done.stdout.splitlines()
                windows = r"Z.*\[lab \d+ of 54\]  .*(null, 0|[\d.]+, [1-9]\d*)$"
                assert len(lines) == 2 and all(re.search(windows, line) for line in lines), done.stdout
                assert watch_until_value(command, station), done.stdout
            if command.startswith("curl"):
                assert '"code"' not in done.stdout, done.stdout


def test_every_message_of_the_table_is_one_of_the_program():
    rooms = (
        "basestation/station",
        "moteloom/client",
        "basestation/rest",
        "basestation/controller",
        "basestation",
        "gateway/transports",
        "gateway/cli",
    )
    sources = "".join(path.read_text() for room in rooms for path in (ROOT / room).glob("*.py"))
    rows = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
    assert len(rows) >= 5
    for row in rows:
        words = re.sub(r"station\.db is|:.*|…|query 1|`.*| to mqtt", "", row).strip()
        parts = re.split(r"\d+", words.split(" at")[0])  # a message has values where the page has figures
        assert re.search(r"(?:\d[\d.]*|\{[^{}]+\})".join(map(re.escape, parts)), sources), row
