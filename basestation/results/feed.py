"""The feed: each query's updates, numbered, so that a consumer who comes back goes on exactly where it stopped.

One thread publishes, any number may read: a published state is never changed, only replaced.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from basestation.revisions.update import Update


class Gone(Exception):
    """What was asked for is no longer kept; `first` is the number of the oldest update that is."""

    def __init__(self, first: int) -> None:
        super().__init__(f"the feed begins at number {first} now")
        self.first = first


@dataclass(frozen=True, slots=True)
class Numbered:
    """An update and its number in the feed of its query, from 1."""

    number: int
    update: Update


@dataclass(frozen=True, slots=True)
class Kept:
    """The newest updates of one query; the oldest of them has the number `first`."""

    first: int = 1
    updates: tuple[Update, ...] = ()


class Feed:
    """Keeps the newest `limit` updates of each query."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._kept: dict[int, Kept] = {}

    def open(self, query: int) -> None:
        """Begin the feed of a query, so that it can be read before there is anything in it."""
        self._kept.setdefault(query, Kept())

    def publish(self, updates: Iterable[Update]) -> None:
        by_query: dict[int, list[Update]] = {}
        for update in updates:
            by_query.setdefault(update.query, []).append(update)
        for query, new in by_query.items():
            kept = self._kept[query]
            updates = (*kept.updates, *new)
            surplus = max(0, len(updates) - self._limit)
            self._kept[query] = Kept(kept.first + surplus, updates[surplus:])

    def read(self, query: int, after: int = 0, limit: int | None = None) -> list[Numbered]:
        """The updates with numbers above `after`. KeyError: no such query. Gone: they are not kept any more."""
        kept = self._kept[query]
        if after + 1 < kept.first:
            raise Gone(kept.first)
        begin = after + 1 - kept.first
        end = None if limit is None else begin + limit
        return [Numbered(after + 1 + i, update) for i, update in enumerate(kept.updates[begin:end])]
