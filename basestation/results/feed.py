"""The feed: the updates of each query, numbered, so that a client resumes exactly where it stopped.

A window update has one number, an epoch mark too; each tuple of a stream has its own. One thread publishes, any number
of threads read: the feed replaces a published state and never changes it.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from basestation.results.schema import ResultSchema
from basestation.updates.update import EpochMarks, Interleaved, TupleUpdates, Update, WindowUpdates
from gateway.errors import MoteloomError

_MANY = EpochMarks | Interleaved | TupleUpdates | WindowUpdates


class UpdatesExpiredError(MoteloomError):
    """The requested updates are no longer retained; `first` is the number of the oldest one that is."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the feed begins at number {first} now")
        self.first = first


@dataclass(frozen=True, slots=True)
class NumberedUpdate:
    """An update and its number in the feed of its query, from 1. Several windows, tuples or marks: the first's number."""

    number: int
    update: Update


@dataclass(frozen=True, slots=True)
class RetainedUpdates:
    """The newest updates of one query. `numbers` has the number of each, and at the end the next free number."""

    schema: ResultSchema
    updates: tuple[Update, ...] = ()
    numbers: tuple[int, ...] = (1,)


class Feed:
    """Retains the newest `limit` numbers of each query, and all updates that were emitted in one piece with the oldest."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._retained: dict[int, RetainedUpdates] = {}

    def open(self, schema: ResultSchema) -> None:
        """Begin the feed of a query, so that clients can read it before its first update."""
        self._retained.setdefault(schema.number, RetainedUpdates(schema))

    def close(self, query: int) -> None:
        """Forget the feed of a query that answers nothing any more."""
        self._retained.pop(query, None)

    def retain_all(self) -> None:
        """Retain updates until they are drained, however many there are."""
        self._limit = sys.maxsize

    def publish(self, updates: Iterable[Update]) -> None:
        """Append updates to the feeds of their queries."""
        by_query: dict[int, list[Update]] = {}
        for update in updates:
            by_query.setdefault(update.query, []).append(update)
        for query, new in by_query.items():
            retained = self._retained[query]
            lengths = [len(update) if isinstance(update, _MANY) else 1 for update in new]
            numbers = (*retained.numbers, *(retained.numbers[-1] + np.cumsum(lengths)).tolist())
            surplus = max(0, bisect_right(numbers, numbers[-1] - self._limit) - 1)
            kept = (*retained.updates, *new)[surplus:]
            self._retained[query] = RetainedUpdates(retained.schema, kept, numbers[surplus:])

    def drain(self) -> Iterator[tuple[int, list[NumberedUpdate]]]:
        """Each query that has retained updates, with all of them; the feed forgets them."""
        for query, retained in self._retained.items():
            if retained.updates:
                yield query, [NumberedUpdate(*each) for each in zip(retained.numbers, retained.updates, strict=False)]
                self._retained[query] = RetainedUpdates(retained.schema, (), retained.numbers[-1:])

    def skip_to(self, query: int, number: int) -> None:
        """Let the next update have a number, or a greater one if it would have that."""
        retained = self._retained[query]
        if retained.numbers[-1] < number:
            self._retained[query] = RetainedUpdates(retained.schema, (), (number,))

    def schema(self, query: int) -> ResultSchema:
        """The schema of a query's updates. Raises KeyError: there is no such query."""
        return self._retained[query].schema

    def read(self, query: int, after: int = 0, limit: int | None = None) -> list[NumberedUpdate]:
        """The updates with numbers above `after`, at most `limit` numbers.

        Raises KeyError: there is no such query. UpdatesExpiredError: they are no longer retained.
        """
        retained = self._retained[query]
        first, behind = after + 1, retained.numbers[-1]
        if first < retained.numbers[0]:
            raise UpdatesExpiredError(retained.numbers[0])
        end = behind if limit is None else min(behind, first + limit)
        found = []
        at = bisect_right(retained.numbers, first) - 1
        while first < end:
            begin, upto = retained.numbers[at], min(retained.numbers[at + 1], end)
            found.append(NumberedUpdate(first, _part(retained.updates[at], first - begin, upto - begin)))
            first, at = upto, at + 1
        return found


def _part(update: Update, begin: int, end: int) -> Update:
    return update.take(slice(begin, end)) if isinstance(update, _MANY) else update
