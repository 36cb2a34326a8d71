"""Duplicate rejection: the partials that a mote has taken, and since when it remembers all of them.

A neighbour that received no acknowledgement repeats a partial and marks it REPEATED (gateway/SPEC.md), for REPEAT_US at most.
A mote whose memory is shorter cannot know whether it took the partial before and passed it on. It must then reject it.
"""

from collections import deque

from simulator.kernel import MS

CAPACITY = 64
"""The partials that a mote has room to remember."""
REPEAT_US = 240_000 * MS
"""A neighbour repeats a partial for so long, counted from its first attempt."""
REMEMBERED_US = REPEAT_US + 60_000 * MS
"""A partial that was first sent before that arrives no more: its last transmission may take a while."""

Identity = tuple[int, int, int]
"""(mote, boot, sequence number) of a frame."""


class DuplicateFilter:
    """Remembers the identities of partials. `since` is the time from which on it forgot none; None: it never lost its memory."""

    def __init__(self, since: int | None) -> None:
        self._since = since
        self._known: deque[tuple[int, Identity]] = deque()
        self._refused: deque[Identity] = deque(maxlen=CAPACITY)

    def remember(self, identity: Identity, now: int) -> None:
        """The mote took this partial: it must not take it again."""
        self._known.append((now, identity))
        if len(self._known) > CAPACITY:
            self._since, _ = self._known.popleft()

    def refuse(self, identity: Identity) -> None:
        """The mote did not take this partial: a neighbour may offer it again."""
        self._refused.append(identity)

    def is_known(self, identity: Identity) -> bool:
        return any(known == identity for _, known in self._known)

    def may_be_forgotten(self, identity: Identity, now: int) -> bool:
        """Whether a repeated partial that is not known may be one that the mote took and forgot."""
        forgets = self._since is not None and now - self._since < REMEMBERED_US
        return forgets and identity not in self._refused
