"""200 clients of event streams at 100 rows a second each: what they take, and whether the station keeps its pace.

`python -m bench.streams`. The station has no motes and the catalog of the road bridge; one extent gets tuples over REST, and each tuple
is a row of a query that all clients follow. Some clients read slowly, some read nothing. The clients run in a process of their own. A
step of the station is late by what its clock has passed beyond the interval of its looks. The same load without clients comes first.
"""

import argparse
import asyncio
import http.client
import multiprocessing
import re
import resource
import socket
import tempfile
import threading
import time
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from basestation.archive.memory import MemoryArchive
from basestation.planner.catalog import read_schema
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.station.live_control import LiveControl
from basestation.station.rest_server import RestServer
from basestation.station.runner import Runner, ScaledClock
from basestation.station.service import Station
from bench.rest import SCHEMA, UNLIMITED
from gateway.transports.memory import MemoryTransport

QUERY = "SELECT site, weight FROM traffic"
PATH = "/v1/queries/1/results"
SLOW_PAUSE = 0.5
READ_SECONDS = 3.0
"""After which a connection that takes nothing is cut; a station waits longer."""
_ID = re.compile(rb"^id: \w+-1-(\d+)$", re.MULTILINE)


class Lateness:
    """The seconds between the looks of a station."""

    def __init__(self, runner: Runner) -> None:
        self._runner, self.gaps, self._is_over = runner, list[float](), False
        self._thread = threading.Thread(target=self._measure)

    def _measure(self) -> None:
        looked, at = self._runner.looked_ms, time.perf_counter()
        while not self._is_over:
            time.sleep(0.002)
            if self._runner.looked_ms != looked:
                now = time.perf_counter()
                self.gaps.append(now - at)
                looked, at = self._runner.looked_ms, now

    def __enter__(self) -> "Lateness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._thread.join()

    def describe(self) -> str:
        p50, p99, most = np.quantile(self.gaps, [0.5, 0.99, 1.0]) * 1_000
        return f"between two looks of the station: median {p50:.0f} ms, 99 % {p99:.0f} ms, most {most:.0f} ms"


async def _read(port: int, pause: float, until: float, after: int = 0) -> tuple[int, int, list[float]]:
    """A client: the updates that it had, those that it missed or had twice, and their delays where rows have their time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    head = f"GET {PATH}?after={after} HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"  # in no chunks
    writer.write(head.encode())
    count, last, wrong, rest, arrived = 0, after, 0, b"", list[float]()
    while (left := until - time.time()) > 0:
        try:
            piece = await asyncio.wait_for(reader.read(1 << 16), left)
        except TimeoutError:
            break
        if not piece:
            break
        whole, _, rest = (rest + piece).rpartition(b"\n\n")
        for number in map(int, _ID.findall(whole)):
            wrong += number != last + 1
            last, count = number, count + 1
        arrived.append(time.time())
        if pause:
            await asyncio.sleep(pause)
    writer.close()
    return count, wrong, arrived


async def _read_nothing(port: int, until: float) -> bool:
    """A client that asks and reads nothing; whether its connection was cut."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        client.connect(("127.0.0.1", port))
        client.sendall(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode())
        await asyncio.sleep(until - time.time())
        client.settimeout(1)
        try:
            while time.time() < until + 5:
                if not client.recv(1 << 16):
                    return True
        except ConnectionError:
            return True
        except TimeoutError:
            pass
        return False


def _run_clients(pipe: Connection, port: int, fast: int, slow: int, silent: int, seconds: float) -> None:
    async def run() -> None:
        until = time.time() + seconds
        found = await asyncio.gather(
            *(_read(port, 0.0, until) for _ in range(fast)), *(_read(port, SLOW_PAUSE, until) for _ in range(slow)),
            *(_read_nothing(port, until) for _ in range(silent)),
        )  # fmt: skip
        pipe.send(found)

    asyncio.run(run())


@contextmanager
def _pushing(port: int, rate: int):
    """A producer that delivers so many tuples a second, ten times a second."""
    is_over = threading.Event()

    def push() -> None:
        connection, number = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
        due = time.perf_counter()
        while not is_over.is_set():
            body = "".join(f'{{"site": 1, "weight": {number + n}, "vehicle": 1}}\n' for n in range(rate // 10))
            number += rate // 10
            connection.request("POST", "/v1/extents/traffic/tuples", body, {"content-type": "application/x-ndjson"})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            answer.read()
            due += 0.1
            time.sleep(max(0.0, due - time.perf_counter()))
        connection.close()

    thread = threading.Thread(target=push)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--rate", type=int, default=100, help="rows a second")
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    catalog = read_schema(SCHEMA.read_text())
    slow, silent = options.clients // 20, options.clients // 20
    with tempfile.TemporaryDirectory() as name:
        begin_ms = int(time.time() * 1_000)
        durable = DurableStation(
            Journal(Path(name)), lambda wire, now: Station(catalog, wire, MemoryArchive(), boot=1, now_ms=now), begin_ms
        )
        wire = MemoryTransport()
        wire.open()
        durable.connect(wire)
        runner = Runner(durable, ScaledClock(time.monotonic, begin_ms))
        thread = threading.Thread(target=runner.run)
        thread.start()
        try:
            with RestServer(LiveControl(runner), None, limits=UNLIMITED, read_seconds=READ_SECONDS) as rest:
                port = int(rest.url.rsplit(":", 1)[1])
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("POST", "/v1/queries", QUERY)
                answer = connection.getresponse()
                assert answer.status == 201, answer.read()
                answer.read()
                with _pushing(port, options.rate):
                    with Lateness(runner) as lateness:
                        time.sleep(options.seconds / 2)
                    print(f"without clients, {lateness.describe()}", flush=True)
                    before, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
                    ours, theirs = multiprocessing.get_context("spawn").Pipe()
                    fast = options.clients - slow - silent
                    clients = multiprocessing.get_context("spawn").Process(
                        target=_run_clients, args=(theirs, port, fast, slow, silent, options.seconds)
                    )
                    clients.start()
                    with Lateness(runner) as lateness:
                        found = ours.recv()
                    clients.join()
                    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                    used = (time.process_time() - cpu) / options.seconds
                print(f"with {options.clients} clients, {lateness.describe()}")
                print(f"memory grew by {grown / 1_024:.0f} MB at most; {used:.0%} of a core")
                for kind, of in (("fast", found[:fast]), ("slow", found[fast : fast + slow])):
                    counts = [count for count, _, _ in of]
                    print(
                        f"{kind}: {len(of)} clients, {min(counts):,} to {max(counts):,} updates, {sum(wrong for _, wrong, _ in of)} missing or twice"
                    )
                print(f"silent: {sum(found[fast + slow :])} of {silent} cut after {READ_SECONDS:g} s")
        finally:
            runner.stop()
            thread.join()


if __name__ == "__main__":
    main()
