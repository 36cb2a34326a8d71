"""Moments: at which clock ticks an engine takes a step, when it is handed deliveries of many clock ticks at once.

Ticks in which nothing comes late, and nothing is corrected, change no answer of before: as many of them as there are in a
row are one step, unless so much comes in them that what a step works with would leave the caches: then they are several. A
tick that does disturb what was said before is a step of its own, unless all who read the extent tell what it changed afterwards.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from basestation.algebra.vector import any_true

MAX_STEP_TUPLES = 1 << 16
"""A calm stretch in which more tuples than this are delivered is cut, so that a batch of any size takes the memory of this one."""
_NONE = np.empty(0, np.int64)


def plan_steps(delivered, intakes, clock, tick, multi_tick, followed, corrected):
    """(clock tick that ends, {extent: batches}, whether nothing in it disturbs) for the ticks behind `clock` up to one.

    Where not all queries are `calm`, every clock tick in which something is delivered is a step; where they are, what
    disturbs extents that are `followed` is told afterwards. In the last one there are corrections if it is `corrected`.
    """
    named = {name: [_by_arrival(b, clock, tick) for b in batches] for name, batches in delivered.items() if batches}
    multi_tick = multi_tick and all(
        a.arrival[-1] <= b.arrival[0] for batches in named.values() for a, b in pairwise(batches)
    )
    steps = [
        _own(b, intakes[name]) if multi_tick else b.arrival
        for name, of in named.items()
        if not (multi_tick and name in followed)
        for b in of
    ]
    steps = [ticks for ticks in steps if len(ticks)]
    portions = _portions(named) if multi_tick else []
    if multi_tick and not (steps or portions or corrected):
        yield tick, {name: named.get(name, []) for name in delivered}, multi_tick
        return
    edges = np.unique(np.concatenate([[tick] if corrected else _NONE, *steps])).astype(np.int64).tolist()
    ends = _with_stretches(edges, named, clock) if multi_tick else [(edge, False) for edge in edges]
    ends = sorted((dict.fromkeys(portions, True) | dict(ends)).items())
    if not ends or ends[-1][0] != tick:
        ends.append((tick, multi_tick))
    begin = clock
    for end, steady in ends:
        yield end, {name: _between(named.get(name, ()), begin, end) for name in delivered}, steady
        begin = end


def _own(batch, intake):
    """The clock ticks that are steps of their own."""
    disturbing = intake.find_disturbing(batch)
    return batch.arrival[disturbing] if any_true(disturbing) else _NONE


def _portions(named):
    """Clock ticks after which a stretch is cut: in each of them, of some extent, the last of so many tuples is delivered."""
    cuts = [
        b.arrival[MAX_STEP_TUPLES - 1 : -1 : MAX_STEP_TUPLES]
        for of in named.values()
        for b in of
        if len(b) > MAX_STEP_TUPLES
    ]
    return [cut for ticks in cuts for cut in ticks.tolist()]


def _with_stretches(edges, named, clock):
    """Each edge with the calm stretch before it, if something is delivered there."""
    ends, before = [], clock
    for edge in edges:
        if any(_between(batches, before, edge - 1) for batches in named.values()):
            ends.append((edge - 1, True))
        ends.append((edge, False))
        before = edge
    return ends


def _between(batches, begin, end):
    """What was delivered behind one clock tick, up to another."""
    found = []
    for batch in batches:
        first, behind = np.searchsorted(batch.arrival, (begin, end), "right").tolist()
        if first < behind:
            found.append(batch if behind - first == len(batch) else batch.take(slice(first, behind)))
    return found


def _by_arrival(batch, clock, tick):
    """A batch in the order of its clock ticks; what is outside of those that end belongs to the last."""
    arrival = batch.arrival
    in_order = not (arrival[1:] < arrival[:-1]).any()
    if in_order and clock < arrival[0] and arrival[-1] <= tick:
        return batch
    inside = (arrival > clock) & (arrival <= tick)
    if not inside.all():
        batch = replace(batch, arrival=np.where(inside, batch.arrival, tick))
    if (batch.arrival[1:] < batch.arrival[:-1]).any():
        batch = batch.take(np.argsort(batch.arrival, kind="stable"))
    return batch
