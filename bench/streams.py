"""200 clients of event streams at 100 rows a second each: what they take, and whether the station keeps its pace.

`python -m bench.streams`. The station has no motes and the catalog of the road bridge; one extent gets tuples over REST, and each tuple
is a row of a query that all clients follow. Some clients read slowly, some read nothing. The clients run in a process of their own.

A second query counts the tuples of each second. One more client follows it, in a process of its own, so that it waits for the station and for
no other client. The delay of a window is the time at which that client has it, beyond the first moment at which the station can know
it: the end of its second and of the time that the extent waits for late tuples. The delay of a row is that since its push, at the clients that
read as fast as they can. The same load without clients comes first.
"""

import argparse
import asyncio
import http.client
import json
import multiprocessing
import re
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
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
COUNTS = "SELECT COUNT(*) AS n FROM traffic [FROM NOW TO NOW SLIDE 1 SEC]"
PATH, COUNTS_PATH = "/v1/queries/1/results", "/v1/queries/2/results"
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
        return f"between two looks of the station: {describe(self.gaps)}"


def describe(seconds: list[float]) -> str:
    """The median, the 99th percentile and the largest of so many times."""
    p50, p99, most = np.quantile(seconds, [0.5, 0.99, 1.0]) * 1_000
    return f"median {p50:.0f} ms, 99 % {p99:.0f} ms, most {most:.0f} ms, of {len(seconds):,}"


def _head(path: str, after: int) -> bytes:
    """A request of HTTP/1.0, whose answer comes in no chunks."""
    return f"GET {path}?after={after} HTTP/1.0\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n".encode()


def _read_windows(pipe: Connection, port: int, after: int, wait: int, seconds: float) -> None:
    """The client of windows: send the delay of each, for so many seconds."""
    begun, delays, rest = time.time(), list[float](), b""
    until = begun + seconds
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(_head(COUNTS_PATH, after))
        while (left := until - time.time()) > 0:
            client.settimeout(left)
            try:
                piece = client.recv(1 << 16)
            except TimeoutError:
                break
            at = time.time()
            whole, _, rest = (rest + piece).rpartition(b"\n\n")
            for line in re.findall(rb"^data: (.*)$", whole, re.MULTILINE):
                window = json.loads(line)
                due = window["tick"] + 1 + wait
                if window["revision"] == 0 and due > begun:  # earlier ones waited for this process
                    delays.append(at - due)
    pipe.send(delays)


async def _read(port: int, pause: float, until: float, after: int = 0) -> tuple[int, int, list[tuple[int, float]]]:
    """A client: the updates that it had, those that it missed or had twice, and when it had which last number."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    writer.write(_head(PATH, after))
    count, last, wrong, rest, arrived = 0, after, 0, b"", list[tuple[int, float]]()
    while (left := until - time.time()) > 0:
        try:
            piece = await asyncio.wait_for(reader.read(1 << 16), left)
        except TimeoutError:
            break
        if not piece:
            break
        at = time.time()
        whole, _, rest = (rest + piece).rpartition(b"\n\n")
        for number in map(int, _ID.findall(whole)):
            wrong += number != last + 1
            last, count = number, count + 1
        arrived.append((last, at))
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


def _run_clients(pipe: Connection, port: int, after: int, fast: int, slow: int, silent: int, seconds: float) -> None:
    async def run() -> None:
        until = time.time() + seconds
        found = await asyncio.gather(
            *(_read(port, 0.0, until, after) for _ in range(fast)),
            *(_read(port, SLOW_PAUSE, until, after) for _ in range(slow)),
            *(_read_nothing(port, until) for _ in range(silent)),
        )  # fmt: skip
        pipe.send(found)

    asyncio.run(run())


@contextmanager
def _pushing(port: int, rate: int) -> Iterator[list[float]]:
    """A producer that delivers so many tuples a second, ten times a second; the times of its pushes, tuple by tuple."""
    is_over, pushed = threading.Event(), list[float]()

    def push() -> None:
        connection, number = http.client.HTTPConnection("127.0.0.1", port, timeout=60), 0
        due = time.perf_counter()
        while not is_over.is_set():
            body = "".join(f'{{"site": 1, "weight": {number + n}, "vehicle": 1}}\n' for n in range(rate // 10))
            number += rate // 10
            pushed.extend([time.time()] * (rate // 10))
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
        yield pushed
    finally:
        is_over.set()
        thread.join()


def _start(target: Callable[..., None], *given: object) -> tuple[Connection, BaseProcess]:
    """A process of its own, and the end of the pipe at which its result comes."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *given))
    process.start()
    return ours, process


def _submit(port: int, text: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/queries", text)
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()
    answer.read()


def _newest(control: LiveControl, query: str) -> int:
    return control.number_before(query, None)


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
            control = LiveControl(runner)
            with RestServer(control, None, limits=UNLIMITED, read_seconds=READ_SECONDS) as rest:
                port, wait = int(rest.url.rsplit(":", 1)[1]), catalog.extents["traffic"].wait
                _submit(port, QUERY)
                _submit(port, COUNTS)
                with _pushing(port, options.rate) as pushed:
                    time.sleep(wait + 5)  # windows come, and the first ones are over
                    alone, reader = _start(_read_windows, port, _newest(control, "2"), wait, options.seconds / 2)
                    with Lateness(runner) as lateness:
                        delays = alone.recv()
                    reader.join()
                    print(
                        f"without clients, {lateness.describe()}\n  delay of a window: {describe(delays)}", flush=True
                    )
                    before, cpu = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
                    fast, after = options.clients - slow - silent, _newest(control, "1")
                    many, clients = _start(_run_clients, port, after, fast, slow, silent, options.seconds + 2)
                    time.sleep(2)  # they begin
                    alone, reader = _start(_read_windows, port, _newest(control, "2"), wait, options.seconds)
                    with Lateness(runner) as lateness:
                        delays = alone.recv()
                    found = many.recv()
                    for each in (reader, clients):
                        each.join()
                    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
                    used = (time.process_time() - cpu) / options.seconds
                print(f"with {options.clients} clients, {lateness.describe()}\n  delay of a window: {describe(delays)}")
                # The first piece of a client has what came before it.
                rows = [at - pushed[last - 1] for _, _, arrived in found[:fast] for last, at in arrived[1:]]
                print(f"  delay of a row since its push, {wait} s of which the extent waits: {describe(rows)}")
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
