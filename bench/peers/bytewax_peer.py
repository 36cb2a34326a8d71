"""Bytewax, in an environment of its own: `python bytewax_peer.py TASK DATA OUT`; OUT `-` counts the answers only."""

import csv
import json
import sys
import time
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import windowing as win
from bytewax.testing import TestingSink, TestingSource, run_main

START = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BATCH = 65_536


def filtered(flow, readings):
    """Q1 by Bytewax's own operators; a loop of Python's over each batch would be Python's speed, not that of a dataflow."""
    stream = op.input("in", flow, TestingSource(readings, batch_size=BATCH))
    kept = op.filter("keep", stream, lambda reading: reading[2] < 50 and reading[3] > 20)
    return op.map("project", kept, lambda reading: (reading[0], reading[1], reading[3])), lambda row: row


def per_site(flow, readings):
    clock = win.EventClock(lambda r: START + timedelta(milliseconds=r[0]), timedelta(0))
    windower = win.SlidingWindower(length=10 * MINUTE, offset=MINUTE, align_to=START)

    def folded(state, reading):
        value = reading[3]
        if state is None:
            return value, value, value, 1
        low, high, total, count = state
        return (value if value < low else low, value if value > high else high, total + value, count + 1)

    def merged(a, b):
        if a is None or b is None:
            return b or a
        return min(a[0], b[0]), max(a[1], b[1]), a[2] + b[2], a[3] + b[3]

    stream = op.input("in", flow, TestingSource(readings, batch_size=BATCH))
    keyed = op.key_on("site", stream, lambda r: str(r[1]))
    windows = win.fold_window("fold", keyed, clock, windower, lambda: None, folded, merged)

    def row(said):
        site, (number, (low, high, total, count)) = said
        return number * 60_000 + 600_000, int(site), low, high, total / count, count

    return windows.down, row


TASKS = {"W1": filtered, "W2": per_site}


def main(task, data, out):
    with open(data, newline="") as lines:
        reader = csv.reader(lines)
        next(reader)
        readings = [(int(r[0]), int(r[1]), int(r[3]), float(r[4])) for r in reader]
    said = []
    flow = Dataflow("bench")
    stream, row = TASKS[task](flow, readings)
    op.output("out", stream, TestingSink(said))
    start = time.perf_counter()
    run_main(flow)
    seconds = time.perf_counter() - start
    if out != "-":
        with open(out, "w", newline="") as file:
            csv.writer(file).writerows(map(row, said))
    print(json.dumps({"seconds": seconds, "rows": len(said)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
