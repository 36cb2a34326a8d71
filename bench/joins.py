"""The cost of a clock tick for ISTREAM and window answers over joins: state modules and differences, against whole products.

Each case is run twice over the same tuples: by joining, and the former way, which joins the whole windows anew in every
step and takes the difference of two products. Both must say the same. `python -m bench.joins` prints one line per case
and appends them to bench/results/joins.csv, with the conditions; the shortest of a few rounds counts.
"""

import time

import numpy as np

from acquisition.batch import Batch
from basestation.execution import operator_builder
from basestation.execution.engine import Engine
from basestation.execution.joins.join_plan import make_default_plan
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import TupleUpdates, WindowUpdates, split_interleaved
from bench import record

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
ALL_KEPT = make_default_plan(3, [(0, 1), (1, 2)], kept=[(0, 1)])
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
    """Return the seconds of the measured ticks, and the answers as numbers that identify them."""
    engine = Engine(SCHEMA)
    engine.add(1, bind_text(query, SCHEMA)[0])
    if plan is not None:
        engine.change_join_plan(1, plan)
    said, spent = [], 0.0
    for tick in range(warm + ticks):
        for name, batch in batches[tick]:
            engine.deliver(name, batch)
        start = time.perf_counter()
        updates = engine.on_clock(tick)
        if tick >= warm:
            spent += time.perf_counter() - start
        said += [number for update in split_interleaved(updates) for number in _fingerprint(update)]
    return spent, said


def _fingerprint(update):
    """Index by index for tuples; the sums for a window, whose rows have no order that counts."""
    if isinstance(update, TupleUpdates):
        return [update.tick.tolist(), update.index.tolist(), [c.values.tolist() for c in update.rows.columns]]
    if not isinstance(update, WindowUpdates):
        return []
    return [part for each in update for part in (each.tick, [int(c.values.sum()) for c in each.added.columns])]


def main():
    kept = []
    joined_in = operator_builder.find_join
    for what, shape, select, reach, slide, tuples, keys, ticks, plan in CASES:
        query = shape.format(select.format(r=reach, s=slide))
        warm = reach + 1
        batches = [[] for _ in range(warm + ticks)]
        for tick, name, batch in deliveries(tuples, keys, warm + ticks):
            batches[tick].append((name, batch))
        now, said = min((run(query, warm, ticks, batches, plan) for _ in range(ROUNDS)), key=lambda found: found[0])
        operator_builder.find_join = lambda *_: None
        try:
            runs = [run(query, warm, ticks, batches, None) for _ in range(ROUNDS)]
        finally:
            operator_builder.find_join = joined_in
        former = min(seconds for seconds, _ in runs)
        assert all(said == before for _, before in runs), what
        conditions = f"range {reach + 1} s, slide {slide} s, {tuples} tuples/s each, {keys} keys, {ticks} ticks"
        case = f"{what}: {conditions}"
        kept.append((case, "by joining", round(1e3 * now / ticks, 3), "ms a tick"))
        kept.append((case, "by whole products", round(1e3 * former / ticks, 3), "ms a tick"))
        kept.append((case, "gain", round(former / now, 2), "times"))
        print(
            f"{what:<38}{kept[-3][2]:>9} ms a tick, formerly {kept[-2][2]:>9} ms: {kept[-1][2]} times  ({conditions})"
        )
    record.keep_figures("joins", "default", kept)


if __name__ == "__main__":
    main()
