"""What ISTREAM and window answers over joins cost a clock tick: state modules and differences, against whole products.

Each case is run twice over the same tuples: by joining, and the former way, which joins the whole windows anew in every
step and takes the difference of two products. Both must say the same. Prints one line per case and appends them to
bench/results/joins.csv, with the conditions; the shortest of a few rounds counts.
"""

import csv
import platform
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from acquisition.batch import Batch
from basestation.execution import block
from basestation.execution.engine import Engine
from basestation.execution.joining.plan import default_plan
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from basestation.revisions.answers import TupleUpdates

RESULTS = Path(__file__).parent / "results" / "joins.csv"
ROUNDS = 4
SCHEMA = read_schema(
    "\n".join(f"{name}: pushed (k:integer, v:integer) late revise by 1 sec" for name in ("a", "b", "c"))
)
PAIR = "SELECT a.k, a.v, b.v AS u FROM a [FROM NOW-{r} TO NOW SLIDE {s} SEC], b [FROM NOW-{r} TO NOW SLIDE {s} SEC] WHERE a.k = b.k"
FEW = "SELECT a.k, b.k AS l FROM a [FROM NOW-{r} TO NOW SLIDE {s} SEC], b [FROM NOW-{r} TO NOW SLIDE {s} SEC] WHERE a.k = b.k"
THREE = (
    "SELECT a.v, b.v AS u, c.v AS w FROM a [FROM NOW-{r} TO NOW SLIDE {s} SEC], b [FROM NOW-{r} TO NOW SLIDE {s} SEC], "
    "c [FROM NOW-{r} TO NOW SLIDE {s} SEC] WHERE a.k = b.k AND b.k = c.k"
)
ALL_KEPT = default_plan(3, [(0, 1), (1, 2)], kept=[(0, 1)])
CASES = [  # what, query, range, slide, tuples a tick of each stream, keys, ticks measured, plan
    ("ISTREAM of 2, values differ", "ISTREAM({})", PAIR, 99, 1, 20, 200, 100, None),
    ("ISTREAM of 2, values differ, longer", "ISTREAM({})", PAIR, 399, 1, 20, 800, 40, None),
    ("ISTREAM of 2, few values", "ISTREAM({})", FEW, 99, 1, 20, 200, 100, None),
    ("ISTREAM of 2, slide half the range", "ISTREAM({})", PAIR, 99, 50, 20, 200, 400, None),
    ("ISTREAM of 2, no overlap", "ISTREAM({})", PAIR, 49, 50, 20, 200, 400, None),
    ("ISTREAM of 3, no state", "ISTREAM({})", THREE, 99, 1, 10, 200, 60, None),
    ("ISTREAM of 3, a and b kept", "ISTREAM({})", THREE, 99, 1, 10, 200, 60, ALL_KEPT),
    ("windows of 2, all rows said", "{}", PAIR, 99, 1, 20, 200, 60, None),
]


def deliveries(tuples, keys, ticks):
    rng = np.random.default_rng(7)
    none = np.zeros(tuples, np.int64)
    for tick in range(ticks):
        for name in ("a", "b", "c"):
            columns = {"k": rng.integers(0, keys, tuples), "v": rng.integers(0, 2**40, tuples)}
            yield tick, name, Batch(none + tick, none, none + tick, none + 1, columns, {})


def run(query, warm, ticks, batches, plan):
    """Seconds for the measured ticks, and what was said, as numbers that tell answers apart."""
    engine = Engine(SCHEMA)
    engine.add(1, bind_text(query, SCHEMA)[0])
    if plan is not None:
        engine.exchange(1, plan)
    said, spent = [], 0.0
    for tick in range(warm + ticks):
        for name, batch in batches[tick]:
            engine.deliver(name, batch)
        start = time.perf_counter()
        updates = engine.on_clock(tick)
        if tick >= warm:
            spent += time.perf_counter() - start
        said += [number for update in updates for number in _fingerprint(update)]
    return spent, said


def _fingerprint(update):
    """Index by index for tuples; the sums for a window, whose rows have no order that counts."""
    if isinstance(update, TupleUpdates):
        return [update.tick.tolist(), update.index.tolist(), [c.values.tolist() for c in update.rows.columns]]
    rows = getattr(update, "added", None)
    return [] if rows is None else [update.tick, [int(c.values.sum()) for c in rows.columns]]


def main():
    rows = []
    join_in = block.join_in
    for what, shape, select, reach, slide, tuples, keys, ticks, plan in CASES:
        query = shape.format(select.format(r=reach, s=slide))
        warm = reach + 1
        batches = [[] for _ in range(warm + ticks)]
        for tick, name, batch in deliveries(tuples, keys, warm + ticks):
            batches[tick].append((name, batch))
        now, said = min((run(query, warm, ticks, batches, plan) for _ in range(ROUNDS)), key=lambda found: found[0])
        block.join_in = lambda *_: None
        try:
            runs = [run(query, warm, ticks, batches, None) for _ in range(ROUNDS)]
        finally:
            block.join_in = join_in
        former = min(seconds for seconds, _ in runs)
        assert all(said == before for _, before in runs), what
        conditions = f"range {reach + 1} s, slide {slide} s, {tuples} tuples/s each, {keys} keys, {ticks} ticks"
        figures = [round(1e3 * now / ticks, 3), round(1e3 * former / ticks, 3), round(former / now, 2)]
        rows.append([what, conditions, *figures])
        print(f"{what:<38}{figures[0]:>9} ms a tick, formerly {figures[1]:>9} ms: {figures[2]} times  ({conditions})")
    _keep(rows)


def _keep(rows):
    new = not RESULTS.exists()
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(
                ["when", "machine", "python", "what", "conditions", "ms a tick", "ms a tick formerly", "ratio"]
            )
        when = datetime.now(UTC).isoformat(timespec="seconds")
        for row in rows:
            writer.writerow([when, platform.machine(), platform.python_version(), *row])


if __name__ == "__main__":
    main()
