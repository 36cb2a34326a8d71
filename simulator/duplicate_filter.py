"""Copies: the partials that a mote knows again, and since when it remembers them all.

A neighbour that heard no acknowledgement offers a partial again and says so (gateway/SPEC.md: REPEATED), but for so long only.
Who remembers less than that cannot know whether it has had one, and may have handed it on: then it must not take it.
"""

from collections import deque

from simulator.kernel import MS

CAPACITY = 64
"""A mote has room for so many."""
REPEAT_US = 240_000 * MS
"""For so long, from the first time on, a partial is offered again."""
REMEMBERED_US = REPEAT_US + 60_000 * MS
"""What was first offered before that comes no more: the last time may take a while."""

Identity = tuple[int, int, int]


class DuplicateFilter:
    """`since` is the time from which on nothing is forgotten; a mote that never lost its memory has none."""

    def __init__(self, since: int | None) -> None:
        self._since = since
        self._known: deque[tuple[int, Identity]] = deque()
        self._refused: deque[Identity] = deque(maxlen=CAPACITY)

    def remember(self, identity: Identity, now: int) -> None:
        """This one was taken, and whatever becomes of it, it must not be taken again."""
        self._known.append((now, identity))
        if len(self._known) > CAPACITY:
            self._since, _ = self._known.popleft()

    def refuse(self, identity: Identity) -> None:
        """This one was not taken: it may be offered again."""
        self._refused.append(identity)

    def is_known(self, identity: Identity) -> bool:
        return any(known == identity for _, known in self._known)

    def may_be_forgotten(self, identity: Identity, now: int) -> bool:
        """Whether a partial that is offered again, and not known, may be one that was taken and forgotten."""
        forgets = self._since is not None and now - self._since < REMEMBERED_US
        return forgets and identity not in self._refused
