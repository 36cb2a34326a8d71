"""A durable station with the 54 motes of examples/lab54, in virtual time: what a look takes, and what it writes.

`python -m bench.station`. An hour of the office at 30 s epochs for each number of queries. The share of the journal is what
its commits take of all looks. A look without bytes and answers is not counted.
"""

import argparse
import json
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from basestation.testbed.live_motes import MoteScenario
from bench import record

SCENARIO = record.ROOT / "examples/lab54/calm.scenario.toml"
BEGIN_MS = 1_763_452_800_000
LOOK_MS = 250
HOUR_MS = 3_600_000
QUERIES = (
    "SELECT site, temp FROM lab WHERE temp > {bound}",
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN]",
    "SELECT site, MAX(light) AS high FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN] WHERE humidity > {bound} GROUP BY site",
)
COUNTS = 10, 100


class CountedJournal(Journal):
    """Adds up what commits take, and how many there are."""

    seconds, commits = 0.0, 0

    def commit(self, *given, **named):
        begin = time.perf_counter()
        super().commit(*given, **named)
        self.seconds += time.perf_counter() - begin
        self.commits += 1


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


def measure(count):
    """By its name, each figure of an hour with so many queries."""
    folder = Path(tempfile.mkdtemp(prefix="moteloom-bench-"))
    try:
        return _measure(count, folder)
    finally:
        shutil.rmtree(folder)


def _measure(count, folder):
    scenario = MoteScenario(str(SCENARIO))
    journal = CountedJournal(folder)
    make = make_factory(scenario.deployment, False)
    durable = DurableStation(journal, make, BEGIN_MS)
    motes = scenario.start(BEGIN_MS, 1, None)
    wire = CountedWire(motes.wire)
    durable.connect(wire)
    now, submitting = BEGIN_MS, 0.0
    for number in range(count):
        begin = time.perf_counter()
        durable.submit(QUERIES[number % 3].format(bound=20 + number % 40 / 10, width=59 + 60 * (number % 7)), now)
        submitting += time.perf_counter() - begin
    while now < BEGIN_MS + HOUR_MS // 6:  # motes receive their programs and begin
        now += LOOK_MS
        motes.advance(now)
        durable.step(now)
    looks, journal.seconds, journal.commits, wire.received = [], 0.0, 0, 0
    all_looks, written = 0.0, written_bytes()
    end = now + HOUR_MS
    while now < end:
        now += LOOK_MS
        motes.advance(now)
        commits, begin = journal.commits, time.perf_counter()
        durable.step(now)
        took = time.perf_counter() - begin
        all_looks += took
        if journal.commits > commits:
            looks.append(took)
    written = written_bytes() - written
    begin = time.perf_counter()
    size = durable.snapshot(now)
    snapshot = time.perf_counter() - begin
    for _ in range(2 * 60 * 4):  # two minutes behind the snapshot are taken again by the next start
        now += LOOK_MS
        motes.advance(now)
        durable.step(now)
    journal.close()
    begin = time.perf_counter()
    again = DurableStation(journal := Journal(folder), make, now)
    start = time.perf_counter() - begin
    journal.close()
    ms = np.array(looks) * 1_000
    return {
        "submit, mean ms": 1_000 * submitting / count,
        "look, median ms": float(np.median(ms)),
        "look, 99th percentile ms": float(np.percentile(ms, 99)),
        "look, longest ms": float(ms.max()),
        "journal's share of all looks": durable.journal.seconds / all_looks,
        "core that looks take": all_looks / (HOUR_MS / 1_000),
        "commits an hour": durable.journal.commits,
        "bytes written for a byte received": written / wire.received,
        "snapshot ms": 1_000 * snapshot,
        "snapshot bytes": size,
        "start ms": 1_000 * start,
        "looks taken again": again.replayed,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return
    figures = []
    for count in COUNTS:
        for name, value in record.child("bench.station", "--one", str(count)).items():
            print(f"{count} queries, {name}: {value:,.3f}")
            figures.append((f"54 motes, {count} queries", name, round(value, 4), ""))
    record.keep_figures("station", "default", figures)


if __name__ == "__main__":
    main()
