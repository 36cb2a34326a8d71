"""Memory failures: how queries and intakes ended for lack of memory, so that another run ends them at the same places.

An engine settles each of its operations: `MemoryFailure` has what ran out of memory in it. A recorder keeps these failures, a replay
carries them out. Places are counted within one look or command; 0 is between two of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from basestation.updates.update import (
    EpochMarks,
    Interleaved,
    QueryFailure,
    SharedUpdate,
    TupleUpdates,
    Update,
    WindowUpdates,
    split_by_query,
)
from gateway.errors import MoteloomError

OUT_OF_MEMORY = "SN516"
"""The number in the catalogue of errors of a query that needs more memory than there is."""
_MANY = EpochMarks | Interleaved | TupleUpdates | WindowUpdates


class UnrepeatedFailureError(MoteloomError):
    """A replay cannot end up where the log says: it lacks memory that the station had, or lacked it earlier."""


@dataclass(frozen=True, slots=True)
class EndedQuery:
    """A query that ended in clock tick `clock`, after `given` windows, tuples and marks of the same operation."""

    number: int
    given: int
    message: str
    clock: int

    @property
    def failure(self) -> QueryFailure:
        """The update that says so."""
        return QueryFailure(self.number, OUT_OF_MEMORY, self.message, self.clock)


@dataclass(frozen=True, slots=True)
class RecordStart:
    """How the record of an extent began anew: the number of its next tuple, its counts, and how many recorded corrections stay."""

    extent: str
    next_number: int
    unfiltered_from: int
    applied: int
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MemoryFailure:
    """The queries and records that ran out of memory in one operation. `is_past` is one of an engine for the past of a query."""

    place: int
    queries: tuple[EndedQuery, ...]
    records: tuple[RecordStart, ...] = ()
    is_past: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return it as the log has it."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> "MemoryFailure":
        """Return the failure of an entry of the log."""
        queries = tuple(EndedQuery(**each) for each in given["queries"])
        records = tuple(RecordStart(**each) for each in given["records"])
        return cls(given["place"], queries, records, given["is_past"])

    def check(self, updates: Iterable[Update | SharedUpdate], lost: Collection[object] = ()) -> None:
        """Raise UnrepeatedFailureError where queries, or the intakes that are `lost`, ended that the log does not name."""
        numbers, extents = {each.number for each in self.queries}, {each.extent for each in self.records}
        for ended in find_ended(updates):
            if ended.number not in numbers:
                raise UnrepeatedFailureError(f"query {ended.number}: {ended.message}")
        for key in lost:
            if isinstance(key, str) and key not in extents:
                raise UnrepeatedFailureError(f"the tuples of {key} find no room")

    def apply(self, updates: Iterable[Update | SharedUpdate]) -> list[Update]:
        """Return updates as they were: those of each query that ended up to its failure, and no more.

        Where a query gives less now, by another version of the program, it ends there.
        """
        ends, left = {each.number: each for each in self.queries}, {each.number: each.given for each in self.queries}
        found: list[Update] = []
        for update in split_by_query(updates):
            if update.query not in ends:
                found.append(update)
            elif not isinstance(update, QueryFailure) and (count := min(left[update.query], _count(update))):
                left[update.query] -= count
                found.append(update.take(slice(0, count)) if isinstance(update, _MANY) else update)
        return [*found, *(each.failure for each in self.queries)]


class FailureLog:
    """Keeps nothing, as of an engine whose run is not repeated."""

    def enter(self, is_past: bool = False) -> MemoryFailure | None:
        """Come to the next place; what failed there in the run that is repeated, or None where none is repeated."""
        return None

    def ends_next(self, number: int) -> bool:
        """Whether a query ended at the next place in the run that is repeated."""
        return False

    def record(self, queries: Sequence[EndedQuery], records: Sequence[RecordStart] = (), is_past: bool = False) -> None:
        """Keep what ran out of memory at this place."""


class FailureRecorder(FailureLog):
    """Keeps the failures of a look or command, and those since the one before."""

    def __init__(self) -> None:
        self._places: dict[bool, int] | None = None  # by `is_past`; None between looks and commands
        self._found: list[MemoryFailure] = []

    def begin(self) -> None:
        """Begin a look or command."""
        self._places = {False: 0, True: 0}

    def take(self) -> list[MemoryFailure]:
        """End a look or command; remove and return its failures."""
        found, self._found, self._places = self._found, [], None
        return found

    def enter(self, is_past: bool = False) -> MemoryFailure | None:
        if self._places is not None:
            self._places[is_past] += 1
        return None

    def record(self, queries: Sequence[EndedQuery], records: Sequence[RecordStart] = (), is_past: bool = False) -> None:
        place = 0 if self._places is None else self._places[is_past]
        self._found.append(MemoryFailure(place, tuple(queries), tuple(records), is_past))


class FailureReplay(FailureLog):
    """The failures of a look or command that is repeated."""

    def __init__(self, failures: Iterable[MemoryFailure]) -> None:
        self._left = list(failures)
        self._places = {False: 0, True: 0}

    @property
    def is_due(self) -> bool:
        """Whether failures of the engine of the station come before its next place."""
        return self._is_due(False)

    def _is_due(self, is_past: bool) -> bool:
        return any(each.place <= self._places[is_past] for each in self._left if each.is_past == is_past)

    def end(self) -> bool:
        """End the look or command; whether failures are left. A replay that skips a search comes to fewer places."""
        self._places = dict.fromkeys(self._places, max((each.place for each in self._left), default=0))
        return bool(self._left)

    def enter(self, is_past: bool = False) -> MemoryFailure | None:
        place = self._places[is_past] + (not self._is_due(is_past))
        self._places[is_past] = place
        due = [each for each in self._left if each.is_past == is_past and each.place <= place]
        self._left = [each for each in self._left if each not in due]
        queries = tuple(query for each in due for query in each.queries)
        return MemoryFailure(place, queries, tuple(record for each in due for record in each.records), is_past)

    def ends_next(self, number: int) -> bool:
        place = self._places[False] + 1
        return any(
            query.number == number
            for each in self._left
            if each.place == place and not each.is_past
            for query in each.queries
        )


NO_LOG = FailureLog()


def find_ended(updates: Iterable[Update | SharedUpdate]) -> Iterator[EndedQuery]:
    """The queries that ran out of memory, each with how much it gave before."""
    updates = list(updates)
    failures = [each for each in updates if isinstance(each, QueryFailure) and each.code == OUT_OF_MEMORY]
    given = dict.fromkeys((each.query for each in failures), 0)
    for update in split_by_query(updates) if failures else ():
        if update.query in given:
            if update in failures:
                yield EndedQuery(update.query, given[update.query], update.message, update.clock)
            given[update.query] += _count(update)


def settle_past(log: FailureLog, updates: Sequence[Update]) -> list[Update]:
    """Return the updates of an engine for the past of a query: up to its failure, and as they were where a run is repeated."""
    planned = log.enter(is_past=True)
    ended = list(find_ended(updates))
    if planned is not None:
        planned.check(updates)
    elif ended:
        planned = MemoryFailure(0, tuple(ended))
        log.record(ended, is_past=True)
    return planned.apply(updates) if planned is not None and planned.queries else list(updates)


def _count(update: Update) -> int:
    return len(update) if isinstance(update, _MANY) else 1
