"""Operational events: new states of queries, promises that the network cannot keep any more, and those it keeps again.

They are found by comparison of two worlds, so code that changes the world need not know which promises it affects.
"""

from collections import Counter, deque
from dataclasses import dataclass

from basestation.controller.world import World

MAX_EVENTS = 1_000
"""The log keeps this many events; the counts include all."""
AWAKE, ASLEEP = "motes stay awake", "motes need not stay awake any more"
MOTE_LOST, MOTE_BACK = "mote lost", "mote back"
PAST_ANSWERED = "past of a query answered"
BROKEN, KEPT = "a lifetime is no longer kept", "a lifetime is kept again"


@dataclass(frozen=True, slots=True)
class OperationalEvent:
    """`why` has the figures if something is impossible now; `query` is the number of the query that it concerns."""

    at_ms: int
    what: str
    why: str = ""
    query: int | None = None
    mote: int | None = None

    @property
    def about(self) -> dict[str, int | None]:
        """The query or mote that it concerns, as keys of its JSON."""
        return {"query": self.query} if self.mote is None else {"mote": self.mote}


class OperationalEventLog:
    """The youngest events in `latest`, and the number of all by kind in `counts`."""

    def __init__(self) -> None:
        self.latest: deque[OperationalEvent] = deque(maxlen=MAX_EVENTS)
        self.counts: Counter[str] = Counter()

    def compare(self, before: World, after: World, now_ms: int) -> None:
        """Record new states of queries, and the promises that are broken or kept again, in the world after."""
        if after.queries is not before.queries:
            for number, query in after.queries.items():
                known = before.queries.get(number)
                if known is None or known.state is not query.state:
                    self._add(OperationalEvent(now_ms, f"query {query.state.value}", query.reason, number))
        self._note(now_ms, before.awake_reason, after.awake_reason, AWAKE, ASLEEP)
        if after.live is before.live:
            return
        for number, query in after.live.items():
            old = before.live[number].lifetime_violation if number in before.live else None
            self._note(now_ms, old, query.lifetime_violation, BROKEN, KEPT, number)

    def note_mote(self, now_ms: int, mote: int, is_lost: bool) -> None:
        """Record that a mote is lost, or that it speaks again."""
        self._add(OperationalEvent(now_ms, MOTE_LOST if is_lost else MOTE_BACK, mote=mote))

    def note_past(self, now_ms: int, query: int, answered: int, slices: int) -> None:
        """Record how much of the past of a query is answered, at each tenth."""
        if answered * 10 // slices > (answered - 1) * 10 // slices:
            self._add(OperationalEvent(now_ms, PAST_ANSWERED, f"{answered * 100 // slices} %", query))

    def _note(
        self, at_ms: int, old: str | None, new: str | None, worse: str, better: str, query: int | None = None
    ) -> None:
        """`old` and `new` are the reasons why a promise is broken; None while it is kept."""
        if (old is None) == (new is None):
            return
        self._add(OperationalEvent(at_ms, better if new is None else worse, new or "", query))

    def _add(self, event: OperationalEvent) -> None:
        self.latest.append(event)
        self.counts[event.what] += 1
