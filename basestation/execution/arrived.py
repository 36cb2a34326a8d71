"""Arrived: partials that were made in the network, as the slices of the window engine hold theirs.

A partial says of its slice, group and states what `Folding.partial` would say of its readings. It does not say which
reading entered the stream first, so groups stand in the order of their first contributor; an aggregation whose groups'
order shows is not fed by partials (planner/split.py).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.slicing import Partial as SlicePartial
from basestation.planner.split import Feed
from innet.aggregates import make
from innet.aggregates.fields import state_of
from innet.aggregates.state import State
from innet.partials import Partial


def arrived(feed: Feed, partials: Iterable[Partial]) -> list[tuple[int, SlicePartial]]:
    """For each slice its first tick and what is known of it; bare partials are known to have come, and say no more."""
    by_slice: dict[int, list[Partial]] = {}
    for partial in partials:
        if not partial.bare:
            by_slice.setdefault(partial.slice, []).append(partial)
    slices = feed.fold.slices
    return [(slices.begin(number), _as_slice(feed, found)) for number, found in sorted(by_slice.items())]


def _as_slice(feed: Feed, partials: Sequence[Partial]) -> SlicePartial:
    partials = sorted(partials, key=_first)
    keys = [_vector([partial.group[i] for partial in partials]) for i in range(len(feed.fold.keys))]
    tick = feed.fold.slices.begin(partials[0].slice)
    rank = [_lowest(partial.who) for partial in partials]
    first = np.stack([np.full(len(partials), tick), np.zeros_like(rank), rank, np.arange(len(partials))])
    rows = state_of("COUNT", [(partial.readings,) for partial in partials])
    kept = [state_of(kind, [p.states[i] for p in partials]) for i, kind in enumerate(feed.fold.kinds)]
    aggregates = [aggregate for _, aggregate in feed.node.aggregates]
    states = [
        _part_of(aggregate.name, rows if source is None else kept[source])
        for aggregate, source in zip(aggregates, feed.sources, strict=True)
    ]
    return SlicePartial(keys, first.astype(np.int64), rows, states)


def _part_of(name: str, state: State) -> State:
    """The state of an aggregate out of one that knows more: counts are part of sums, and sums of variances."""
    wanted = make(name, "integer")
    cells = {cell: state.cells[cell].copy() for cell in wanted.cells}
    sums = {total: state.sums[total].take(np.arange(state.n_groups)) for total in wanted.sums}
    return State(state.n_groups, cells, sums)


def _first(partial: Partial) -> tuple:
    """The order of groups: by their first contributor, then by their keys, nulls first."""
    return _lowest(partial.who), tuple((key is not None, key or 0) for key in partial.group)


def _lowest(who: int) -> int:
    return (who & -who).bit_length()


def _vector(values: Sequence[int | None]) -> Vector:
    there = np.array([value is not None for value in values], bool)
    return Vector(np.array([value or 0 for value in values], np.int64), None if there.all() else there)
