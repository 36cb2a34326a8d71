"""Memory over many windows and many distinct strings: it must stay flat. `python -m bench.flat`.

One tuple a second, each with another string. A window of ten seconds, every ten seconds, groups by it. The engine frees
unreachable state from time to time, at once, so memory rises and falls. The peak of each tenth of the run is taken between
two such times, and the greatest of the second half is compared with the greatest of the first.
"""

import argparse
import json

import numpy as np

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.execution.snapshot import save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from bench import record
from bench.memory import held

SCHEMA = "trace: pushed (who:string, v:integer) late revise by 10 sec"
QUERY = "SELECT who, COUNT(*) AS n, MAX(v) AS high FROM trace [FROM NOW-9 SEC TO NOW SLIDE 10 SEC] GROUP BY who"
SLIDE, TICKS = 10, 1_000  # seconds from window to window, and from batch to batch
TENTHS = 10
FALLS, LOOKED = 70 * TICKS, 5 * TICKS  # state is freed after at most 65,536 tuples; how often memory is read
WINDOWS = 1_000_000


def measured(windows):
    """By the end of each tenth: windows answered, the most bytes held, and the most bytes of state."""
    catalog = read_schema(SCHEMA)
    engine = Engine(catalog)
    engine.add(1, bind_text(QUERY, catalog)[0])
    seconds = windows * SLIDE
    marks = [seconds * part // TENTHS for part in range(1, TENTHS + 1)]
    found, most = [], (0, 0)
    for first in range(0, seconds, TICKS):
        tick = np.arange(first, first + TICKS)
        none = np.zeros(TICKS, np.int64)
        who = np.empty(TICKS, object)
        who[:] = [f"vehicle {number}" for number in tick.tolist()]
        engine.deliver("trace", Batch(tick, none, tick, none + 1, {"who": who, "v": tick % 97}))
        engine.on_clock(first + TICKS - 1)
        left = marks[0] - (first + TICKS)
        if left < FALLS and left % LOOKED == 0:
            most = max(most[0], held()), max(most[1], len(save_engine(engine)))
        if left <= 0:
            found.append(((first + TICKS) // SLIDE, *most))
            most = 0, 0
            del marks[0]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(options.one)))
        return
    found = record.child("bench.flat", "--one", str(WINDOWS))
    case = f"{WINDOWS} windows, {WINDOWS * SLIDE} distinct strings"
    half = TENTHS // 2
    figures = []
    for answered, bytes_held, state in found:
        figures += [
            (case, f"held after {answered}", bytes_held, "bytes"),
            (case, f"state after {answered}", state, "bytes"),
        ]
    for what, at in (("held", 1), ("state", 2)):
        first, second = (max(each[at] for each in part) for part in (found[:half], found[half:]))
        figures.append((case, f"{what}, in the second half to in the first", round(second / first, 3), "times"))
        print(
            f"{case}: {what} at most {first:,} bytes in the first half, {second:,} in the second: {second / first:.2f} times"
        )
    record.keep_figures("flat", "default", figures)


if __name__ == "__main__":
    main()
