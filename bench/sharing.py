"""The cost of a hundred queries with equal windows against one: state, time and memory. `python -m bench.sharing [--full]`."""

import argparse
import gc
import json
import time

from basestation.execution.engine import Engine
from basestation.execution.snapshot import save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import split_by_query
from bench import record
from bench.by_hand import BY_HAND
from bench.data import batches
from bench.memory import forget_peak, peak
from bench.ours import prepared
from bench.tasks import EVERY_MINUTE, Q2, TASKS

MANY, TIMES = 100, 3
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
    """Bytes of state at the end, seconds of a core until each query has its answers, peak bytes."""
    name, texts = KINDS[kind]
    task = TASKS[name]
    catalog = read_schema(task.schema, tick_ms=1)
    streams = task.streams(SITES, readings)
    engine = Engine(catalog)
    for number, text in enumerate(texts(queries), 1):
        engine.add(number, bind_text(text, catalog)[0])
    gc.collect()  # what planning left behind is no part of a step
    before = forget_peak()
    seconds = 0.0
    for parts, last in batches(streams, BATCH):
        batch = prepared(parts)
        start = time.process_time()
        for name, part in batch:
            engine.deliver(name, part)
        list(split_by_query(engine.on_clock(last)))
        seconds += time.process_time() - start
    highest = peak() - before
    return {"state": len(save_engine(engine)), "seconds": seconds, "peak": highest}


def measured_by_hand(kind, queries, readings):
    """Seconds of a core in steps of what is written by hand."""
    hand = BY_HAND[kind](queries)
    seconds = 0.0
    for parts, last in batches(TASKS[KINDS[kind][0]].streams(SITES, readings), BATCH):
        batch = hand.prepare(parts, last)
        start = time.process_time()
        hand.step(batch)
        seconds += time.process_time() - start
    return {"seconds": seconds}


def fastest(how, what):
    """Of a few processes the one that had to wait for others least."""
    return min(
        (record.child("bench.sharing", how, json.dumps(what)) for _ in range(TIMES)), key=lambda of: of["seconds"]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    for one in ("--one", "--hand"):
        parser.add_argument(one, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one or options.hand:
        print(
            json.dumps(
                measured(*json.loads(options.one)) if options.one else measured_by_hand(*json.loads(options.hand))
            )
        )
        return
    readings = 1_000_000 if options.full else 30_000
    figures = []
    for kind in KINDS:
        one, many = (fastest("--one", [kind, queries, readings]) for queries in (1, MANY))
        case = f"{kind}, {MANY} queries to 1, {readings} readings of {SITES} sites, batches of {BATCH}"
        for figure, unit in (("state", "bytes"), ("seconds", "s"), ("peak", "bytes")):
            figures.append((case, f"{figure} of 1", one[figure], unit))
            figures.append((case, f"{figure} of {MANY}", many[figure], unit))
            figures.append((case, f"{figure} ratio", round(many[figure] / max(one[figure], 1e-9), 3), "times"))
        if kind in BY_HAND:
            hand = fastest("--hand", [kind, MANY, readings])
            figures.append((case, f"seconds of {MANY} by hand", hand["seconds"], "s"))
            ratio = many["seconds"] / max(hand["seconds"], 1e-9)
            figures.append((case, "seconds to those by hand", round(ratio, 3), "times"))
        print(
            f"{kind:<14} state {many['state'] / one['state']:7.2f} times, time {many['seconds'] / one['seconds']:7.2f} times, "
            f"memory {many['peak'] / max(one['peak'], 1):7.2f} times",
            flush=True,
        )
    record.keep_figures("sharing", "full" if options.full else "default", figures)


if __name__ == "__main__":
    main()
