"""Incidents: what cannot be as it was asked for any more, though nobody has asked for anything else; and when it can again.

They are found by comparing two worlds, so whoever changes the world does not have to say what that means for a promise.
"""

from collections import Counter, deque
from dataclasses import dataclass

from basestation.controller.world import World

MOST = 1_000
"""So many are kept; all are counted."""
AWAKE, ASLEEP = "motes stay awake", "motes need not stay awake any more"
BROKEN, KEPT = "a lifetime is no longer kept", "a lifetime is kept again"


@dataclass(frozen=True, slots=True)
class OperationalEvent:
    """`query` is whose promise it is about; `why` has the figures, where something cannot be."""

    at_ms: int
    what: str
    why: str = ""
    query: int | None = None


class OperationalEventLog:
    """The youngest, and how many of each there were."""

    def __init__(self) -> None:
        self.kept: deque[OperationalEvent] = deque(maxlen=MOST)
        self.counted: Counter[str] = Counter()

    def compare(self, before: World, after: World, now_ms: int) -> None:
        """What has changed for the worse, or the better again."""
        self._note(now_ms, before.awake_reason, after.awake_reason, AWAKE, ASLEEP)
        for number, query in after.live.items():  # what is over promises nothing
            was = before.live[number].lifetime_violation if number in before.live else None
            self._note(now_ms, was, query.lifetime_violation, BROKEN, KEPT, number)

    def _note(self, at_ms: int, was: str | None, now: str | None, worse: str, better: str,
              query: int | None = None) -> None:  # fmt: skip
        if (was is None) == (now is None):
            return
        found = (
            OperationalEvent(at_ms, better, "", query) if now is None else OperationalEvent(at_ms, worse, now, query)
        )
        self.kept.append(found)
        self.counted[found.what] += 1
