"""A scenario is run; what its trace says was delivered is replayed; the station must have answered the same."""

import re
from functools import partial
from pathlib import Path
from types import MappingProxyType

from acquisition.extent import Kind
from acquisition.instants import grid_at_or_after
from basestation.planner.lower import collected
from basestation.planner.rewrite import rewrite
from basestation.results.view import current_windows
from basestation.testbed import Testbed
from innet.operators.acquire import acquired
from simulator.scenario import read_scenario
from tests.simulation.saying import difference, said_by, said_of

FOLDER = Path(__file__).parent


def run(name, seconds, seed=1, agenda=False):
    return run_scenario(read_scenario(FOLDER / f"{name}.toml"), seconds, seed, partial(Testbed, agenda=agenda))


def run_scenario(scenario, seconds, seed=1, kind=Testbed):
    bed = kind(scenario, seed)
    bed.earlier = set()  # samplings, some of which will have lost their numbers to others
    bed.run_until(seconds * 1_000, lambda _: bed.earlier.update(bed.station.world.scheduled.samplings.values()))
    return bed


def _samplings(bed):
    """All that there were, of all extents."""
    return {*bed.station.world.scheduled.samplings.values(), *getattr(bed, "earlier", ())}


def samplings_of(bed):
    """(number, microseconds) -> the sampling that had the number then: numbers are used again after 256 changes."""
    tick_us = bed.scenario.deployment.tick_ms * 1_000

    by_number = {}
    for each in _samplings(bed):
        by_number.setdefault(each.number, []).append(each)

    def found(number, time):
        # Clocks differ by half a tick at most.
        had = [each for each in by_number[number] if each.epochs.start * tick_us <= time + tick_us // 2]
        return max(had, key=lambda each: each.epochs.start)

    return found


def delivered(bed):
    """(site, tick) -> the tick in which it reached the base station first, and what was measured; of the first extent."""
    return _delivered(bed, next(iter(bed.catalog)).name)


def _delivered(bed, extent):
    """By the trace alone."""
    samplings, within = samplings_of(bed), {}
    for e in bed.trace.of("posted"):
        sampling = samplings(e["sampling"], e.time)
        if sampling.extent == extent:
            ticks = map(sampling.epochs.tick, range(e["first"], e["first"] + e["count"]))
            within[e.mote, e["boot"], e["seq"]] = [(e.mote, tick) for tick in ticks]
    return _arrived(bed, extent, within, lambda channel, mote: channel.senders is None or mote in channel.senders)


def _read(bed, name, extent):
    """The attributes that a query reads of an extent. What came without one of them was sent for others."""
    plan = bed.station.world.queries[bed.numbers[name]].plan
    return {a for each in collected(rewrite(plan)[0].root) if each.extent == extent for a in each.sent}


def for_others(bed, name):
    """By extent, (tick, site, delivery) of what came without a column that a query reads: it knows that something is here."""
    found = {}
    for extent in bed.catalog:
        if extent.kind is Kind.SENSED and extent.name not in folds_of(bed, name):
            read, came = _read(bed, name, extent.name), _delivered(bed, extent.name)
            keys = [
                (tick, site, arrival) for (site, tick), (arrival, values) in came.items() if not read <= values.keys()
            ]
            found[extent.name] = sorted(keys, key=lambda each: each[2])
    return found


def _filtered(bed, extent, before):
    """(site, tick) of the readings that a mote filtered before a tick, or by a sampling when there was another already."""
    samplings, found = samplings_of(bed), set()
    starts = sorted(s.epochs.start for s in _samplings(bed) if s.extent == extent)
    for e in bed.trace.of("produced"):
        sampling = samplings(e["sampling"], e.time)
        if e["filtered"] and sampling.extent == extent:
            another = any(sampling.epochs.start < start <= e["tick"] for start in starts)
            if another or e["tick"] < before:
                found.add((e.mote, e["tick"]))
    return found


def merged(bed, extent, fold):
    """As `delivered`, of the readings that were merged into the partials of a fold."""
    within = {}
    for e in bed.trace.of("merged"):
        if e["table"] == fold:
            readings = [tuple(map(int, reading.split(":"))) for reading in e["readings"].split(",") if reading]
            within.setdefault((e["origin"], e["boot"], e["seq"]), []).extend(readings)
    return _arrived(bed, extent, within)


def _by_slices(bed, extent, fold):
    """As `merged`. A partial is too far ahead as its slice's first due tick is, with all that is in it (docs/placement.md): of
    one that is not, a reading that would be by itself has come as late as it may."""
    operator, found = bed.station.world.folds[fold].operator, merged(bed, extent.name, fold)
    begun = min(sampling.epochs.start for sampling in _samplings(bed) if sampling.extent == extent.name)
    for (site, tick), (arrival, values) in found.items():
        slices, interval = operator.slices, operator.interval
        stamp = max(begun, grid_at_or_after(slices.begin(slices.number(tick)), interval))
        if extent.ahead is not None and stamp - arrival <= extent.ahead:
            found[site, tick] = max(arrival, tick - extent.ahead), values
    return found


def _arrived(bed, extent, within, sent=lambda channel, mote: True):
    """`within` has the (site, tick) of the readings that are in each frame, and `sent` tells which channels are."""
    tick_us, trace = bed.scenario.deployment.tick_ms * 1_000, bed.trace
    samplings, measured, found = samplings_of(bed), {}, {}
    for e in trace.of("produced"):
        sampling = samplings(e["sampling"], e.time)
        if sampling.extent == extent:
            values = zip(sampling.channels, e["values"], strict=True)
            measured[e.mote, e["tick"]] = {each.attribute: value for each, value in values if sent(each, e.mote)}
    # A swept network has no wire: what reached the gateway is there.
    for e in trace.of("arrived") or trace.of("delivered"):
        for reading in within.get((e["origin"], e["boot"], e["seq"]), ()):
            found.setdefault(reading, (_taken(bed, e.time) // tick_us, measured[reading]))
    return found


def _taken(bed, time):
    """When the station took what came at a time, in microseconds: while it is away, all waits for it."""
    for fault in bed.scenario.faults:
        begin, end = (bed.scenario.begin_ms + (ms or 0) for ms in (fault.at_ms, fault.until_ms))
        if fault.what == "base_away" and begin * 1_000 <= time < end * 1_000:
            return end * 1_000
    return time


def folds_of(bed, name):
    """{extent: the number of the fold} for the extents of which partials come for a query."""
    query = bed.station.world.queries[bed.numbers[name]]
    return {extent: fed.number for fed in query.fed for extent in acquired(fed.fold)}


def heard(bed, name):
    """For each extent that is sensed, the rows that a replay takes: what was delivered or merged for a query, in its order.

    What motes had filtered before they asked its conditions is nothing that it heard of, nor is what was sent without a column
    that it reads.
    """
    folds, found = folds_of(bed, name), {}
    reports_from = bed.station.world.queries[bed.numbers[name]].reports_from
    for extent in bed.catalog:
        if extent.kind is Kind.SENSED:
            fold = folds.get(extent.name)
            came = _delivered(bed, extent.name) if fold is None else _by_slices(bed, extent, fold)
            if fold is None:
                read = _read(bed, name, extent.name)
                came = {key: each for key, each in came.items() if read <= each[1].keys()}
            if fold is None and extent.name in reports_from:
                gone = _filtered(bed, extent.name, reports_from[extent.name])
                came = {key: each for key, each in came.items() if key not in gone}
            found[extent.name] = rows_of(extent, came)
    return found


def rows_of(extent, found):
    scales = {a.name: a.scale for a in extent.schema}
    rows = []
    for (site, tick), (arrival, values) in sorted(found.items(), key=lambda each: each[1][0]):
        row = {"_tick": tick, "_site": site, "_arrival": arrival}
        for attribute, value in values.items():
            scale = scales[attribute]
            row[attribute] = value if value is None or scale is None else float(f"{value}e-{scale}")
        rows.append(row)
    return rows


def answers(bed, name):
    """What the station says now: (tick, n) -> coverage and rows."""
    number = bed.numbers[name]
    feed = bed.station.feed
    scales = feed.shape(number).scales
    said = [numbered.update for numbered in feed.read(number, 0)]
    return {
        (w.tick, w.n): ({k: list(v) for k, v in w.coverage.items()}, sorted(w.rows.to_lists(scales), key=_by_value))
        for w in current_windows(said)
    }


def _by_value(row):
    return [(value is None, value or 0) for value in row]


def judge(bed, name, others=MappingProxyType({})):
    """How many windows or ticks a query has answered: all since it came as a replay does of what was heard, and of `others`."""
    asked = next(asked for asked in bed.scenario.queries if asked.name == name)
    got = said_by(bed, name)
    came = (bed.scenario.begin_ms + asked.at_ms) // bed.scenario.deployment.tick_ms if asked.at_ms else 0
    expected = said_of(bed, heard(bed, name) | others, replayable(bed, name, asked.text), for_others(bed, name))
    what = difference({key: said for key, said in expected.items() if _tick(key) >= came}, got)
    assert what is None, f"{name}, {what}"
    return len({key for _, key in got})


def replayable(bed, name, text):
    """A query as a replay takes it, which has no motes that could last: it is told how rarely they sample for that."""
    asked = bed.station.world.queries[bed.numbers[name]].plan.asked
    if asked.lifetime is None:
        return text
    bare = re.sub(r"\s(LIFETIME|ACQUIRE EVERY) \d+ \w+", "", text)
    return f"{bare} ACQUIRE EVERY {asked.acquire_every * bed.catalog.tick_ms} MS"


def _tick(key):
    """Of what is said of a window, of which there may be several at a tick, or of an epoch."""
    return key[1][0] if isinstance(key[1], tuple) else key[1]
