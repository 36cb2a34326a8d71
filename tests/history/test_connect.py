"""`moteloom history --master sc://…`: the Spark Connect server of the pip package, in a process of its own."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from basestation.archive.spark import connect
from basestation.archive.spark.connect import open_remote_session
from basestation.archive.spark.java import SparkUnavailableError, find_java
from basestation.archive.spark.master import parse_master
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from gateway.cli import main
from tests.history.cluster import START_S, free_port
from tests.history.in_spark import archive
from tests.station.certificates import make_certificate

SCHEMA = "lab: sensed (site:integer, temp:float {scale 1}) every 1 min at sites 1, 2 wait 5 sec\n"
QUERY = "SELECT site, MAX(temp) AS most, COUNT(*) AS n FROM lab [FROM NOW-1 MIN TO NOW SLIDE 1 MIN] GROUP BY site"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    (root / "schema.sneeql").write_text(SCHEMA)
    rows = [{"_tick": 60 * at, "_site": site, "temp": at + site / 10} for at in range(5) for site in (1, 2)]
    archive(read_recording(read_schema(SCHEMA), {"lab": rows}), root, random.Random(1))
    return root


@pytest.fixture(scope="module")
def server(need, tmp_path_factory):
    """The URL of a server that runs."""
    need("java")
    pytest.importorskip("grpc")
    import pyspark

    home, folder, port = Path(pyspark.__file__).parent, tmp_path_factory.mktemp("server"), free_port()
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    command = [home / "bin" / "spark-submit", "--master", "local[1]", "--driver-memory", "512m"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    environment = os.environ | {"JAVA_HOME": str(find_java()), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            list(map(str, command)), env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, cwd=folder,
        )  # fmt: skip
    deadline = time.monotonic() + START_S
    while "Spark Connect server started" not in (folder / "log").read_text():
        assert process.poll() is None and time.monotonic() < deadline, (folder / "log").read_text()[-3_000:]
        time.sleep(0.1)
    yield f"sc://127.0.0.1:{port}"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def ask(data, server, *arguments):
    command = [sys.executable, "-m", "gateway.cli", "history", "--data", f"file://{data}", "--schema", data / "schema.sneeql",
               "--master", server, "-o", "csv", "--progress"]  # fmt: skip
    return subprocess.run([*map(str, command), *arguments], capture_output=True, text=True, timeout=110, check=False)


@pytest.mark.spark
@pytest.mark.timeout(240)
@pytest.mark.promise("history-is-live", "errors-point")
def test_server_of_spark_connect_gives_the_windows(data, server):
    done = ask(data, server, QUERY, "--from", "60", "--to", "120")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "_time,_tick,site,most,n",
        "1970-01-01T00:01:00Z,60,1,1.1,2",
        "1970-01-01T00:01:00Z,60,2,1.2,2",
        "1970-01-01T00:02:00Z,120,1,2.1,2",
        "1970-01-01T00:02:00Z,120,2,2.2,2",
    ]
    assert "starting Spark" not in done.stderr and "WARN" not in done.stderr and "Traceback" not in done.stderr
    failed = ask(data, server, "SELECT site FROM lab.HISTORY WHERE temp = (SELECT temp FROM lab.HISTORY)")
    assert failed.returncode == 1 and "Spark failed: [SCALAR_SUBQUERY" in failed.stderr, failed.stderr
    assert "Traceback" not in failed.stderr and '"level"' not in failed.stderr, "the client prints no log of its own"


@pytest.mark.promise("errors-point")
def test_server_that_does_not_answer_is_one_line(data, capsys):
    pytest.importorskip("grpc")
    arguments = ["history", "--data", str(data), "--schema", str(data / "schema.sneeql"), "--master"]
    refusing = f"sc://127.0.0.1:{free_port()}"
    assert main([*arguments, refusing, QUERY]) == 1
    [line] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("moteloom")]
    assert line.startswith(
        f"moteloom: no server of Spark Connect answers at {refusing} within 10 s (Connection refused)"
    )


@pytest.fixture
def tls_port(need, tmp_path, monkeypatch):
    """The port of a gRPC server with a certificate that other processes trust. It is no Spark."""
    need("openssl")
    grpc = pytest.importorskip("grpc")
    certificate, key = make_certificate(tmp_path, "server", common_name="localhost")
    monkeypatch.setenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", str(certificate))
    pair = key.read_bytes(), certificate.read_bytes()
    running = grpc.server(ThreadPoolExecutor(1))
    port = running.add_secure_port("localhost:0", grpc.ssl_server_credentials([pair]))
    running.start()
    yield port
    running.stop(0)


TOKEN = "CANARY"


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("parameters", ["use_ssl=true", f"use_ssl=true;token={TOKEN}"])
def test_server_with_tls_is_reached(data, tls_port, parameters):
    done = ask(data, f"sc://localhost:{tls_port}/;{parameters}", QUERY)
    assert done.returncode == 1 and f"the server at sc://localhost:{tls_port} opens no session" in done.stderr, (
        done.stderr
    )
    assert f"connecting to sc://localhost:{tls_port}\n" in done.stderr and TOKEN not in done.stderr


@pytest.mark.promise("errors-point")
def test_token_of_a_server_is_not_printed(tls_port, monkeypatch, capsys):
    monkeypatch.setattr(connect, "CONNECT_S", 0.5)
    monkeypatch.delenv("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
    for port, parameters, says in (
        (free_port(), f"token={TOKEN}", "no server of Spark Connect answers at sc://127.0.0.1:"),
        (tls_port, f"use_ssl=true;token={TOKEN}", "with a certificate that this machine trusts"),
        (tls_port, f"token={TOKEN}=", "expected `/;NAME=VALUE;NAME=VALUE`"),
        (tls_port, f"token={TOKEN}/2", "expected `/;NAME=VALUE;NAME=VALUE`"),
    ):
        with pytest.raises(SparkUnavailableError) as refused:
            open_remote_session(parse_master(f"sc://127.0.0.1:{port}/;{parameters}"))
        assert says in str(refused.value) and TOKEN not in str(refused.value)
    for command, url in (
        (["history", QUERY], f"sc://host;token={TOKEN}"),
        (["pipeline", "--out", "rollups"], f"sc://host:15002/;token={TOKEN}"),
    ):
        with pytest.raises(SystemExit):
            main([*command, "--data", "x", "--master", url])
        said = capsys.readouterr().err
        assert "found `sc://host" in said and TOKEN not in said


def test_missing_client_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(SparkUnavailableError, match=r"Spark Connect needs grpc.*pip install 'moteloom\[connect\]'"):
        open_remote_session(parse_master("sc://127.0.0.1:15002"))


@pytest.mark.parametrize("url", ["s3a://bucket/moteloom", "hdfs://host:8020/moteloom", "file://host/folder"])
def test_object_store_is_refused_with_the_way_out(url, capsys):
    for verb in (["history", QUERY], ["pipeline", "--out", "rollups"]):
        with pytest.raises(SystemExit) as left:
            main([verb[0], "--data", url, *verb[1:]])
        assert left.value.code == 2
        assert f"expected a folder that this machine reads, found `{url}`; mount the store" in capsys.readouterr().err


def test_pipeline_refuses_spark_connect(capsys):
    with pytest.raises(SystemExit):
        main(["pipeline", "--data", "x", "--out", "y", "--master", "sc://host:15002"])
    assert "cannot call back into this program" in capsys.readouterr().err


def test_masters_have_their_addresses():
    assert parse_master("sc://spark1:15002/;token=x").addresses == [("spark1", 15002)]
    assert parse_master("sc://spark1:15002").is_connect and not parse_master("local[2]").is_connect
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert parse_master(f"spark://127.0.0.1:{listening.getsockname()[1]}").cores is None
