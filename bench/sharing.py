"""What a hundred queries with equal windows cost against one: state, time and memory. `python -m bench.sharing [--full]`."""

import argparse
import json
import time

from basestation.execution.engine import Engine
from basestation.execution.saving import saved
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from bench import record
from bench.data import batches
from bench.memory import forget_peak, peak
from bench.ours import prepared
from bench.tasks import EVERY_MINUTE, Q2, TASKS

MANY = 100
SITES, BATCH = 1_000, 1_000
WINDOW = "road [FROM NOW-10 TO NOW SLIDE 1 MIN]"
LISTS = (
    "MIN(vibration) AS a",
    "MAX(vibration) AS a",
    "AVG(vibration) AS a",
    "COUNT(*) AS a",
    "SUM(temp) AS a, COUNT(*) AS b",
)


def alike(n):
    """One text, n times."""
    return [EVERY_MINUTE] * n


def lists(n):
    """The same window and groups under other lists and other HAVING."""
    return [
        f"SELECT site, {LISTS[k % len(LISTS)]} FROM {WINDOW} GROUP BY site HAVING COUNT(*) > {k // len(LISTS)}"
        for k in range(n)
    ]


def filters(n):
    """The same window under other conditions, tuple by tuple."""
    return [f"SELECT site, vibration FROM {WINDOW} WHERE vibration > {60 + k / 10}" for k in range(n)]


def joins(n):
    """Q2 under other conditions above the join."""
    return [f"{Q2} AND weight > {100 * k}" for k in range(n)]


KINDS = {
    "one text": ("W2", alike), "other lists": ("W2", lists), "other filters": ("W2", filters), "joins": ("W3", joins),
}  # fmt: skip


def measured(kind, queries, readings):
    """Bytes of state at the end, seconds in steps, peak bytes."""
    name, texts = KINDS[kind]
    task = TASKS[name]
    catalog = read_schema(task.schema, tick_ms=1)
    streams = task.streams(SITES, readings)
    engine = Engine(catalog)
    for number, text in enumerate(texts(queries), 1):
        engine.add(number, bind_text(text, catalog)[0])
    before = forget_peak()
    seconds = 0.0
    for parts, last in batches(streams, BATCH):
        batch = prepared(parts)
        start = time.perf_counter()
        for name, part in batch:
            engine.deliver(name, part)
        engine.on_clock(last)
        seconds += time.perf_counter() - start
    highest = peak() - before
    return {"state": len(saved(engine)), "seconds": seconds, "peak": highest}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one:
        print(json.dumps(measured(*json.loads(told.one))))
        return
    readings = 1_000_000 if told.full else 30_000
    figures = []
    for kind in KINDS:
        one, many = (
            record.child("bench.sharing", "--one", json.dumps([kind, queries, readings])) for queries in (1, MANY)
        )
        case = f"{kind}, {MANY} queries to 1, {readings} readings of {SITES} sites, batches of {BATCH}"
        for figure, unit in (("state", "bytes"), ("seconds", "s"), ("peak", "bytes")):
            figures.append((case, f"{figure} of 1", one[figure], unit))
            figures.append((case, f"{figure} of {MANY}", many[figure], unit))
            figures.append((case, f"{figure} ratio", round(many[figure] / max(one[figure], 1e-9), 3), "times"))
        print(
            f"{kind:<14} state {many['state'] / one['state']:7.2f} times, time {many['seconds'] / one['seconds']:7.2f} times, "
            f"memory {many['peak'] / max(one['peak'], 1):7.2f} times",
            flush=True,
        )
    record.keep_figures("sharing", "full" if told.full else "default", figures)


if __name__ == "__main__":
    main()
