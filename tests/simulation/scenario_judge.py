"""A scenario is run; what its trace says was delivered is replayed; the station must have answered the same."""

import re
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from types import MappingProxyType

from acquisition.extent import ExtentKind, LatePolicy
from acquisition.ticks import grid_at_or_after
from basestation.planner.lowering import deliver_everything
from basestation.planner.rewriter import rewrite
from basestation.results.view import current_windows
from basestation.testbed.event_testbed import LOOKS_PER_TICK, EventTestbed
from innet.operators.acquire import find_acquires
from simulator.scenario import read_scenario
from tests.simulation.answer_comparison import difference, said_by, said_of

FOLDER = Path(__file__).parent


def run(name, seconds, seed=1, agenda=False):
    return run_scenario(read_scenario(FOLDER / f"{name}.toml"), seconds, seed, partial(EventTestbed, agenda=agenda))


def run_scenario(scenario, seconds, seed=1, kind=EventTestbed):
    bed = kind(scenario, seed)
    bed.run_until(seconds * 1_000, remembering(bed))
    return bed


@dataclass(frozen=True)
class Way:
    """The plan that feeds a query from window tick `first` on.

    `folds` has by extent the number of the fold whose partials arrive, `reports_from` by extent the tick from which on filter
    reports count. `begun` is when motes got the plan, if not when the query was submitted.
    """

    first: int
    folds: dict
    reports_from: dict
    begun: int | None = None


def remembering(bed):
    """Keeps what a station forgets: to be called while time goes by.

    Samplings are kept in their order, some of which will have lost their numbers to others, each with the time in microseconds
    up to which the station had taken frames when it was made: by a query that came or went, or after frames were taken.
    """
    bed.earlier = {}
    bed.ways = {}  # by name
    names = {}  # by number: of a day of queries that come and go only those that live are looked at
    noted = [None]  # the schedules of the last look
    change_queries = getattr(
        bed, "_change_queries", lambda: None
    )  # a vector testbed has all queries from the beginning on

    def note_samplings():
        if (scheduled := bed.station.world.scheduled) is noted[0]:
            return
        noted[0] = scheduled
        for sampling in scheduled.samplings.values():
            bed.earlier.setdefault(sampling, 1_000 * (bed._now_ms - 1))

    def change():
        change_queries()
        note_samplings()

    bed._change_queries = change

    def look(_):
        note_samplings()
        if len(names) < len(bed.numbers):
            names.update({number: name for name, number in bed.numbers.items()})
        for name in [names[number] for number in bed.station.world.live if number in names]:
            known, way = bed.ways.setdefault(name, []), _way(bed, name)
            if not known or known[-1] != way:
                bed.ways[name] = [*(each for each in known if each.first < way.first), way]

    return look


def _way(bed, name):
    """The one in which a query is answered now."""
    query, told = bed.station.world.queries[bed.numbers[name]], [d for d in bed.decided if d.query == bed.numbers[name]]
    folds = {extent: fed.number for fed in query.partial_sources for extent in find_acquires(fed.fold)}
    handed = [at for at, each in enumerate(told) if each.is_switch]
    first, begun = (told[handed[-1]].tick, told[handed[-1] - 1].tick) if handed else (-1, None)
    return Way(first, folds, dict(query.reports_from), begun)


def ways_of(bed, name):
    """All plans in their order; without `remembering` there was one."""
    return getattr(bed, "ways", {}).get(name) or [_way(bed, name)]


def _samplings(bed):
    """All that there were, of all extents, those first that came first."""
    return list(dict.fromkeys([*getattr(bed, "earlier", ()), *bed.station.world.scheduled.samplings.values()]))


def samplings_of(bed):
    """(number, microseconds) -> the sampling that had the number then: numbers are used again after 256 changes."""
    tick_us = bed.scenario.deployment.tick_ms * 1_000

    by_number = {}
    for each in _samplings(bed):
        by_number.setdefault(each.number, []).append(each)

    def found(number, time):
        # Right clocks differ by half a tick at most; a mote whose clock is ahead may begin before the others.
        known = sorted(by_number[number], key=lambda each: each.epochs.start)
        return ([each for each in known if each.epochs.start * tick_us <= time + tick_us // 2] or known[:1])[-1]

    return found


def delivered(bed, extent=None):
    """(site, tick) -> the tick in which it reached the base station first, and what was measured, by the trace alone; of an extent,
    or of the first."""
    extent = extent or next(iter(bed.catalog)).name
    within = _posted(bed, extent, samplings_of(bed))
    return _arrived(bed, extent, within, lambda channel, mote: channel.senders is None or mote in channel.senders)


def _posted(bed, extent, samplings):
    """(origin, boot, number) of a frame -> the (site, tick) of the readings and filter reports of an extent that are in it."""
    within = {}
    for e in bed.trace.of("posted"):
        sampling = samplings(e["sampling"], e.time)
        if sampling.extent == extent:
            ticks = map(sampling.epochs.tick, range(e["first"], e["first"] + e["count"]))
            within[e.mote, e["boot"], e["seq"]] = [(e.mote, tick) for tick in ticks]
    return within


def _read(bed, name, extent):
    """The attributes that a query reads of an extent. A reading without one of them was sent for another query."""
    return {attribute for each in _collected(bed, name) if each.extent == extent for attribute in each.sent}


def _collected(bed, name):
    """The readings that would be delivered for a query if nothing ran on motes; kept beside the plan that they are of."""
    plan, known = bed.station.world.queries[bed.numbers[name]].plan, vars(bed).setdefault("collected", {})
    if name not in known or known[name][0] is not plan:
        known[name] = plan, deliver_everything(rewrite(plan)[0].root)
    return known[name][1]


def _filtered(bed, extent):
    """{(site, tick): whether the station accepts the report} of filtered readings: not if a later sampling was in effect, unless
    the report was here before that was made."""
    samplings, made, found = samplings_of(bed), getattr(bed, "earlier", {}), {}
    known = [each for each in _samplings(bed) if each.extent == extent]
    came = _first_taken(bed, _posted(bed, extent, samplings))
    for e in bed.trace.of("produced"):
        sampling = samplings(e["sampling"], e.time)
        if e["filtered"] and sampling.extent == extent:
            place = e.mote, e["tick"]
            later = [each for each in known[known.index(sampling) + 1 :] if each.epochs.start <= e["tick"]]
            found[place] = not any(came.get(place, inf) > made.get(each, -inf) for each in later)
    return found


def _apart(bed, name, extent, reports_from):
    """(what was delivered for a query; what was for others, of which it knows only that it is here), as `delivered`.

    What motes had filtered before they asked its conditions is for others, and so is what was sent without a column that it reads.
    """
    read, believed, own, others = _read(bed, name, extent), _filtered(bed, extent), {}, {}
    before = reports_from.get(extent, 0)
    for (site, tick), each in delivered(bed, extent).items():
        if believed.get((site, tick), True):
            whole = tick >= before if (site, tick) in believed else read <= each[1].keys()
            (own if whole else others)[site, tick] = each
    return own, others


def merged(bed, extent, fold):
    """As `delivered`, of the readings that were merged into the partials of a fold."""
    within = {}
    for e in bed.trace.of("merged"):
        if e["table"] == fold:
            readings = [tuple(map(int, reading.split(":"))) for reading in e["readings"].split(",") if reading]
            within.setdefault((e["origin"], e["boot"], e["seq"]), []).extend(readings)
    return _arrived(bed, extent, within)


def received(bed, extent):
    """How many readings of an extent have reached the station by the end of its last clock tick, one by one or in partials, or
    were reported as filtered to who believes that."""
    folds = {number: placed.operator for number, placed in bed.station.world.folds.items()}
    own = [merged(bed, fold.extent, number) for number, fold in folds.items() if extent in find_acquires(fold)]
    believed, one_by_one = _filtered(bed, extent), delivered(bed, extent)
    known = {key: each for key, each in one_by_one.items() if believed.get(key, True)}
    return sum(arrival <= bed.station.engine.clock for found in (known, *own) for arrival, _ in found.values())


def _by_slices(bed, extent, fold):
    """As `merged`. A partial is beyond the horizon, and too far ahead, as its slice's first due tick is, with all that is in it
    (docs/placement.md): of one that is not, a reading that would be ahead by itself has come as late as it may."""
    operator, found = bed.station.world.folds[fold].operator, merged(bed, extent.name, fold)
    slices, interval, begun, first = operator.slices, operator.interval, _begun(bed, extent), _begins(bed, extent, fold)
    found = {key: each for key, each in found.items() if key[1] >= first}
    for (site, tick), (arrival, values) in list(found.items()):
        stamp = max(begun, grid_at_or_after(slices.begin(slices.number(tick)), interval))
        if extent.late is LatePolicy.REVISE and arrival - stamp > extent.horizon:
            del found[site, tick]
        elif extent.ahead is not None and stamp - arrival <= extent.ahead:
            found[site, tick] = max(arrival, tick - extent.ahead), values
    return found


def _begun(bed, extent):
    """The first due tick of an extent: its due ticks begin with the first query that reads it (semantics 12.3)."""
    return grid_at_or_after(_first_asked(bed)[extent.name], extent.interval)


def _first_asked(bed):
    """Extent -> in which clock tick the first query came that reads it."""
    found = {}
    for asked in bed.scenario.queries:
        for each in _collected(bed, asked.name) if asked.name in bed.numbers else ():
            found[each.extent] = min(_came(bed, asked), found.get(each.extent, _came(bed, asked)))
    return found


def _begins(bed, extent, fold):
    """A fold begins with a slice: of one that had begun when it was asked for nothing is used, nor waited for."""
    slices, asked = bed.station.world.folds[fold].operator.slices, grid_at_or_after(_asked(bed, fold), extent.interval)
    first = slices.number(asked)
    return slices.end(first) if _begun(bed, extent) < asked and slices.begin(first) < asked else 0


def _asked(bed, fold):
    """In which clock tick the first came of the queries that a fold feeds, or it was decided that it is to."""
    known = [asked for asked in bed.scenario.queries if asked.name in bed.numbers]
    ways = [(asked, way) for asked in known for way in ways_of(bed, asked.name) if fold in way.folds.values()]
    return min(_came(bed, asked) if way.begun is None else way.begun for asked, way in ways)


def _came(bed, options):
    """The clock tick in which a query was submitted: with the first look that is not before its time."""
    look_ms = _look_ms(bed.scenario)
    return (bed.scenario.begin_ms + -(-options.at_ms // look_ms) * look_ms) // bed.scenario.deployment.tick_ms


def _look_ms(scenario):
    return scenario.look_ms or max(1, scenario.deployment.tick_ms // LOOKS_PER_TICK)


def _arrived(bed, extent, within, sent=lambda channel, mote: True):
    """`within` has the (site, tick) of the readings that are in each frame, and `sent` tells which channels are."""
    tick_us, trace = bed.scenario.deployment.tick_ms * 1_000, bed.trace
    samplings, measured = samplings_of(bed), {}
    for e in trace.of("produced"):
        sampling = samplings(e["sampling"], e.time)
        if sampling.extent == extent:
            values = zip(sampling.channels, e["values"], strict=True)
            measured[e.mote, e["tick"]] = {each.attribute: value for each, value in values if sent(each, e.mote)}
    return {place: (at // tick_us, measured[place]) for place, at in _first_taken(bed, within).items()}


def _first_taken(bed, within):
    """(site, tick) -> when the station took it first, in microseconds; `within` has what is in each frame."""
    # A vector testbed has no wire: frames that reached the gateway are at the station.
    wired, found = bed.trace.of("arrived"), {}
    for e in wired or bed.trace.of("delivered"):
        places = within.get((e["origin"], e["boot"], e["seq"]), ())
        at = (_taken(bed, e.time) if wired else e.time) if places else None
        for place in places:
            found.setdefault(place, at)
    return found


def _taken(bed, time):
    """When the station took what came at a time, in microseconds: it looks now and then, at the latest a millisecond before a tick
    ends, and while it is away all waits for it."""
    scenario = bed.scenario
    begun, look = scenario.begin_ms * 1_000, 1_000 * _look_ms(scenario)
    time += (begun - 1_000 - time) % look
    for fault in scenario.faults:
        begin, end = (begun + (ms or 0) * 1_000 for ms in (fault.at_ms, fault.until_ms))
        if fault.what == "base_away" and begin <= time < end:
            return end + (begun - 1_000 - end) % look
    return time


def folds_of(bed, name):
    """{extent: the number of the fold} for the extents of which partials come for a query."""
    return ways_of(bed, name)[-1].folds


def heard(bed, name, way=None):
    """For each extent that is sensed, the rows that a replay takes: what was delivered or merged for a query, in its order.

    In the way in which it is answered, or another that it was answered in.
    """
    way, found = way or ways_of(bed, name)[-1], {}
    for extent in bed.catalog:
        if extent.kind is ExtentKind.SENSED:
            fold = way.folds.get(extent.name)
            if fold is None:
                came = _apart(bed, name, extent.name, way.reports_from)[0]
            else:
                came = _by_slices(bed, extent, fold)
            found[extent.name] = rows_of(extent, came)
    return found


def for_others(bed, name, way):
    """By extent, (tick, site, delivery) of what came for others, in its order, or is not waited for."""
    found = {}
    for extent in bed.catalog:
        if extent.kind is ExtentKind.SENSED and extent.name in way.folds:
            ticks = range(_begun(bed, extent), _begins(bed, extent, way.folds[extent.name]), extent.interval)
            found[extent.name] = [(tick, site, tick) for tick in ticks for site in extent.sites]
        elif extent.kind is ExtentKind.SENSED:
            others = _apart(bed, name, extent.name, way.reports_from)[1]
            keys = [(tick, site, arrival) for (site, tick), (arrival, _) in others.items()]
            found[extent.name] = sorted(keys, key=lambda each: each[2])
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
    """The current answers of the station: (tick, n) -> coverage and rows."""
    number = bed.numbers[name]
    feed = bed.station.feed
    scales = feed.schema(number).scales
    said = [numbered.update for numbered in feed.read(number, 0)]
    return {
        (w.tick, w.n): ({k: list(v) for k, v in w.coverage.items()}, sorted(w.rows.to_lists(scales), key=_by_value))
        for w in current_windows(said)
    }


def _by_value(row):
    return [(value is None, value or 0) for value in row]


def judge(bed, name, others=MappingProxyType({})):
    """How many windows or ticks a query has answered: all as a replay does of what was heard, and of `others`, that is asked then;
    where it was fed in several ways one after the other, each window in that in which it was answered. No window waits for what is
    not folded (docs/placement.md), so with a fold some are here before a replay has them, which say what it says a little later."""
    asked = next(asked for asked in bed.scenario.queries if asked.name == name)
    got, expected = said_by(bed, name), {}
    text, came, ways = replayable(bed, name, asked.text), _came(bed, asked), ways_of(bed, name)
    for way, behind in zip(ways, [*(each.first for each in ways[1:]), inf], strict=True):
        replayed = heard(bed, name, way) | others, text, for_others(bed, name, way), came, _first_asked(bed)
        said = said_of(bed, *replayed)
        if way.folds and (early := got.keys() - said.keys()):
            waits = max(bed.catalog.find(extent).wait for extent in way.folds)
            said |= {key: of for key, of in said_of(bed, *replayed, silent=waits).items() if key in early}
        expected |= {key: of for key, of in said.items() if way.first <= _tick(key) < behind}
    what = difference(expected, got)
    assert what is None, f"{name}, {what}"
    return len({key for _, key in got})


def _tick(key):
    """The tick of a window, or of an entry for a stream."""
    return key[1][0] if isinstance(key[1], tuple) else key[1]


def replayable(bed, name, text):
    """A query for a replay, which has no batteries: its sampling interval stands for the LIFETIME."""
    asked = bed.station.world.queries[bed.numbers[name]].plan.options
    if asked.lifetime is None:
        return text
    bare = re.sub(r"\s(LIFETIME|ACQUIRE EVERY) \d+ \w+", "", text)
    return f"{bare} ACQUIRE EVERY {asked.acquire_every * bed.catalog.tick_ms} MS"
