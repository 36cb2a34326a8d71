"""A durable station with the 54 motes of examples/lab54, in virtual time: what a look takes, what it writes, and when results are seen.

`python -m bench.station` takes an hour and a half of the office at 30 s epochs for each number of queries; half an hour of it comes
first, with the review of plans that follows the submissions. A query comes each second, of three kinds in turn. A look without bytes
and answers is not counted. Shares are of all looks: `engine` ends clock ticks and takes batches, `links` decodes frames, acknowledges
and configures motes, `store` commits, `results` writes answers as JSON, `plans` follows the network and reviews placements.

`--kinds` chooses: `epochs` is the above. `live` runs a station by the clock of the machine, with its REST interface, and follows each query
from another process: a result is late by the time from the look at which the station could know it until the client has read it.
`fast` samples every second. `push` delivers batches to a station and compares with the time that its engine takes of it. The longest
figures are those of 1,000 queries: they need a quarter of an hour.
"""

import argparse
import asyncio
import gc
import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from functools import wraps
from pathlib import Path

import numpy as np

from acquisition.sources.pushed_tuples import PushedTuples
from basestation.archive.memory import MemoryArchive
from basestation.execution.engine import Engine
from basestation.planner.catalog import read_schema
from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.station.full_collections import FullCollections
from basestation.station.journal import Journal, Upload
from basestation.station.service import Station
from basestation.station.uploads import PUSH, encode_tuples
from basestation.testbed.live_motes import MoteScenario
from bench import record

SCENARIO = record.ROOT / "examples/lab54/calm.scenario.toml"
BEGIN_MS = 1_763_452_800_000
LOOK_MS = 250
HOUR_MS, WARM_MS = 3_600_000, 1_800_000
QUERIES = (
    "SELECT site, temp FROM lab WHERE temp > {bound}",
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN]",
    "SELECT site, MAX(light) AS high FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN] WHERE humidity > {bound} GROUP BY site",
)
COUNTS = 10, 100, 1000
SECONDS = {"epochs": HOUR_MS // 1_000, "live": 300, "fast": 300, "push": 10}
"""By the kinds of measurements, how long each takes of the clock of the station, or of the machine."""
PUSHED = "ticks: pushed (site:integer, temp:float, light:integer) wait 1 sec late revise by 1 min\n"
PUSHED_QUERIES = (
    "SELECT site, temp FROM ticks WHERE temp > {bound}",
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM ticks [FROM NOW-{width} SEC TO NOW SLIDE 10 SEC]",
    "SELECT site, MAX(light) AS high FROM ticks [FROM NOW-{width} SEC TO NOW SLIDE 10 SEC] WHERE temp > {bound} GROUP BY site",
)
BATCHES = 54, 1_000, 65_536


def write_query(number, queries=QUERIES):
    """The text of the query with a number, of the kinds in turn."""
    return queries[number % 3].format(bound=20 + number % 40 / 10, width=59 + 60 * (number % 7))


class Shares:
    """Adds up the time that parts of a station take, each without the parts inside it."""

    def __init__(self):
        self.seconds, self._inner = Counter(), []

    def watch(self, owner, name, part):
        """Count the calls of a method to a part."""
        original = getattr(owner, name)

        @wraps(original)
        def timed(*given, **named):
            begin = time.perf_counter()
            self._inner.append(0.0)
            try:
                return original(*given, **named)
            finally:
                took = time.perf_counter() - begin
                self.seconds[part] += took - self._inner.pop()
                if self._inner:
                    self._inner[-1] += took

        setattr(owner, name, timed)

    def watch_station(self):
        """Count the parts of every station of this process."""
        self.watch(Engine, "deliver", "engine")
        self.watch(Engine, "on_clock", "engine")
        self.watch(Station, "_ingest", "links")
        self.watch(Station, "_maintain_links", "links")
        self.watch(Station, "_send", "links")
        self.watch(Station, "_replan", "plans")
        self.watch(Station, "search_on", "plans")
        self.watch(DurableStation, "_collect", "results")
        self.watch(Journal, "commit", "store")


class CountedJournal(Journal):
    """Counts commits and results; the times at which the last commit ended are those of `perf_counter` and of the processor."""

    commits, results_committed, committed_at, committed_cpu = 0, 0, 0.0, 0.0

    def commit(self, entries, results=(), *given, **named):
        super().commit(entries, results, *given, **named)
        self.commits += 1
        self.results_committed += len(results)
        self.committed_at, self.committed_cpu = time.perf_counter(), time.process_time()


class CountedWire:
    """Adds up the bytes that come from the motes."""

    def __init__(self, wire):
        self._wire, self.received = wire, 0

    def receive(self):
        found = self._wire.receive()
        self.received += len(found)
        return found

    def send(self, data):
        self._wire.send(data)


def written_bytes():
    """The bytes that this process has handed to disks so far."""
    text = Path("/proc/self/io").read_text()
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("write_bytes")))


class Office:
    """A station and its motes in virtual time; `every` replaces the interval of the extent."""

    def __init__(self, folder, every=None):
        self.folder, path = folder, SCENARIO
        if every is not None:
            path = shutil.copytree(SCENARIO.parent, folder / "lab") / SCENARIO.name
            schema = path.with_name("schema.sneeql")
            schema.write_text(schema.read_text().replace("every 30 sec", f"every {every}"))
        self.scenario, self.journal = MoteScenario(str(path)), CountedJournal(folder)
        self.make, self.now = make_factory(self.scenario.deployment, False), BEGIN_MS
        self.durable = DurableStation(self.journal, self.make, BEGIN_MS)
        self.motes = self.scenario.start(BEGIN_MS, 1, None)
        self.wire = CountedWire(self.motes.wire)
        self.durable.connect(self.wire)
        self.collections = FullCollections(lambda: self.now / 1_000 + time.process_time())

    def look(self):
        """Let motes and station live for a look; seconds of the station, and those of its processor. Collect behind it, as a runner does."""
        self.now += LOOK_MS
        self.motes.advance(self.now)
        begin, cpu = time.perf_counter(), time.process_time()
        self.durable.step(self.now)
        took = time.perf_counter() - begin, time.process_time() - cpu
        self.collections.tend(LOOK_MS / 1_000)
        return took

    def submit(self, count):
        """Submit so many queries, one each second; mean seconds of a submission."""
        seconds = 0.0
        for number in range(count):
            begin = time.perf_counter()
            self.durable.submit(write_query(number), self.now)
            seconds += time.perf_counter() - begin
            for _ in range(1_000 // LOOK_MS):
                self.look()
        return seconds / count

    def live(self, span_ms):
        """Let them live for a span."""
        end = self.now + span_ms
        while self.now < end:
            self.look()


def measure(count, span_ms, every=None):
    """By its name, each figure of an hour with so many queries."""
    folder = Path(tempfile.mkdtemp(prefix="moteloom-bench-"))
    try:
        warm_ms = WARM_MS if every is None else WARM_MS // 6
        office = Office(folder, every)
        with office.collections:
            return _measure(office, count, warm_ms, span_ms)
    finally:
        shutil.rmtree(folder)


def _measure(office, count, warm_ms, span_ms):
    durable, journal, wire = office.durable, office.journal, office.wire
    shares = Shares()
    shares.watch_station()
    submitting = office.submit(count)
    warm = [office.look()[1] for _ in range(warm_ms // LOOK_MS)]  # motes receive their programs, and plans are reviewed
    looks, processor, seen, seen_cpu = [], [], [], []
    wire.received = journal.commits = journal.results_committed = 0
    shares.seconds.clear()
    all_looks, all_cpu, written = 0.0, 0.0, written_bytes()
    collections, between = gc.get_stats()[2]["collections"], office.collections.count
    arrived = durable.station.archive.rows
    end = office.now + span_ms
    while office.now < end:
        commits, results = journal.commits, journal.results_committed
        office.motes.advance(office.now + LOOK_MS)
        begin, cpu = time.perf_counter(), time.process_time()
        took, took_cpu = office.look()
        all_looks += took
        all_cpu += took_cpu
        if journal.commits > commits:
            looks.append(took)
            processor.append(took_cpu)
        if journal.results_committed > results:
            seen.append(journal.committed_at - begin)
            seen_cpu.append(journal.committed_cpu - cpu)
    written = written_bytes() - written
    arrived = durable.station.archive.rows - arrived
    figures = {
        "submit, mean ms": 1_000 * submitting,
        "longest look before the hour, CPU ms": 1_000 * max(warm),
        **_percentiles("look", looks),
        **_percentiles("look, CPU,", processor),
        **_percentiles("begin of a look until its results are committed,", seen),
        **_percentiles("the same, CPU,", seen_cpu),
        **{f"{part}'s share of all looks": shares.seconds[part] / all_looks for part in sorted(shares.seconds)},
        "CPU seconds of looks an hour": all_cpu * HOUR_MS / span_ms,
        "readings and reports that arrived, a second": arrived / (span_ms / 1_000),
        "CPU ms of looks for a reading or report": 1_000 * all_cpu / max(1, arrived),
        "commits an hour": journal.commits * HOUR_MS / span_ms,
        "results committed an hour": journal.results_committed * HOUR_MS / span_ms,
        "bytes written for a byte received": written / max(1, wire.received),
        "full collections": gc.get_stats()[2]["collections"] - collections,
        "full collections between looks": office.collections.count - between,
        "longest full collection between looks, ms": 1_000 * office.collections.longest,
    }
    begin = time.perf_counter()
    figures["snapshot bytes"] = durable.snapshot(office.now)
    figures["snapshot ms"] = 1_000 * (time.perf_counter() - begin)
    office.live(2 * 60 * 1_000)  # two minutes behind the snapshot are taken again by the next start
    journal.close()
    begin = time.perf_counter()
    again = DurableStation(reopened := Journal(office.folder), office.make, office.now)
    figures["start ms"], figures["looks taken again"] = 1_000 * (time.perf_counter() - begin), again.replayed
    reopened.close()
    return figures


def _percentiles(name, seconds):
    ms = np.array(seconds) * 1_000
    return {
        f"{name} median ms": float(np.median(ms)),
        f"{name} 99th percentile ms": float(np.percentile(ms, 99)),
        f"{name} longest ms": float(ms.max()),
    }


# --- by the clock of the machine ---------------------------------------------------------------------------------------


def measure_live(count, seconds):
    """How late results reach a client that follows all queries, in real time, behind the look that could know them."""
    from basestation.rest.limits import RequestLimits
    from basestation.station.live_control import LiveControl
    from basestation.station.rest_server import RestServer
    from basestation.station.runner import Runner, ScaledClock

    folder = Path(tempfile.mkdtemp(prefix="moteloom-bench-"))
    try:
        office = Office(folder)
        office.submit(count)
        office.live(WARM_MS // 3)
        clock = ScaledClock(time.monotonic, office.now)
        collections = FullCollections()
        runner = Runner(office.durable, clock, office.motes, collections=collections)
        thread = threading.Thread(target=runner.run)
        limits = RequestLimits(requests_per_second=1e9, burst=10**9, open_requests=10**6)
        with collections, RestServer(LiveControl(runner), None, limits=limits) as rest:
            first = [office.journal.bounds(number)[1] - 1 for number in range(1, count + 1)]
            thread.start()
            begun = time.monotonic()
            offset_ms = clock.now_ms() - begun * 1_000
            cpu = time.process_time()
            client = subprocess.run(
                [sys.executable, "-m", "bench.station", "--follow", rest.url, json.dumps(first), str(seconds)],
                cwd=record.ROOT, stdout=subprocess.PIPE, text=True, check=True,
            )  # fmt: skip
            cpu = (time.process_time() - cpu) / (time.monotonic() - begun)
            runner.stop()
            thread.join()
        late = []
        database = sqlite3.connect(folder / "station.db")
        for query, number, read_at in json.loads(client.stdout):
            statement = "SELECT at_ms FROM results WHERE query = ? AND first <= ? AND behind > ?"
            [at_ms] = database.execute(statement, (query, number, number)).fetchone()
            late.append(read_at - (at_ms - at_ms % LOOK_MS - offset_ms) / 1_000)
        database.close()
        return {
            **_percentiles("due look until a client has the result,", late),
            "results read": len(late),
            "share of a core, with motes": cpu,
        }
    finally:
        shutil.rmtree(folder)


async def follow(url, first, seconds):
    """(query, number, time) of each event of the streams of all queries, behind the `first` of each."""
    import httpx

    found, prefix = [], "id: "

    async def follow_one(client, query, after):
        headers = {"accept": "text/event-stream"}
        async with client.stream("GET", f"/v1/queries/{query}/results?after={after}", headers=headers) as answer:
            async for line in answer.aiter_lines():
                if line.startswith(prefix):
                    found.append((query, int(line.rpartition("-")[2]), time.monotonic()))

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=None, limits=limits) as client:
        tasks = [asyncio.create_task(follow_one(client, query, after)) for query, after in enumerate(first, 1)]
        await asyncio.wait(tasks, timeout=seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return found


# --- pushed batches ----------------------------------------------------------------------------------------------------


def measure_pushes(count, length, seconds):
    """Durable readings a second of pushed batches, and the share that the engine takes of it."""
    folder = Path(tempfile.mkdtemp(prefix="moteloom-bench-"))
    try:
        catalog, shares = read_schema(PUSHED), Shares()
        journal = CountedJournal(folder)
        durable = DurableStation(
            journal, lambda wire, now: Station(catalog, wire, MemoryArchive(), boot=1, now_ms=now), BEGIN_MS
        )
        for number in range(count):
            durable.submit(write_query(number, PUSHED_QUERIES), BEGIN_MS)
        shares.watch_station()
        chance, now, taken, whole, readings = np.random.default_rng(1), BEGIN_MS, 0.0, [], 0
        while taken < seconds:
            now += 1_000
            values = {
                "site": np.arange(length) % 54,
                "temp": np.round(chance.normal(22, 2, length), 2),
                "light": chance.integers(0, 4_095, length),
            }
            tick = np.full(length, now // 1_000)
            tuples = PushedTuples(tick, np.ones(length, bool), values, {}, ())
            begin = time.perf_counter()
            durable.take_data(Upload(PUSH, now, "ticks", encode_tuples(tuples)), "")
            durable.step(now)
            whole.append(time.perf_counter() - begin)
            taken += whole[-1]
            readings += length
        journal.close()
        return {
            "durable readings a second": readings / taken,
            "engine's readings a second": readings / shares.seconds["engine"],
            "durable rate as a share of the engine's": shares.seconds["engine"] / taken,
            "store's share": shares.seconds["store"] / taken,
            "results's share": shares.seconds["results"] / taken,
            "rows of answers for a reading": sum(durable.station.accounts.of(n).rows for n in range(1, count + 1))
            / readings,
            "batch, median ms": 1_000 * float(np.median(whole)),
        }
    finally:
        shutil.rmtree(folder)


# --- command -----------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="all kinds, also with 1,000 queries")
    parser.add_argument("--kinds", nargs="+", choices=SECONDS, help="default: epochs")
    parser.add_argument("--counts", type=int, nargs="+", help="numbers of queries; default: 10 and 100")
    parser.add_argument("--seconds", type=int, help="measured of each; default: an hour of epochs, minutes of others")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--follow", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.follow:
        url, first, seconds = given.follow
        print(json.dumps(asyncio.run(follow(url, json.loads(first), float(seconds)))))
        return
    if given.one:
        print(json.dumps(_measure_one(**json.loads(given.one))))
        return
    figures = []
    for kind in given.kinds or (SECONDS if given.full else ("epochs",)):
        for count in given.counts or (COUNTS if given.full else COUNTS[:2]):
            seconds = given.seconds or SECONDS[kind]
            one = {"kind": kind, "count": count, "seconds": seconds}
            for length in BATCHES if kind == "push" else (None,):
                case = f"{kind}, {count} queries, {seconds} s" + (f", batches of {length:,}" if length else "")
                for figure, value in record.child(
                    "bench.station", "--one", json.dumps(one | {"length": length})
                ).items():
                    print(f"{case}, {figure}: {value:,.3f}", flush=True)
                    figures.append((case, figure, round(value, 4), ""))
    record.keep_figures("station", "full" if given.full else "default", figures)


def _measure_one(kind, count, seconds, length):
    if kind == "live":
        return measure_live(count, seconds)
    if kind == "push":
        return measure_pushes(count, length, seconds)
    return measure(count, seconds * 1_000, "1 sec" if kind == "fast" else None)


if __name__ == "__main__":
    main()
