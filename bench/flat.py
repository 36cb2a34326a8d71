"""Memory over many windows and many distinct strings: it must stay flat. `python -m bench.flat [--full]`.

A tuple a second, no two with the same string; a window of ten seconds, every ten seconds, groups by it. By default there
are twice as many seconds as copies and corrections reach back, so that what is kept for these is full by half time.
"""

import argparse
import json

import numpy as np

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.saving import saved
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from bench import record
from bench.memory import held

SCHEMA = "trace: pushed (who:string, v:integer) late revise by 10 sec"
QUERY = "SELECT who, COUNT(*) AS n, MAX(v) AS high FROM trace [FROM NOW-9 SEC TO NOW SLIDE 10 SEC] GROUP BY who"
SLIDE, TICKS = 10, 1_000  # seconds from window to window, and from batch to batch
TENTHS = 10


def measured(windows):
    """After each tenth: windows answered, bytes held, bytes of state."""
    catalog = read_schema(SCHEMA)
    engine = Engine(catalog)
    engine.add(1, bind_text(QUERY, catalog)[0])
    seconds = windows * SLIDE
    marks = [seconds * part // TENTHS for part in range(1, TENTHS + 1)]
    found = []
    for first in range(0, seconds, TICKS):
        tick = np.arange(first, first + TICKS)
        none = np.zeros(TICKS, np.int64)
        who = np.empty(TICKS, object)
        who[:] = [f"vehicle {number}" for number in tick.tolist()]
        engine.deliver("trace", Batch(tick, none, tick, none + 1, {"who": who, "v": tick % 97}))
        engine.on_clock(first + TICKS - 1)
        if first + TICKS >= marks[0]:
            found.append(((first + TICKS) // SLIDE, held(), len(saved(engine))))
            del marks[0]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.one:
        print(json.dumps(measured(told.one)))
        return
    windows = 1_000_000 if told.full else 20_000
    found = record.child("bench.flat", "--one", str(windows))
    case = f"{windows} windows, {windows * SLIDE} distinct strings"
    half = TENTHS // 2 - 1
    figures = []
    for answered, bytes_held, state in found:
        figures += [
            (case, f"held after {answered}", bytes_held, "bytes"),
            (case, f"state after {answered}", state, "bytes"),
        ]
    for what, at in (("held", 1), ("state", 2)):
        ratio = found[-1][at] / found[half][at]
        figures.append((case, f"{what}, at the end to at half time", round(ratio, 3), "times"))
        print(f"{case}: {what} {found[half][at]:,} bytes at half time, {found[-1][at]:,} at the end: {ratio:.2f} times")
    record.keep_figures("flat", "full" if told.full else "default", figures)


if __name__ == "__main__":
    main()
