"""The REST interface of a station over loopback: pushes of a million tuples, and small reads beside an empty FastAPI route.

`python -m bench.rest`. The station has no motes and the catalog of the road bridge; its file is in a temporary folder. A push ends
with its receipt, so its tuples are durable then. DuckDB reads the same bodies from disk into a table in memory. Reads are made one
after the other on one connection, and the ratio is that of the same minute.
"""

import argparse
import http.client
import io
import json
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from basestation.archive.memory import MemoryArchive
from basestation.planner.catalog import read_schema
from basestation.rest.limits import RequestLimits
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.live_control import LiveControl
from basestation.station.rest_server import RestServer
from basestation.station.runner import Runner, ScaledClock
from basestation.station.service import Station
from bench import record
from gateway.transports.memory import MemoryTransport

SCHEMA = record.ROOT / "examples/roadbridge/schema.sneeql"
COUNT_QUERY = "SELECT vehicle, COUNT(*) AS n FROM traffic [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY vehicle"
UNLIMITED = RequestLimits(requests_per_second=1e9, burst=10**9)
TURNS = 10
FIGURES = ("body", "megabytes", "seconds", "tuples_per_s", "duckdb_seconds")


def bodies(count):
    """(name, media type, bytes) of `count` tuples in each format."""
    chance = np.random.default_rng(1)
    columns = {"site": chance.integers(1, 5, count), "time": np.arange(count), "weight": chance.integers(50, 80_000, count),
               "vehicle": chance.integers(1, 6, count)}  # fmt: skip
    table = pa.table(columns)
    rows = table.to_pylist()
    text, stream = io.BytesIO(), io.BytesIO()
    pyarrow.csv.write_csv(table, text)
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table, max_chunksize=65_536)
    few = rows[: count // 4]  # a record for each attribute
    pack = [{"bn": f"{number}/", "bt": 1_800_000_000 + number, "n": name, "v": value} if name == "site" else {"n": name, "v": value}
            for number, row in enumerate(few) for name, value in row.items()]  # fmt: skip
    yield "jsonl", "application/x-ndjson", "\n".join(map(json.dumps, rows)).encode(), count
    yield "csv", "text/csv", text.getvalue(), count
    yield "arrow", "application/vnd.apache.arrow.stream", stream.getvalue(), count
    yield "senml", "application/senml+json", json.dumps(pack).encode(), len(few)


def read_with_duckdb(name, body, folder):
    """Seconds that DuckDB takes to read a body from disk; None where it has no reader."""
    import duckdb

    readers = {"jsonl": "read_ndjson('{}')", "csv": "read_csv('{}')"}
    if name not in readers:
        return None
    path = folder / name
    path.write_bytes(body)
    begin = time.perf_counter()
    duckdb.sql(f"CREATE OR REPLACE TABLE t AS SELECT * FROM {readers[name].format(path)}")
    return time.perf_counter() - begin


def requests_per_second(port, path, seconds):
    """How many GET requests one connection makes in a second."""
    connection, count = http.client.HTTPConnection("127.0.0.1", port), 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, (path, answer.status)
        count += 1
    connection.close()
    return count / seconds


def compare_rates(ours, theirs, seconds):
    """The rates of two routes, measured in turns, since the load of a shared machine changes within seconds."""
    found = [[requests_per_second(*each, seconds / TURNS) for each in (ours, theirs)] for _ in range(TURNS)]
    return [sum(rates) / TURNS for rates in zip(*found, strict=True)]


def empty_server():
    """An empty FastAPI route, and the port at which it is served."""
    import socket

    import uvicorn
    from fastapi import FastAPI

    api = FastAPI()
    api.get("/empty")(lambda: {})
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    server = uvicorn.Server(uvicorn.Config(api, log_level="warning", access_log=False, lifespan="off"))
    threading.Thread(target=server.run, args=([listening],), daemon=True).start()
    return server, listening.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tuples", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    catalog = read_schema(SCHEMA.read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begin_ms = int(time.time() * 1_000)
        durable = DurableStation(
            Journal(folder), lambda wire, now: Station(catalog, wire, MemoryArchive(), boot=1, now_ms=now), begin_ms
        )
        wire = MemoryTransport()
        wire.open()
        durable.connect(wire)
        runner = Runner(durable, ScaledClock(time.monotonic, begin_ms))
        thread = threading.Thread(target=runner.run)
        thread.start()
        try:
            with RestServer(LiveControl(runner), None, limits=UNLIMITED) as rest:
                port = int(rest.url.rsplit(":", 1)[1])
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
                connection.request("POST", "/v1/queries", COUNT_QUERY)
                answer = connection.getresponse()
                assert answer.status == 201, answer.read()
                answer.read()
                print(*(f"{figure:>15}" for figure in FIGURES))
                for form, media, body, count in bodies(options.tuples):
                    connection.close()  # the server has closed it while the body was made
                    begin = time.perf_counter()
                    connection.request("POST", "/v1/extents/traffic/tuples", body, {"content-type": media})
                    receipt = json.loads(connection.getresponse().read())
                    took = time.perf_counter() - begin
                    assert receipt["accepted"] == count, receipt
                    peer = read_with_duckdb(form, body, folder)
                    shown = "" if peer is None else f"{peer:.2f}"
                    print(
                        f"{form:>15} {len(body) / 1e6:>15.1f} {took:>15.2f} {count / took:>15,.0f} {shown:>15}",
                        flush=True,
                    )
                for number in range(100):
                    runner.call(
                        lambda now_ms, number=number: durable.submit(f"{COUNT_QUERY} FOR {number + 1} HOUR", now_ms)
                    )
                server, empty = empty_server()
                time.sleep(1)
                for path in "/v1/queries?limit=1", "/v1/queries", "/v1/extents/traffic/latest", "/v1/ready":
                    ours, theirs = compare_rates((port, path), (empty, "/empty"), options.seconds)
                    print(
                        f"{path}: {ours:,.0f} a second, {ours / theirs:.2f} of an empty route ({theirs:,.0f})",
                        flush=True,
                    )
                server.should_exit = True
        finally:
            runner.stop()
            thread.join()


if __name__ == "__main__":
    main()
