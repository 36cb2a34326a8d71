"""Mark places: where the marks of new epochs stand among the tuples of many queries, found for all of them together (semantics 12.3)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat

import numpy as np

from acquisition.arrays import IntArray
from basestation.execution.output.epoch_marks import NewMarks
from basestation.updates.update import EpochMarks, Interleaved, TupleUpdates

PlacedMarks = tuple[EpochMarks, IntArray]
"""Marks, and how many tuples of a query precede each of them."""


def are_new_epochs(news: Sequence[NewMarks]) -> bool:
    """Return whether marks are of new epochs, in one sequence of ascending ticks."""
    if len(news) != 1:
        return False
    [(marked, new)] = news
    return bool(new.all() and (marked.tick[1:] >= marked.tick[:-1]).all())


def place_epochs(
    news: Mapping[int, Sequence[NewMarks]],
    epochs: IntArray,
    readers: IntArray,
    slots: IntArray,
    rows: IntArray,
    arrivals: IntArray,
) -> dict[int, PlacedMarks]:
    """Return by slot its marks with their places, for `news` of which all `are_new_epochs`: behind all tuples that arrived up to them.

    `readers[i]` is a slot that reads the epochs with number `epochs[i]`; one whose epochs have no news is left out. Matches are pairs of
    `slots` and `rows`, by slot and then in order; rows are positions in `arrivals`, which ascend.
    """
    size = len(arrivals) + 1
    matches = slots * size + rows
    found: dict[int, PlacedMarks] = {}
    for number, [(marked, _)] in news.items():
        asked = readers[epochs == number, None]
        behind = np.searchsorted(arrivals, marked.tick, "right")
        at = np.searchsorted(matches, asked * size + behind) - np.searchsorted(slots, asked)
        found.update(zip(asked[:, 0].tolist(), zip(repeat(marked), at, strict=False), strict=True))
    return found


def interleave_epochs(
    query: int, tuples: TupleUpdates | None, placed: PlacedMarks | None
) -> Iterator[TupleUpdates | EpochMarks | Interleaved]:
    """Yield the tuples of a query, and marks of no query yet as its own, in their order."""
    if placed is None:
        yield from () if tuples is None else (tuples,)
        return
    shared, at = placed
    marked, end = EpochMarks(query, shared.tick, shared.coverage), int(at[-1])
    if tuples is None or not end:
        yield marked
    else:
        yield Interleaved(query, tuples if end == len(tuples) else tuples.take(slice(0, end)), marked, at)
    if tuples is not None and end < len(tuples):
        yield tuples.take(slice(end, None))
