"""Arrived: partials that were made in the network, as the cells that the window engine keeps.

A partial says of its slice, group and states what `Folding.cells` would say of its readings. It does not say which
reading entered the stream first, so groups stand in the order of their first contributor; an aggregation whose groups'
order shows is not fed by partials (planner/split.py).
"""

from collections.abc import Callable

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.folding import Cells, Folding
from basestation.planner.split import Feed
from innet.aggregates import make
from innet.aggregates.fields import state_of
from innet.aggregates.state import State
from innet.operators.fold import Fold
from innet.payload import Partials
from innet.placement.place import SUMS


def arrived(
    feed: Feed, held: Fold, folding: Folding, numbers: Callable[[np.ndarray], np.ndarray], partials: Partials
) -> Cells:
    """The cells of partials of one aggregation; bare ones are known to have come, and say no more.

    `held` is the fold that ran, which may keep more than the feed's own; `numbers` gives the engine's slice of a tick.
    The folding is for no other aggregation than the feed's.
    """
    whole = partials.whole
    slices = feed.fold.slices
    found, which = np.unique(partials.slice[:whole], return_inverse=True)
    tick = np.array([slices.begin(number) for number in found.tolist()], np.int64)[which]
    keys = [Vector(partials.key[:, i], ~partials.null[:, i]) for i in range(len(feed.fold.keys))]
    group = folding.groups.of(keys, whole)
    kept = partials.states()
    rows = state_of("COUNT", [(int(n),) for n in partials.readings[:whole]])
    states = {0: rows}
    for (_, aggregate), (_, at), source in zip(
        feed.node.aggregates, folding.places(feed.node), feed.sources, strict=True
    ):
        states[at] = _part_of(aggregate.name, rows if source is None else kept[_place(feed.fold, held, source)])
    first = partials.who[:whole].argmax(axis=1) if partials.shape.has_bitmap else np.zeros(whole, np.int64)
    return folding.united(Cells(numbers(tick), group, tick, first, [states[at] for at in sorted(states)]))


def _place(fold: Fold, held: Fold, source: int) -> int:
    """Where the fold that ran keeps what is a state of its own in the feed's."""
    kind, value = fold.states[source]
    fits = [kind] if kind not in SUMS else SUMS[SUMS.index(kind) :]
    return next(i for i, (k, v) in enumerate(held.states) if v == value and k in fits)


def _part_of(name: str, state: State) -> State:
    """The state of an aggregate out of one that knows more: counts are part of sums, and sums of variances."""
    wanted = make(name, "integer")
    cells = {cell: state.cells[cell].copy() for cell in wanted.cells}
    sums = {total: state.sums[total].take(np.arange(state.n_groups)) for total in wanted.sums}
    return State(state.n_groups, cells, sums)
