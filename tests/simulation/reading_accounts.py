"""The fate of each reading by the trace alone, compared with the ledger of the station."""

from collections import Counter
from dataclasses import dataclass, field

from basestation.station.reading_account import DUE, NAMES, PRODUCED, RECEIVED
from innet.operators.acquire import find_acquires
from tests.simulation.scenario_judge import _taken, samplings_of


@dataclass
class Truth:
    """Of one extent and mote: the ticks at which a reading was due; made, and whether it was filtered; put into a frame; came by
    itself, and merged, with in how many frames; and how many came in copies of those."""

    due: set = field(default_factory=set)
    made: dict = field(default_factory=dict)
    posted: set = field(default_factory=set)
    own: Counter = field(default_factory=Counter)
    merged: Counter = field(default_factory=Counter)
    copies: int = 0


def asking(bed):
    """(extent, mote) -> the ticks at which a reading is due by what the station has asked for, tick by tick: to be called before time
    goes by, and filled while it does."""
    last, before, due = 1 + bed.station._tick + 10_000, {}, {}
    desire = bed.station.ledger.set_schedules

    def desired(scheduled, now):
        came = None
        for site, schedule in scheduled.schedules.items():
            is_ = {each.extent: each for each in schedule.samplings}
            for extent in {name for name, mote in before if mote == site} | is_.keys():
                sampling, key = is_.get(extent), (extent, site)
                if sampling == before.get(key):
                    continue
                came = truths(bed, {}) if came is None else came
                here = came.get(key, Truth())
                newest = max((tick for tick in here.own | here.merged if tick <= now), default=-1)
                begin = max(newest + 1, now + 1 if sampling is None else sampling.epochs.start)
                ticks = {tick for tick in due.get(key, ()) if tick < begin}
                if sampling is not None:
                    every = sampling.epochs.interval
                    ticks.update(range(-(-begin // every) * every, last, every))
                due[key] = ticks
                before[key] = sampling
        desire(scheduled, now)

    bed.station.ledger.set_schedules = desired
    return due


def truths(bed, due):
    """(extent, mote) -> Truth, with the ticks that are due."""
    found = {key: Truth(set(ticks)) for key, ticks in due.items()}
    samplings, within, now = samplings_of(bed), {}, bed._now_ms * 1_000

    def of(extent, mote):
        return found.setdefault((extent, mote), Truth())

    for e in bed.trace.of("produced"):
        of(samplings(e["sampling"], e.time).extent, e.mote).made[e["tick"]] = bool(e["filtered"])
    for e in bed.trace.of("posted"):
        sampling = samplings(e["sampling"], e.time)
        ticks = [sampling.epochs.tick(n) for n in range(e["first"], e["first"] + e["count"])]
        of(sampling.extent, e.mote).posted.update(ticks)
        within[e.mote, e["boot"], e["seq"]] = [("own", sampling.extent, e.mote, tick) for tick in ticks]
    for e in bed.trace.of("merged"):
        for extent in find_acquires(bed.station.world.folds[e["table"]].operator):
            here = [tuple(map(int, each.split(":"))) for each in e["readings"].split(",") if each]
            frame = within.setdefault((e["origin"], e["boot"], e["seq"]), [])
            frame += [("merged", extent, site, tick) for site, tick in here]
    seen = set()
    wired = bed.trace.of("arrived")
    for e in wired or bed.trace.of("delivered"):
        frame = e["origin"], e["boot"], e["seq"]
        for way, extent, mote, tick in within.get(frame, ()) if not wired or _taken(bed, e.time) <= now else ():
            if frame not in seen:
                getattr(of(extent, mote), way)[tick] += 1
            elif way == "own":  # the contents of a copied partial do not count
                of(extent, mote).copies += 1
        seen.add(frame)
    return found


def hold(bed, due):
    """The ledger against the trace, number by number; all sums of it, by extent and mote."""
    ledger, now, compared = bed.station.account(), max(bed.station._tick, bed.station.engine.clock), 0
    truth = truths(bed, due)
    told = {(extent, mote): sums for extent, motes in ledger.items() for mote, sums in motes.items()}
    assert {key for key, each in truth.items() if each.due or each.own or each.merged} <= told.keys()
    for key, sums in told.items():
        compare(key, sums, truth.get(key, Truth()), now, bed.station.ledger.unattributed().get(key[0], 0))
        compared += sums["due"]
    return told, compared


def balanced(sums):
    """The three sums of law 3, exactly, and nothing less than nothing."""
    assert tuple(sums) == NAMES and min(sums.values()) >= 0, sums
    assert sums["due"] == sum(sums[name] for name in DUE), sums
    assert sums["produced"] == sum(sums[name] for name in PRODUCED), sums
    assert sums["received"] == sum(sums[name] for name in RECEIVED), sums


def compare(key, sums, truth, now, unattributed):
    """Compare the ledger of one mote and extent with the trace; `unattributed` readings came merged, from unknown sites."""
    balanced(sums)
    due = {tick for tick in truth.due if tick <= now}
    came = truth.own.keys() | truth.merged.keys()
    made, own = truth.made.keys() & due, truth.own.keys() & due
    expected = {
        "due": len(due),
        "delivered": sum(not truth.made[tick] for tick in own),
        "filtered": sum(truth.made[tick] for tick in own),
        "ahead": len({tick for tick in truth.own if tick > now}) + len({tick for tick in truth.merged if tick > now}),
    }
    assert {name: sums[name] for name in expected} == expected, key
    merged = len((truth.merged.keys() - truth.own.keys()) & due)
    assert sums["merged"] <= merged <= sums["merged"] + unattributed, (key, merged, sums)
    if not unattributed:
        times = truth.own + truth.merged
        expected = {
            "received": times.total() + truth.copies,
            "not due": sum(times[tick] for tick in times if tick <= now and tick not in due),
        }
        assert {name: sums[name] for name in expected} == expected, key
    # Known entries are exact, and the rest is not known.
    assert sums["produced"] <= len(made) <= sums["produced"] + sums["not known"], (key, len(made), sums)
    assert sums["not sampled"] + sums["not asked yet"] <= len(due - made), (key, sums)
    gone = made - came
    unsent = gone - truth.posted
    assert sums["dropped"] <= len(unsent), (key, sums)
    assert sums["lost"] <= len(gone & truth.posted), (key, sums)
