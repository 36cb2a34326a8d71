"""In time: what several queries said in one piece, for people: one by one in the order of ticks, not query by query."""

from heapq import merge
from itertools import pairwise

from basestation.updates.update import EpochMarks, QueryFailure, TupleUpdates, WindowUpdates


def order_by_tick(updates):
    """The same updates cut into pieces of one tick; what each query said keeps its order."""
    by_query = {}
    for update in updates:
        by_query.setdefault(update.query, []).append(update)
    if len(by_query) < 2:
        return updates
    return [
        piece for _, _, piece in merge(*(_timed(q, said) for q, said in by_query.items()), key=lambda each: each[:2])
    ]


def _timed(query, said):
    """(tick, query, piece), where a tick is never before the one before it: a revision stands where it was said."""
    reached = None
    for update in said:
        for tick, piece in _pieces(update):
            reached = tick if reached is None else max(reached, tick)
            yield reached, query, piece


def _pieces(update):
    match update:
        case WindowUpdates() | EpochMarks():
            yield from ((int(tick), update.take(slice(at, at + 1))) for at, tick in enumerate(update.tick.tolist()))
        case TupleUpdates(tick=ticks):
            edges = [0, *((ticks[1:] != ticks[:-1]).nonzero()[0] + 1).tolist(), len(ticks)]
            for begin, end in pairwise(edges):
                yield int(ticks[begin]), update.take(slice(begin, end))
        case QueryFailure(clock=clock):
            yield clock, update
