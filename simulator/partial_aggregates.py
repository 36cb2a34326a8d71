"""The partial aggregates of a mote, and what nobody in the world is told: which readings are in them.

The memory is that of `innet.program`; beside it stands an account of each partial's origins, so that the trace can say
what a frame that was lost, or arrived, had in it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.frame import MAX_PAYLOAD, Frame
from innet.partials import Key, Partial
from innet.payload import decode_partials, encode_partials, first_slice
from innet.program.mote_program import MoteProgram, PartialTable
from innet.program.table_memory import TableMemory
from simulator.duplicate_filter import Identity

Place = tuple[int, int, bool, Key]
"""(table, slice, bare, group)."""
Reading = tuple[int, int]
"""(site, tick)."""
Parts = list[tuple[Place, frozenset[Reading]]]
"""What is in each partial of a frame, in its order."""
MOST_UNDER_WAY = 100_000


@dataclass(slots=True)
class Provenance:
    """Of each PARTIAL frame, by its identity: what is in each of its partials. One account for a whole network."""

    frames: dict[Identity, Parts] = field(default_factory=dict)
    home: dict[Identity, None] = field(default_factory=dict)

    def carry(self, frame: Frame, parts: Parts) -> None:
        self.frames[frame.identity] = parts
        if len(self.frames) > MOST_UNDER_WAY:  # what was lost is never taken
            del self.frames[next(iter(self.frames))]

    def take(self, frame: Frame) -> Parts:
        """Whoever takes a frame for good takes its account with it."""
        return self.frames.pop(frame.identity)

    def deliver(self, frame: Frame) -> Parts:
        """The account of a frame at a gateway; nothing, if it has come before: the base station knows copies."""
        if frame.identity in self.home:
            return []
        self.home[frame.identity] = None
        if len(self.home) > MOST_UNDER_WAY:
            del self.home[next(iter(self.home))]
        return self.take(frame)


class PartialAggregates:
    """Takes the place of `innet.program.table_memory.TableMemory` for the interpreter: `at` says which tick is being folded."""

    def __init__(self, site: int, provenance: Provenance) -> None:
        self._site, self._provenance = site, provenance
        self._memory = TableMemory()
        self._within: dict[Place, frozenset[Reading]] = {}
        self._early: Parts = []  # of what had to go early, for want of room
        self._tables: tuple[PartialTable, ...] = ()
        self._ended: frozenset[int] = frozenset()  # tables that we had, and that nobody wants any more
        self._tick = 0

    def install(self, programs: Iterable[MoteProgram]) -> None:
        programs = tuple(programs)
        before = {table.number: table for table in self._tables}
        self._memory.install(programs)
        same = {number for number, table in before.items() if self._memory.table(number) == table}
        self._within = {place: readings for place, readings in self._within.items() if place[0] in same}
        self._early = [part for part in self._early if part[0][0] in same]
        self._tables = tuple(table for program in programs for table in program.tables)
        self._ended = (self._ended | before.keys()) - {table.number for table in self._tables}

    def at(self, tick: int) -> "PartialAggregates":
        self._tick = tick
        return self

    def add(self, number: int, partials: Iterable[Partial]) -> None:
        """Readings of our own, at the tick that is being folded."""
        for partial in partials:
            self._add(number, partial, frozenset({(self._site, self._tick)}))

    def merge(self, frame: Frame) -> bool:
        """Take the partials of a child, or drop those of a fold that has ended; False if we know of none like them."""
        number = frame.payload[0] if frame.payload else None
        table = self._memory.table(number)
        if table is None:
            return number in self._ended  # who made it has not been told yet
        parts = self._provenance.take(frame)
        for partial, (_, readings) in zip(decode_partials(frame.payload, table.shape, frame.mote), parts, strict=True):
            self._add(table.number, partial, readings)
        return True

    def first_tick(self, frame: Frame) -> int:
        """The first tick of what is in a frame of partials, the oldest of them; 0 if we do not know any more."""
        table = self._memory.table(frame.payload[0])
        return table.slices.begin(first_slice(frame.payload)) if table else 0

    def _add(self, number: int, partial: Partial, readings: frozenset[Reading]) -> None:
        for early in self._memory.add(number, [partial]):
            place = _place(number, early)
            self._early.append((place, self._within.pop(place)))
        place = _place(number, partial)
        self._within[place] = self._within.get(place, frozenset()) | readings

    def take(self, tick: int, room: int = MAX_PAYLOAD) -> list[tuple[bytes, Parts]]:
        """Payloads of up to `room` bytes with the partials of slices that are over at a tick, and what is in each of them."""
        by_table: dict[int, list[tuple[Partial, frozenset[Reading]]]] = {}
        early, self._early = deque(self._early), []
        for number, partial in self._memory.take(tick):
            place = _place(number, partial)
            _, readings = early.popleft() if early else (place, self._within.pop(place))
            by_table.setdefault(number, []).append((partial, readings))
        found = []
        for number, partials in sorted(by_table.items()):
            shape = self._memory.table(number).shape
            left = deque(sorted(partials, key=lambda each: each[0].slice))
            for payload in encode_partials(shape, [partial for partial, _ in partials], room):
                inside = [left.popleft() for _ in decode_partials(payload, shape, self._site)]
                inside.sort(key=lambda each: each[0].bare)  # bare ones come last in a payload
                found.append((payload, [(_place(number, partial), readings) for partial, readings in inside]))
        return found


def _place(number: int, partial: Partial) -> Place:
    return number, partial.slice, partial.bare, partial.group
