"""How long a station needs to start with thirty days of results, until it has committed a new answer. `python -m bench.restart`.

The office of 54 motes with 100 queries of three kinds, as in `bench.station`, lives some minutes in virtual time. Its file gets an answer
of each query for each epoch of the thirty days before: 8,640,000 rows, in the order of their times, as a station writes them. The
station ends without a word, two minutes after a snapshot. The file is dropped from the cache of the system before each cold
start. A start is a process of its own; waiting for the clock is left out. The check in the background is not started, so
that it takes no time from the next start.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from bench import record
from bench.station import BEGIN_MS, LOOK_MS, QUERIES, SCENARIO

DAYS, COUNT, EPOCH_MS, ROUNDS = 30, 100, 30_000, 3
GOAL = 5.0


def build(folder, epochs):
    """Make the data directory."""
    from basestation.station.assembly import make_factory
    from basestation.station.durable import DurableStation
    from basestation.station.journal import Journal
    from basestation.station.retention import Budget
    from basestation.testbed.live_motes import MoteScenario

    scenario, journal, now = MoteScenario(str(SCENARIO)), Journal(folder), BEGIN_MS
    durable = DurableStation(journal, make_factory(scenario.deployment, False), now)
    motes = scenario.start(now, 1, None)
    durable.connect(motes.wire)
    for number in range(COUNT):
        durable.submit(QUERIES[number % 3].format(bound=20 + number % 40 / 10, width=59 + 60 * (number % 7)), now)
    retained = durable.station.feed._retained
    for query, each in retained.items():  # the numbers of the thirty days before are taken
        retained[query] = replace(each, numbers=(epochs + 1,))
    for lived_ms in (60_000, 120_000):
        durable.snapshot(now)
        end = now + lived_ms
        while now < end:
            now += LOOK_MS
            motes.advance(now)
            durable.step(now)
    newest = {number: journal.results(number, 0, 10**9)[-1] for number in range(1, COUNT + 1)}
    journal.close()
    fill(folder, newest, epochs)
    journal = Journal(folder)
    journal.trim(
        Budget(numbers=10**9, result_bytes=10**12), now
    )  # as after each snapshot; these budgets keep all of it
    journal.close()


def fill(folder, newest, epochs):
    """Add an answer of each query for each epoch before the station began: a copy of the newest line that it gave."""
    import sqlite3
    import zlib

    lines = {number: chunk.lines.splitlines(keepends=True)[-1] for number, chunk in newest.items()}
    bodies = [(number, zlib.compress(line.encode(), 1)) for number, line in lines.items()]
    database = sqlite3.connect(folder / "station.db")
    database.execute("PRAGMA journal_mode = OFF")  # it is thrown away where this fails
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TEMP TABLE newest (number INTEGER, body BLOB)")
    database.executemany("INSERT INTO newest VALUES (?, ?)", bodies)
    with database:
        database.execute(
            "WITH RECURSIVE epochs (epoch) AS (SELECT 1 UNION ALL SELECT epoch + 1 FROM epochs WHERE epoch < ?1)"
            " INSERT INTO results SELECT number, epoch, epoch + 1, ?2 - (?1 - epoch) * ?3, length(body), body"
            " FROM epochs CROSS JOIN newest",
            (epochs, BEGIN_MS, EPOCH_MS),
        )
    database.close()


def start(folder):
    """Start the station of a data directory and look until it has committed a new answer; seconds of each part."""
    begin = time.perf_counter()
    from basestation.station.assembly import make_factory
    from basestation.station.durable import DurableStation
    from basestation.station.journal import Journal
    from basestation.testbed.live_motes import MoteScenario

    scenario = MoteScenario(str(SCENARIO))
    make, parts = make_factory(scenario.deployment, False), {}

    def end(name):
        nonlocal begin
        parts[name], begin = time.perf_counter() - begin, time.perf_counter()

    end("import")
    journal = Journal(folder)
    end("open and check")
    durable = DurableStation(journal, make, BEGIN_MS)
    end("restore and replay")
    durable.connect(scenario.start(durable.last_ms, 2, None).wire)
    now = durable.last_ms
    before = [journal.bounds(number)[1] for number in range(1, COUNT + 1)]
    while before == [journal.bounds(number)[1] for number in range(1, COUNT + 1)]:
        durable.step(now := now + LOOK_MS)
    end("first new answer")
    return parts | {"replayed": durable.replayed, "cpu": time.process_time()}


def forget(folder):
    """Let the system drop the files of a folder from its cache."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def measure(folder, is_cold):
    """(seconds from the start of the process to its first new answer, those of its parts)."""
    if is_cold:
        forget(folder)
    begin = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-m", "bench.restart", "--start", str(folder)],
        cwd=record.ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = child.stdout.readline()
    seconds = time.perf_counter() - begin
    if child.wait():
        raise SystemExit("bench: the start failed")
    return seconds, json.loads(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=float, default=DAYS, help="of results; default: %(default)s")
    parser.add_argument(
        "--folder", type=Path, help="where the data directory is made or kept; default: a temporary one"
    )
    parser.add_argument("--start", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.start:
        print(json.dumps(start(given.start)), flush=True)
        return
    folder = given.folder or Path(tempfile.mkdtemp(prefix="moteloom-bench-"))
    try:
        data = folder / "data"
        if not data.exists():
            build(data, int(given.days * 86_400_000 / EPOCH_MS))
        size = (data / "station.db").stat().st_size
        print(f"{given.days:g} days, {COUNT} queries: {size / 1e9:.2f} GB")
        figures = [(f"{given.days:g} days, {COUNT} queries", "bytes of the file", size, "")]
        for case, is_cold in (("cold cache", True), ("warm cache", False)):
            for _ in range(ROUNDS):
                seconds, parts = measure(data, is_cold)
                shown = ", ".join(f"{name} {value:.2f}" for name, value in parts.items())
                print(f"{case}: {seconds:.2f} s, goal {GOAL} s ({shown})", flush=True)
                figures.append(
                    (f"{given.days:g} days, {COUNT} queries, {case}", "start to first answer", round(seconds, 3), "s")
                )
                figures.append(
                    (f"{given.days:g} days, {COUNT} queries, {case}", "its CPU time", round(parts["cpu"], 3), "s")
                )
        record.keep_figures("restart", "default", figures)
    finally:
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
