"""The feed: what each query says, numbered, so that a consumer who comes back goes on exactly where it stopped.

A window's update has one number, an epoch mark too; each tuple of a stream has one of its own. One thread publishes, any
number may read: a published state is never changed, only replaced.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from basestation.results.schema import ResultSchema
from basestation.updates.update import EpochMarks, Interleaved, TupleUpdates, Update, WindowUpdates
from gateway.errors import MoteloomError

_MANY = EpochMarks | Interleaved | TupleUpdates | WindowUpdates


class UpdatesExpiredError(MoteloomError):
    """What was asked for is no longer kept; `first` is the number of the oldest update that is."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the feed begins at number {first} now")
        self.first = first


@dataclass(frozen=True, slots=True)
class NumberedUpdate:
    """An update and its number in the feed of its query, from 1; of several windows, tuples or marks, that of the first."""

    number: int
    update: Update


@dataclass(frozen=True, slots=True)
class RetainedUpdates:
    """The newest updates of one query. `numbers` are theirs, with the number that the next one will have behind them."""

    shape: ResultSchema
    updates: tuple[Update, ...] = ()
    numbers: tuple[int, ...] = (1,)


class Feed:
    """Keeps the newest `limit` numbers of each query, and what was said in one piece with the oldest of them."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._kept: dict[int, RetainedUpdates] = {}

    def open(self, shape: ResultSchema) -> None:
        """Begin the feed of a query, so that it can be read before there is anything in it."""
        self._kept.setdefault(shape.number, RetainedUpdates(shape))

    def publish(self, updates: Iterable[Update]) -> None:
        by_query: dict[int, list[Update]] = {}
        for update in updates:
            by_query.setdefault(update.query, []).append(update)
        for query, new in by_query.items():
            kept = self._kept[query]
            lengths = [len(update) if isinstance(update, _MANY) else 1 for update in new]
            numbers = (*kept.numbers, *(kept.numbers[-1] + np.cumsum(lengths)).tolist())
            surplus = max(0, bisect_right(numbers, numbers[-1] - self._limit) - 1)
            self._kept[query] = RetainedUpdates(kept.shape, (*kept.updates, *new)[surplus:], numbers[surplus:])

    def drain(self) -> Iterator[tuple[int, list[NumberedUpdate]]]:
        """(query, its updates that are kept), of each query that has some; after that none of them is kept."""
        for query, kept in self._kept.items():
            if kept.updates:
                yield query, [NumberedUpdate(*each) for each in zip(kept.numbers, kept.updates, strict=False)]
                self._kept[query] = RetainedUpdates(kept.shape, (), kept.numbers[-1:])

    def shape(self, query: int) -> ResultSchema:
        """What the updates of a query are like. KeyError: no such query."""
        return self._kept[query].shape

    def read(self, query: int, after: int = 0, limit: int | None = None) -> list[NumberedUpdate]:
        """What has numbers above `after`. KeyError: no such query. Gone: they are not kept any more."""
        kept = self._kept[query]
        first, behind = after + 1, kept.numbers[-1]
        if first < kept.numbers[0]:
            raise UpdatesExpiredError(kept.numbers[0])
        end = behind if limit is None else min(behind, first + limit)
        found = []
        at = bisect_right(kept.numbers, first) - 1
        while first < end:
            begin, upto = kept.numbers[at], min(kept.numbers[at + 1], end)
            found.append(NumberedUpdate(first, _part(kept.updates[at], first - begin, upto - begin)))
            first, at = upto, at + 1
        return found


def _part(update: Update, begin: int, end: int) -> Update:
    return update.take(slice(begin, end)) if isinstance(update, _MANY) else update
