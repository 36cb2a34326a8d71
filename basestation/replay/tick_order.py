"""Orders the updates of several queries by tick, for readers; the engine emits them query by query."""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import pairwise

from basestation.updates.update import EpochMarks, PlainUpdate, QueryFailure, TupleUpdates, WindowUpdates


def order_by_tick(updates: list[PlainUpdate]) -> list[PlainUpdate]:
    """The same updates in pieces of one tick; those of one query keep their order."""
    by_query: dict[int, list[PlainUpdate]] = {}
    for update in updates:
        by_query.setdefault(update.query, []).append(update)
    if len(by_query) < 2:
        return updates
    return [
        piece for _, _, piece in merge(*(_timed(q, own) for q, own in by_query.items()), key=lambda timed: timed[:2])
    ]


def _timed(query: int, updates: Iterable[PlainUpdate]) -> Iterator[tuple[int, int, PlainUpdate]]:
    """(tick, query, piece) with ascending ticks: a revision of an earlier tick keeps its place."""
    reached = None
    for update in updates:
        for tick, piece in _pieces(update):
            reached = tick if reached is None else max(reached, tick)
            yield reached, query, piece


def _pieces(update: PlainUpdate) -> Iterator[tuple[int, PlainUpdate]]:
    match update:
        case WindowUpdates() | EpochMarks():
            yield from ((int(tick), update.take(slice(at, at + 1))) for at, tick in enumerate(update.tick.tolist()))
        case TupleUpdates(tick=ticks):
            edges = [0, *((ticks[1:] != ticks[:-1]).nonzero()[0] + 1).tolist(), len(ticks)]
            for begin, end in pairwise(edges):
                yield int(ticks[begin]), update.take(slice(begin, end))
        case QueryFailure(clock=clock):
            yield clock, update
