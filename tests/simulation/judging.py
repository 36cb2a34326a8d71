"""A scenario is run; what its trace says was delivered is replayed; the station must have answered the same."""

from functools import partial
from pathlib import Path
from types import MappingProxyType

from acquisition.extent import Kind
from basestation.results.view import current_windows
from basestation.testbed import Testbed
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


def samplings_of(bed):
    """(number, microseconds) -> the sampling that had the number then: numbers are used again after 256 changes."""
    tick_us = bed.scenario.deployment.tick_ms * 1_000

    by_number = {}
    for each in {*bed.station.world.scheduled.samplings.values(), *getattr(bed, "earlier", ())}:
        by_number.setdefault(each.number, []).append(each)

    def found(number, time):
        had = [each for each in by_number[number] if each.epochs.start * tick_us <= time]
        return max(had, key=lambda each: each.epochs.start)

    return found


def delivered(bed):
    """(site, tick) -> the tick in which it reached the base station first, and what was measured; of the first extent."""
    return _delivered(bed, next(iter(bed.catalog)).name)


def _delivered(bed, extent):
    """By the trace alone."""
    tick_us = bed.scenario.deployment.tick_ms * 1_000
    trace = bed.trace
    samplings = samplings_of(bed)
    measured = {(e.mote, e["sampling"], e["tick"]): e["values"] for e in trace.of("produced")}
    within = {}
    for e in trace.of("posted"):
        sampling = samplings(e["sampling"], e.time)
        if sampling.extent == extent:
            ticks = map(sampling.epochs.tick, range(e["first"], e["first"] + e["count"]))
            within[e.mote, e["boot"], e["seq"]] = sampling, list(ticks)
    found = {}
    # A swept network has no wire: what reached the gateway is there.
    for e in trace.of("arrived") or trace.of("delivered"):
        sampling, ticks = within.get((e["origin"], e["boot"], e["seq"]), (None, ()))
        for tick in ticks:
            values = measured[e["origin"], sampling.number, tick]
            names = [channel.attribute for channel in sampling.channels]
            found.setdefault((e["origin"], tick), (e.time // tick_us, dict(zip(names, values, strict=True))))
    return found


def heard(bed):
    """For each extent that is sensed, the rows that a replay takes: what was delivered, in its order."""
    return {extent.name: _rows(bed, extent) for extent in bed.catalog if extent.kind is Kind.SENSED}


def _rows(bed, extent):
    scales = {a.name: a.scale for a in extent.schema}
    rows = []
    for (site, tick), (arrival, values) in sorted(_delivered(bed, extent.name).items(), key=lambda each: each[1][0]):
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
    """How many windows or ticks a query has answered: all as a replay does of what was heard, and of `others`."""
    asked = next(asked for asked in bed.scenario.queries if asked.name == name)
    got = said_by(bed, name)
    what = difference(said_of(bed, heard(bed) | others, asked.text), got)
    assert what is None, f"{name}, {what}"
    return len({key for _, key in got})
