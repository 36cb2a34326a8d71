"""Past answers: the queries from the past of a station, whose windows other engines than that of the station answer.

Live updates of a query wait until its past windows are answered, so that its windows come in their order.
"""

from collections.abc import Callable, Mapping
from functools import partial

from acquisition.batch import Batch
from basestation.algebra.vector import Vector
from basestation.controller.query_lifecycle import QueryRecord, QueryState
from basestation.execution.engine import Engine
from basestation.execution.memory_failures import OUT_OF_MEMORY
from basestation.execution.past_windows import PastWindows, ReplayedQuery
from basestation.planner.plan import Correction
from basestation.station.past_size import SLICE_MS
from basestation.station.past_start import PastStart
from basestation.updates.update import QueryFailure, Update

Queries = Mapping[int, QueryRecord]
"""The queries of a station by number."""


class PastAnswers:
    """`by_query` has the engines; `held` the live updates of queries whose past is not answered yet."""

    def __init__(self, now_ms: int) -> None:
        self.by_query: dict[int, PastWindows | ReplayedQuery] = {}
        self.held: dict[int, list[Update]] = {}
        self._sliced_ms = now_ms  # when a slice of the past was answered last

    def begin(self, query: QueryRecord, start: PastStart, engine: Engine, now_ms: int) -> list[Update]:
        """Add a query after the end of a clock tick; its first updates, or its failure where its past finds no room."""
        number, clock = query.number, engine.clock
        if not start.past.is_replayed:
            self._sliced_ms = now_ms

        def act() -> list[Update]:
            self.by_query[number] = past = start.make_engine(query, engine)
            if isinstance(past, ReplayedQuery):
                updates = past.answer(clock)
            else:
                self.held[number] = []
                past.answer(clock)
                updates = self._advance(number, past)
            for correction in engine.pending_corrections():
                past.correct(correction)
            return updates

        return _if_there_is_room(number, clock, act)

    def advance(self, number: int, clock: int, now_ms: int) -> list[Update]:
        """Answer one slice of the past of a query, and after the last one the live updates that waited for it."""
        past = self.by_query[number]
        if not isinstance(past, PastWindows) or past.is_complete:
            return []
        self._sliced_ms = now_ms
        return _if_there_is_room(number, clock, partial(self._advance, number, past))

    def _advance(self, number: int, past: PastWindows) -> list[Update]:
        updates = past.advance()
        return updates + self.held.pop(number) if past.is_complete else updates

    def find_due(self, queries: Queries, now_ms: int) -> int | None:
        """The oldest query whose past is missing, at most once in SLICE_MS."""
        if not self.held or now_ms < self._sliced_ms + SLICE_MS:
            return None
        return next((number for number in self.held if not self._is_over(number, queries)), None)

    def end_clock(self, number: int, clock: int) -> list[Update]:
        """The updates of a query at the end of a clock tick."""
        return _if_there_is_room(number, clock, partial(self.by_query[number].answer, clock))

    def drop(self, number: int) -> None:
        """Forget a query."""
        self.by_query.pop(number, None)
        self.held.pop(number, None)

    def drop_ended(self, queries: Queries) -> None:
        """Forget the queries that answer nothing more."""
        for number in [number for number in self.by_query if self._is_over(number, queries)]:
            self.drop(number)

    def drop_settled(self) -> None:
        """Forget the queries whose past may not change any more."""
        for number in [number for number, past in self.by_query.items() if past.is_settled]:
            self.drop(number)

    def _is_over(self, number: int, queries: Queries) -> bool:
        query = queries.get(number)
        if query is None or query.state in (QueryState.STOPPED, QueryState.FAILED):
            return True
        past = self.by_query[number]  # resumed, a query goes on in the engine of the station
        return query.state is QueryState.PAUSED and (isinstance(past, ReplayedQuery) or past.is_complete)

    def deliver(self, extent: str, batch: Batch) -> None:
        """Take a delivery."""
        for past in self.by_query.values():
            past.deliver(extent, batch)

    def load(self, extent: str, tick: int, columns: Mapping[str, Vector]) -> None:
        """Take a version of a stored extent."""
        for past in self.by_query.values():
            past.load(extent, tick, columns)

    def correct(self, correction: Correction) -> None:
        """Take a statement."""
        for past in self.by_query.values():
            past.correct(correction)

    def limit(self, number: int, last: int) -> None:
        """Let a query answer nothing after a tick."""
        if number in self.by_query:
            self.by_query[number].limit(last)


def _if_there_is_room(number: int, clock: int, act: Callable[[], list[Update]]) -> list[Update]:
    """The updates that an act returns, or the failure of the query where its past finds no room."""
    try:
        return act()
    except MemoryError as error:
        return [QueryFailure(number, OUT_OF_MEMORY, f"its past finds no room: {error}", clock)]
