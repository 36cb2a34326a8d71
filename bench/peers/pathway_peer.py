"""Pathway, in an environment of its own: `python pathway_peer.py TASK DATA OUT`; OUT `-` writes no answers."""

import json
import sys
import time

import pathway as pw

MINUTE = 60_000


class Road(pw.Schema):
    tick: int
    site: int
    time: int
    temp: int
    vibration: float


def filtered(road):
    return road.filter((pw.this.temp < 50) & (pw.this.vibration > 20)).select(
        pw.this.tick, pw.this.site, pw.this.vibration
    )


def per_site(road):
    return road.windowby(
        pw.this.tick, window=pw.temporal.sliding(hop=MINUTE, duration=10 * MINUTE), instance=pw.this.site
    ).reduce(
        tick=pw.this._pw_window_end,
        site=pw.this._pw_instance,
        low=pw.reducers.min(pw.this.vibration),
        high=pw.reducers.max(pw.this.vibration),
        mean=pw.reducers.avg(pw.this.vibration),
        readings=pw.reducers.count(),
    )


TASKS = {"W1": filtered, "W2": per_site}


def main(task, data, out):
    said = TASKS[task](pw.io.csv.read(data, schema=Road, mode="static"))
    if out == "-":
        pw.io.null.write(said)
    else:
        pw.io.csv.write(said, out)
    start = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
