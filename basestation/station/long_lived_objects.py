"""LongLivedObjects: keeps Python's garbage collector from the objects that live as long as a station's queries.

A full collection walks through all objects. At 1,000 queries it takes as long as many steps, and it comes amid one. Here it comes
once after the queries have changed; the objects that are there then are frozen, so later collections leave them out. Objects without
cycles, among them almost all of a step, need no collection. Those that are frozen and in a cycle when they are not needed any more,
such as the operators of an ended query, stay until the collection after a change, or a day.
"""

import gc
from collections.abc import Collection

QUIET_MS = 10_000
"""Queries have not changed for so long when their objects are collected: submissions often come together."""
LONGEST_MS = 86_400_000
"""Between two collections of everything."""


class LongLivedObjects:
    """Belongs to a process of its own, since it freezes all objects of the process. Times are ms."""

    def __init__(self) -> None:
        self._queries: Collection[int] = frozenset()
        self._due_ms = 0

    def tend(self, queries: Collection[int], now_ms: int) -> bool:
        """Collect and freeze everything if it is due; return whether it was. `queries` are the numbers of those that run."""
        if queries != self._queries:
            self._queries, self._due_ms = frozenset(queries), now_ms + QUIET_MS
        if now_ms < self._due_ms:
            return False
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        self._due_ms = now_ms + LONGEST_MS
        return True
