"""Filters, aggregates and joins over epochs in which all sites report at the same tick: `python -m bench.epochs`.

The extents are sensed every 30 seconds, attributes are integers or have `scale 2`, and late readings are revised back to
the default horizon of a day. Measured are readings a second in batches of many epochs, against a ceiling by hand; live,
the time of an epoch after 100, 1,000 and 2,880 epochs, and the slowest of a hundred; the state after a day, with and
without the readings that all queries share; and what more queries cost that differ in their WHERE, or begin at different
times. Times are those of a core, so that other processes do not count.
"""

import argparse
import gc
import json
import time
from contextlib import nullcontext

import numpy as np

from acquisition.batch import Batch, unit_weights
from basestation.algebra.vector import Vector
from basestation.execution.engine import Engine
from basestation.execution.snapshot import save_engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.station.full_collections import FullCollections
from basestation.updates.update import TupleUpdates, WindowUpdates, split_by_query
from bench import record
from bench.answers import Digest
from bench.ceiling.epochs import CEILINGS, EVERY
from bench.data import temp_class
from bench.epoch_queries import FORMS, LIVE_FORMS, MANY
from bench.memory import forget_peak, held
from bench.ours import answers
from bench.tasks import TABLE

SEED = 20261119
DELAY = 5  # seconds from the tick of an epoch to its delivery, before the wait is over
DAY = 24 * 3600 // EVERY
LIVE = (100, 1_000, DAY)  # epochs after which the time of an epoch is looked at
AROUND = 20  # epochs, in pairs, of which the median is taken: a window ends with every second epoch
SITES = (54, 1_000)
READINGS = 1_000_000
BULK = 65_536  # readings in a batch, rounded to whole epochs
WARM = 40  # epochs before many queries are measured: all windows are full
MEASURED = 100  # epochs of many queries, in pairs
TIMES = 3
TYPES = {"integer": (0, "integer"), "scale 2": (2, "float {scale 2}")}


def catalog_of(form, sites, kind, late="", table=False):
    """The extents of a form: `traffic` too where it joins, and a table if one is read."""
    _, declared = TYPES[kind]
    end = f"every {EVERY} sec at sites 1 .. {sites} wait 10 sec {late}"
    text = f"road: sensed (site:integer, time:integer, temp:integer, vibration:{declared}) {end}"
    if form == "join":
        text += f"\ntraffic: sensed (site:integer, time:integer, weight:integer) {end}"
    if table:
        text += "\n" + TABLE
    return read_schema(text, tick_ms=1_000)


def epochs_of(form, sites, kind, first, epochs):
    """The streams of some epochs, as columns with `tick`: the same for the same epochs, however they are cut."""
    scale, _ = TYPES[kind]
    found = {}
    for stream, number in (("road", 0), ("traffic", 1)) if form == "join" else (("road", 0),):
        rngs = [np.random.default_rng([SEED, number, sites, first + epoch]) for epoch in range(epochs)]
        draws = np.concatenate([rng.random((sites, 2)) for rng in rngs])
        tick = np.repeat((first + np.arange(epochs)) * EVERY, sites)
        site = np.tile(np.arange(1, sites + 1), epochs)
        found[stream] = {"tick": tick, "site": site, "time": tick}
        if stream == "road":
            found[stream]["temp"] = (draws[:, 0] * 80).astype(np.int64) - 20
            found[stream]["vibration"] = (draws[:, 1] * 60 * 10**scale).astype(np.int64)
        else:
            found[stream]["weight"] = (draws[:, 0] * 40_000).astype(np.int64)
    return found


def batch_of(columns):
    """A stream as the engine takes it; an epoch is delivered at one tick."""
    tick = columns["tick"]
    values = {name: values for name, values in columns.items() if name != "tick"}
    return Batch(tick, columns["site"], tick + DELAY, unit_weights(len(tick)), values)


def deliver(engine, batches, clock):
    """Give some batches to the engine; return the seconds that it took, and its updates."""
    start = time.process_time()
    for name, batch in batches:
        engine.deliver(name, batch)
    updates = engine.on_clock(clock)
    return time.process_time() - start, updates


def engine_of(form, sites, kind, texts, late="", table=False):
    """An engine that runs some queries, and its catalog."""
    catalog = catalog_of(form, sites, kind, late, table)
    engine = Engine(catalog)
    if table:
        engine.load("tempClass", 0, {name: Vector(values) for name, values in temp_class().items()})
    for number, text in enumerate(texts, 1):
        engine.add(number, bind_text(text, catalog)[0])
    return engine, catalog


def bulk(form, sites, kind, readings):
    """Readings a second of the engine and the ceiling, and whether their answers are the same."""
    engine, _ = engine_of(form, sites, kind, [FORMS[form]])
    ceiling, step = CEILINGS[form](TYPES[kind][0]), max(1, BULK // sites)
    streams = 2 if form == "join" else 1
    epochs, taken, seconds, by_hand = readings // sites // streams, 0, 0.0, 0.0
    ours, theirs = Digest(), Digest()
    for first in range(0, epochs, step):
        columns = epochs_of(form, sites, kind, first, min(step, epochs - first))
        batches = [(name, batch_of(found)) for name, found in columns.items()]
        clock = int(columns["road"]["tick"][-1]) + DELAY
        spent, updates = deliver(engine, batches, clock)
        start = time.process_time()
        said = ceiling.step(columns)
        by_hand += time.process_time() - start
        seconds += spent
        taken += sum(len(batch) for _, batch in batches)
        ours.add(answers(updates))
        theirs.add(said)
    return {"ours": taken / seconds, "ceiling": taken / by_hand, "agrees": str(ours) == str(theirs)}


def live(form, sites, kind, late=""):
    """Milliseconds of an epoch around each of `LIVE`, the 99th percentile, and bytes of state and memory after a day.

    `own state` is what a second engine without the query, which has the same readings, does not have.
    """
    engine, _ = engine_of(form, sites, kind, [LIVE_FORMS[form]], late)
    gc.collect()
    before, times = forget_peak(), []
    for epoch in range(DAY + 1):
        columns = epochs_of(form, sites, kind, epoch, 1)
        batches = [(name, batch_of(found)) for name, found in columns.items()]
        spent, _ = deliver(engine, batches, epoch * EVERY + DELAY)
        times.append(spent)
    around = {str(at): milliseconds(times[at - AROUND : at]) for at in LIVE}
    state, held_after = len(save_engine(engine)), held() - before
    engine.remove(1)
    return {
        "ms": around,
        "p99": slowest(times[LIVE[0] :]),
        "state": state,
        "own": state - len(save_engine(engine)),
        "held": held_after,
    }


def sharing(name, queries, like_a_station=True):
    """Milliseconds of an epoch for some queries of a kind, the 99th percentile, and bytes of state.

    Full collections of garbage run between epochs, `like_a_station`; their number and the longest are figures of their own. Otherwise
    Python alone decides when they run.
    """
    clock = [0]  # the tick of the epoch, in seconds
    station = FullCollections(lambda: clock[0] + time.process_time()) if like_a_station else None
    with station or nullcontext():
        return _sharing(name, queries, clock, station)


def _sharing(name, queries, clock_of_collections, station):
    kind = MANY[name]
    texts = kind.texts(queries)
    at_once = [] if kind.staggered or kind.past else texts
    engine, catalog = engine_of(kind.form, SITES[0], "integer", at_once, table=kind.table)
    times, next_tick = [], 0
    if kind.past:  # read by one query, which then ends
        engine.add(0, bind_text(FORMS[kind.form], catalog)[0])
        columns = epochs_of(kind.form, SITES[0], "integer", 0, kind.past)
        batches = [(name, batch_of(found)) for name, found in columns.items()]
        deliver(engine, batches, (kind.past - 1) * EVERY + DELAY)
        for number, text in enumerate(texts, 1):
            engine.add(number, bind_text(text, catalog)[0])
        engine.remove(0)
    waiting = list(enumerate(texts, 1)) if kind.staggered else []
    for epoch in range(kind.past, kind.past + WARM + MEASURED):
        columns = epochs_of(kind.form, SITES[0], "integer", epoch, 1)
        clock = epoch * EVERY + DELAY
        next_tick = max(next_tick, engine.clock + 1)
        while waiting and next_tick < clock:  # one query more at each tick
            number, text = waiting.pop(0)
            engine.on_clock(next_tick)
            engine.add(number, bind_text(text, catalog)[0])
            next_tick += 1
        batches = [(name, batch_of(found)) for name, found in columns.items()]
        start = time.process_time()
        _, updates = deliver(engine, batches, clock)
        for update in split_by_query(updates):
            read(update)
        times.append(time.process_time() - start)
        clock_of_collections[0] = clock
        if station is not None:
            station.tend(EVERY)
    return {
        "ms": milliseconds(times[-MEASURED:]),
        "with windows": 1e3 * float(np.median(np.max(_in_pairs(times[-MEASURED:]), axis=1))),
        "p99": slowest(times[-MEASURED:]),
        "collections": 0 if station is None else station.count,
        "longest": 0.0 if station is None else 1e3 * station.longest,
        "state": len(save_engine(engine)),
    }


def read(update):
    """Cut the columns of an update, as a reader of its rows does; they are cut when they are first read."""
    if isinstance(update, WindowUpdates):
        return update.added.columns, update.removed.columns
    return update.rows.columns if isinstance(update, TupleUpdates) else None


def by_hand(name, queries):
    """Milliseconds of an epoch for the same aggregates in numpy."""
    kind = MANY[name]
    ceiling, times = kind.by_hand(TYPES["integer"][0], queries), []
    for epoch in range(kind.past + WARM + MEASURED):
        columns = epochs_of(kind.form, SITES[0], "integer", epoch, 1)
        start = time.process_time()
        ceiling.step(columns)
        times.append(time.process_time() - start)
    return {"ms": milliseconds(times[-MEASURED:])}


def milliseconds(times):
    """The median time of an epoch, each the mean of two in a row."""
    return 1e3 * float(np.median(_pairs(times)))


def slowest(times):
    """The 99th percentile of the time of an epoch, each the mean of two in a row."""
    return 1e3 * float(np.quantile(_pairs(times), 0.99))


def _pairs(times):
    """Means of two epochs in a row: a window ends with every second one."""
    return _in_pairs(times).mean(axis=1)


def _in_pairs(times):
    return np.reshape(times[len(times) % 2 :], (-1, 2))


MEASURES = {"bulk": bulk, "live": live, "sharing": sharing, "by hand": by_hand}


def child(measure, *arguments):
    """One measurement in a process of its own."""
    return record.child("bench.epochs", "--one", json.dumps([measure, *arguments]))


def bulk_figures():
    """Rates of each form, site count and type, the median of a few processes."""
    for form in FORMS:
        for sites in SITES:
            for kind in TYPES:
                runs = [child("bulk", form, sites, kind, READINGS) for _ in range(TIMES)]
                ours, ceiling = (float(np.median([run[name] for run in runs])) for name in ("ours", "ceiling"))
                case = f"{form}, {kind}, {sites} sites, batches of {BULK} readings"
                yield case, "readings a second", round(ours), "readings/s"
                yield case, "slowest", round(min(run["ours"] for run in runs)), "readings/s"
                yield case, "fastest", round(max(run["ours"] for run in runs)), "readings/s"
                yield case, "ceiling", round(ceiling), "readings/s"
                yield case, "share of the ceiling", round(ours / ceiling, 3), "times"
                yield case, "agrees", int(all(run["agrees"] for run in runs)), "yes or no"


def live_figures():
    """Times of an epoch, and the state after a day, under the default horizon and under one of ten minutes."""
    for form in LIVE_FORMS:
        for sites in SITES if form in FORMS else SITES[:1]:
            day, short = (
                child("live", form, sites, "integer"),
                child("live", form, sites, "integer", "late revise by 10 min"),
            )
            case = f"{form}, integer, {sites} sites, epoch by epoch"
            for at, found in day["ms"].items():
                yield case, f"epoch {at}", round(found, 3), "ms"
            yield (
                case,
                f"epoch {DAY} to epoch {LIVE[0]}",
                round(day["ms"][str(DAY)] / day["ms"][str(LIVE[0])], 3),
                "times",
            )
            yield case, "99th percentile", round(day["p99"], 3), "ms"
            for name, what in (("state", "state"), ("own", "state of the query alone"), ("held", "held")):
                yield case, f"{what} after a day", day[name], "bytes"
                yield case, f"{what} after a day, horizon of 10 min", short[name], "bytes"


def sharing_figures():
    """Many queries against one."""
    for name, kind in MANY.items():
        one, many = (child("sharing", name, queries) for queries in (1, kind.count))
        case = f"{kind.count} {kind.what}, {SITES[0]} sites"
        yield case, "epoch of 1", round(one["ms"], 3), "ms"
        yield case, f"epoch of {kind.count}", round(many["ms"], 3), "ms"
        yield case, "one with windows", round(many["with windows"], 3), "ms"
        yield case, "99th percentile", round(many["p99"], 3), "ms"
        yield case, "full collections between epochs", many["collections"], ""
        yield case, "longest full collection", round(many["longest"], 3), "ms"
        if kind.goal_ms is not None:
            own = child("sharing", name, kind.count, False)
            yield case, "epoch, where Python alone decides", round(own["ms"], 3), "ms"
            yield case, "99th percentile, where Python alone decides", round(own["p99"], 3), "ms"
        if kind.by_hand is not None:
            yield case, "by hand", round(child("by hand", name, kind.count)["ms"], 3), "ms"
        yield case, "time ratio", round(many["ms"] / one["ms"], 3), "times"
        yield case, "state ratio", round(many["state"] / one["state"], 3), "times"
        yield case, "state of one query more", round((many["state"] - one["state"]) / (kind.count - 1)), "bytes"


PARTS = {"bulk": bulk_figures, "live": live_figures, "sharing": sharing_figures}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure, *arguments = json.loads(options.one)
        print(json.dumps(MEASURES[measure](*arguments)))
        return
    for part in options.parts or PARTS:
        figures = []
        for figure in PARTS[part]():
            figures.append(figure)
            print("{}: {} {} {}".format(*figure), flush=True)
        record.keep_figures(f"epochs_{part}", "default", figures)


if __name__ == "__main__":
    main()
