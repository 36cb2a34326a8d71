"""Step plan: at which clock ticks the engine takes a step, when it gets deliveries of many clock ticks at once.

Clock ticks in which nothing comes late and nothing is corrected change no earlier answer. A run of them is one step, or several
if so much comes in them that the arrays of a step would leave the caches. A clock tick that may change an earlier answer is a
step of its own, unless all readers of the extent can report afterwards what changed in which tick.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol, TypeVar

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.vector import any_true
from basestation.execution import thresholds
from basestation.execution.interfaces import DeliveryIntake

_NONE: IntArray = np.empty(0, np.int64)


class TimedBatch(Protocol):
    """Deliveries with a clock tick each: a Batch, or a PartialBatch."""

    @property
    def arrival(self) -> IntArray: ...

    def __len__(self) -> int: ...

    def take(self, which: Any) -> Any: ...


KeyT = TypeVar("KeyT")
Deliveries = Mapping[KeyT, Sequence[Any]]
"""Batches by extent."""


def plan_steps(
    delivered: Mapping[KeyT, Sequence[Any]],
    intakes: Mapping[KeyT, DeliveryIntake[Any]],
    clock: int,
    tick: int,
    multi_tick: bool,
    followed: set[KeyT],
    corrected: bool,
) -> Iterator[tuple[int, dict[KeyT, list[Any]], bool]]:
    """Yield (last clock tick, batches by extent, whether it may cover several clock ticks) of each step after `clock` up to `tick`.

    Without `multi_tick`, every clock tick with a delivery is a step. With it, late tuples and corrections of the extents in
    `followed` need no step of their own. `corrected` says that statements correct tuples in the last clock tick.
    """
    named = {
        name: [_sort_by_arrival(b, clock, tick) for b in batches] for name, batches in delivered.items() if batches
    }
    multi_tick = multi_tick and all(
        a.arrival[-1] <= b.arrival[0] for batches in named.values() for a, b in pairwise(batches)
    )
    steps = [
        _disturbed_ticks(batch, intakes[name]) if multi_tick else batch.arrival
        for name, batches in named.items()
        if not (multi_tick and name in followed)
        for batch in batches
    ]
    steps = [ticks for ticks in steps if len(ticks)]
    cuts = _find_cuts(named.values()) if multi_tick else []
    if multi_tick and not (steps or cuts or corrected):
        yield tick, {name: named.get(name, []) for name in delivered}, multi_tick
        return
    edges = np.unique(np.concatenate([[tick] if corrected else _NONE, *steps])).astype(np.int64).tolist()
    ends = _add_runs(edges, named.values(), clock) if multi_tick else [(edge, False) for edge in edges]
    ends = sorted((dict.fromkeys(cuts, True) | dict(ends)).items())
    if not ends or ends[-1][0] != tick:
        ends.append((tick, multi_tick))
    begin = clock
    for end, several in ends:
        yield end, {name: select_deliveries(named.get(name, ()), begin, end) for name in delivered}, several
        begin = end


def _disturbed_ticks(batch: TimedBatch, intake: DeliveryIntake[Any]) -> IntArray:
    """Return the clock ticks of a batch that may change an earlier answer."""
    disturbing = intake.find_disturbing(batch)
    return batch.arrival[disturbing] if any_true(disturbing) else _NONE


def _find_cuts(batches: Iterable[Sequence[TimedBatch]]) -> list[int]:
    """Return the clock ticks after which a run is cut: those in which the last of MAX_STEP_TUPLES tuples of an extent comes."""
    size = thresholds.MAX_STEP_TUPLES
    cuts = [b.arrival[size - 1 : -1 : size] for of in batches for b in of if len(b) > size]
    return [cut for ticks in cuts for cut in ticks.tolist()]


def _add_runs(edges: Sequence[int], batches: Iterable[Sequence[TimedBatch]], clock: int) -> list[tuple[int, bool]]:
    """Return each edge, and before it the run that ends there, if anything is delivered in it."""
    ends, before = [], clock
    for edge in edges:
        if any(select_deliveries(of, before, edge - 1) for of in batches):
            ends.append((edge - 1, True))
        ends.append((edge, False))
        before = edge
    return ends


def select_deliveries(batches: Sequence[TimedBatch], begin: int, end: int) -> list[Any]:
    """Return the deliveries after clock tick `begin` up to `end`."""
    found = []
    for batch in batches:
        first, stop = np.searchsorted(batch.arrival, (begin, end), "right").tolist()
        if first < stop:
            found.append(batch if stop - first == len(batch) else batch.take(slice(first, stop)))
    return found


def _sort_by_arrival(batch: Any, clock: int, tick: int) -> Any:
    """Return a batch in the order of its clock ticks; an arrival outside (clock, tick] becomes `tick`."""
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
