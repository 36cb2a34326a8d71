"""`moteloom history --master`: a standalone cluster of Spark with two workers, on this machine."""

import csv
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter

import pytest

from basestation.archive.spark.java import SparkUnavailableError
from basestation.archive.spark.master import find_own_address, parse_master
from basestation.archive.spark.progress import draw_bar
from basestation.archive.spark.session import heap_mb
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.cli import main
from tests.conftest import FULL
from tests.history.cluster import Cluster, free_port
from tests.history.in_spark import archive

SCHEMA = "lab: sensed (site:integer, temp:integer) every 1 min at sites 1, 2, 3 wait 5 sec\n"
DAYS = 8
HEAVY = "SELECT COUNT(*) AS n FROM lab [FROM NOW-2 DAY TO NOW SLIDE 1 MIN]"
"""Each reading stands in 2,880 windows: Spark is at work for a while."""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """An archive of 8 days in 8 folders, a reading every minute of three sites."""
    root = tmp_path_factory.mktemp("data")
    (root / "schema.sneeql").write_text(SCHEMA)
    rows = [
        {"_tick": 60 * at, "_site": site, "temp": at % 50 + site} for at in range(DAYS * 1440) for site in (1, 2, 3)
    ]
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), root, random.Random(1))
    return root


@pytest.fixture(scope="module")
def cluster(need, tmp_path_factory):
    need("java")
    pytest.importorskip("pyspark")
    made = Cluster(tmp_path_factory.mktemp("cluster"), workers=2)
    yield made
    made.stop()


def start(data, *arguments):
    command = [
        sys.executable,
        "-m",
        "gateway.cli",
        "history",
        "--data",
        data,
        "--schema",
        data / "schema.sneeql",
        "--progress",
    ]
    return subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def wait_for_tasks(process):
    """Read standard error up to the first line about tasks that are not all done.

    The answer of the process goes to a file: one that waits in a full pipe would keep standard error open for ever.
    """
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(r"(\d+) of (\d+) tasks", line)
        if found and int(found[1]) < int(found[2]):
            return
    raise AssertionError(f"Spark ended before: {lines}")


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.promise("history-is-live")
def test_cluster_answers_though_a_worker_is_killed(data, cluster, tmp_path):
    """The worker goes while its tasks run; the other one runs them again, and the answer is whole."""
    written = tmp_path / "answer.csv"
    query = "SELECT site, COUNT(*) AS n, MAX(temp) AS most FROM lab [FROM NOW-6 HOUR TO NOW SLIDE 1 MIN] GROUP BY site"
    process = start(data, "--master", cluster.url, "-o", "csv", "--out", written, query)
    wait_for_tasks(process)
    cluster.kill(cluster.workers[0])
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    rows = list(csv.DictReader(written.read_text().splitlines()))
    assert len(rows) == 3 * DAYS * 1440
    expected = Counter(min(at + 1, 361) for at in range(DAYS * 1440) for _ in (1, 2, 3))
    assert Counter(int(row["n"]) for row in rows) == expected
    assert all(int(row["most"]) == 49 + int(row["site"]) for row in rows if int(row["n"]) > 50)
    assert "Traceback" not in err and re.search(r"of \d+ tasks", err), "Spark was at work after the kill"
    assert "Asked to launch executor" in cluster.log(cluster.workers[0])


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize("on", ["cluster", "this machine"])
def test_ctrl_c_cancels_job(data, cluster, on):
    process = start(data, "--master", cluster.url if on == "cluster" else "local[1]", HEAVY)
    wait_for_tasks(process)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == "" and "Traceback" not in err and "Spark failed" not in err


def test_cluster_that_refuses_is_one_line(data, capsys):
    url = f"spark://127.0.0.1:{free_port()}"
    assert main(["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), "--master", url, HEAVY]) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("moteloom")]
    assert line.startswith(f"moteloom: no Spark master answers at {url} within 10 s (Connection refused)")


if FULL:  # Spark itself gives up after a minute

    @pytest.mark.spark
    @pytest.mark.timeout(300)
    def test_port_that_is_no_spark_master_is_one_line(data, need):
        need("java")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            accepted = []
            threading.Thread(
                target=lambda: accepted.extend(iter(lambda: silent.accept()[0], None)), daemon=True
            ).start()
            url = f"spark://127.0.0.1:{silent.getsockname()[1]}"
            out, err = start(data, "--master", url, HEAVY).communicate(timeout=200)
        assert out == ""
        assert f"moteloom: no Spark master registers this program at {url} within 60 s" in err


@pytest.mark.parametrize("url", ["local", "local[0]", "yarn", "spark://host", "spark://:7077", "sc://host"])
def test_other_masters_are_misuse(data, capsys, url):
    with pytest.raises(SystemExit) as left:
        main(["history", "--data", str(data), "--master", url, HEAVY])
    assert left.value.code == 2
    assert f"expected `local[N]`, `spark://host:port` or `sc://host:port`, found `{url}`" in capsys.readouterr().err


def test_standby_masters_are_tried_in_turn():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"spark://127.0.0.1:{free_port()},127.0.0.1:{listening.getsockname()[1]}"
        assert find_own_address(parse_master(url)) == "127.0.0.1"


@pytest.mark.parametrize(
    ("size", "says"), [("256m", "450m or more"), ("2t", "no size of a heap"), ("0g", "no size of a heap")]
)
def test_wrong_heap_is_misuse(data, capsys, size, says):
    with pytest.raises(SystemExit):
        main(["history", "--data", str(data), "--memory", size, HEAVY])
    assert says in capsys.readouterr().err


def test_heap_beyond_free_memory_is_refused(data, capsys, need):
    need("java")
    assert heap_mb("2g") == 2048
    arguments = ["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), "--memory", "9000g", HEAVY]
    assert main(arguments) == 1
    assert "Spark needs 9216388 MB of free memory" in capsys.readouterr().err


def test_bar_is_full_with_the_last_task():
    assert draw_bar(0, 3) == "[>" + " " * 29 + "] 0 of 3 tasks"
    assert draw_bar(3, 3) == "[" + "=" * 30 + "] 3 of 3 tasks"


@pytest.mark.spark
@pytest.mark.timeout(120)
@pytest.mark.promise("history-is-live")
def test_many_stations_are_one_history(need, tmp_path):
    """Two stations have the sites 1 and 2; a reading of one is no copy of the other's. `_station` chooses files."""
    need("java")
    schema = "lab: sensed (site:integer, temp:integer) every 10 sec at sites 1, 2 wait 5 sec\n"
    (tmp_path / "schema.sneeql").write_text(schema)
    for station, base in (("north", 100), ("south", 200)):
        rows = [{"_tick": tick, "_site": site, "temp": base + site} for tick in (10, 20) for site in (1, 2)]
        archive(read_recording(read_schema(schema), {"lab": rows}), tmp_path / f"station={station}", random.Random(1))
    query = "SELECT _station, site, MAX(temp) AS most, COUNT(*) AS n FROM lab [NOW] GROUP BY _station, site"
    process = start(tmp_path, "--to", "10", "-o", "json", query)
    out, err = process.communicate(timeout=110)
    assert process.returncode == 0, err
    found = sorted((row["_station"], row["site"], row["most"], row["n"]) for row in map(json.loads, out.splitlines()))
    assert found == [("north", 1, 101, 1), ("north", 2, 102, 1), ("south", 1, 201, 1), ("south", 2, 202, 1)]


def test_order_over_many_stations_is_refused(tmp_path, capsys):
    (tmp_path / "schema.sneeql").write_text(SCHEMA)
    rows = [{"_tick": 60, "_site": 1, "temp": 1}]
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), tmp_path / "station=a", random.Random(1))
    arguments = ["history", "--data", str(tmp_path), "--schema", str(tmp_path / "schema.sneeql")]
    assert main([*arguments, "SELECT FIRST(temp) FROM lab [FROM NOW-1 HOUR TO NOW SLIDE 1 HOUR]"]) == 4
    assert "many stations" in capsys.readouterr().err


def test_unknown_master_has_no_address():
    with pytest.raises(SparkUnavailableError, match="no Spark master answers"):
        find_own_address(parse_master(f"spark://127.0.0.1:{free_port()}"))
