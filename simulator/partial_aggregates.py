"""The partial aggregates of a mote, and the readings in each of them.

The partials are those of a `TableMemory` of `innet.program`. Beside it this module records the readings that each partial was
made of, which no mote knows, so that the trace can list the readings in every frame that was lost or arrived.
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
"""The readings in each partial of a frame, in the order of the frame."""
MAX_UNDER_WAY = 100_000


@dataclass(slots=True)
class Provenance:
    """The readings in the partials of each PARTIAL frame, by the identity of the frame. A network shares one."""

    frames: dict[Identity, Parts] = field(default_factory=dict)
    delivered: dict[Identity, None] = field(default_factory=dict)

    def carry(self, frame: Frame, parts: Parts) -> None:
        """Record the parts of a frame that is sent."""
        self.frames[frame.identity] = parts
        if len(self.frames) > MAX_UNDER_WAY:  # lost frames are never taken
            del self.frames[next(iter(self.frames))]

    def take(self, frame: Frame) -> Parts:
        """Remove and return the parts of a frame that a mote has merged."""
        return self.frames.pop(frame.identity)

    def deliver(self, frame: Frame) -> Parts:
        """The parts of a frame at a gateway; empty for a copy, which the base station ignores."""
        if frame.identity in self.delivered:
            return []
        self.delivered[frame.identity] = None
        if len(self.delivered) > MAX_UNDER_WAY:
            del self.delivered[next(iter(self.delivered))]
        return self.take(frame)


class PartialAggregates:
    """The tables of one mote for the interpreter, in place of a `TableMemory`; `at` sets the tick that is being folded."""

    def __init__(self, site: int, provenance: Provenance) -> None:
        self._site, self._provenance = site, provenance
        self._memory = TableMemory()
        self._readings: dict[Place, frozenset[Reading]] = {}
        self._early: Parts = []  # of partials that a full table had to give up early
        self._tables: tuple[PartialTable, ...] = ()
        self._ended: frozenset[int] = frozenset()  # tables of earlier programs only
        self._tick = 0

    def install(self, programs: Iterable[MoteProgram]) -> None:
        """Replace the programs; keep the partials of tables that stay the same."""
        programs = tuple(programs)
        before = {table.number: table for table in self._tables}
        self._memory.install(programs)
        same = {number for number, table in before.items() if self._memory.table(number) == table}
        self._readings = {place: readings for place, readings in self._readings.items() if place[0] in same}
        self._early = [part for part in self._early if part[0][0] in same]
        self._tables = tuple(table for program in programs for table in program.tables)
        self._ended = (self._ended | before.keys()) - {table.number for table in self._tables}

    def at(self, tick: int) -> "PartialAggregates":
        self._tick = tick
        return self

    def add(self, number: int, partials: Iterable[Partial]) -> None:
        """Add the mote's own readings of the tick that is being folded."""
        for partial in partials:
            self._add(number, partial, frozenset({(self._site, self._tick)}))

    def merge(self, frame: Frame) -> bool:
        """Merge the partials of a child, or drop those of a table that has ended; False if the table is unknown."""
        if not frame.payload:
            return False
        number = frame.payload[0]
        table = self._memory.table(number)
        if table is None:
            return number in self._ended  # the child still runs an earlier program
        parts = self._provenance.take(frame)
        for partial, (_, readings) in zip(decode_partials(frame.payload, table.shape, frame.mote), parts, strict=True):
            self._add(table.number, partial, readings)
        return True

    def first_tick(self, frame: Frame) -> int:
        """The first tick of the oldest slice in a frame of partials; 0 if its table is unknown."""
        table = self._memory.table(frame.payload[0])
        return table.slices.begin(first_slice(frame.payload)) if table else 0

    def _add(self, number: int, partial: Partial, readings: frozenset[Reading]) -> None:
        for early in self._memory.add(number, [partial]):
            place = _place(number, early)
            self._early.append((place, self._readings.pop(place)))
        place = _place(number, partial)
        self._readings[place] = self._readings.get(place, frozenset()) | readings

    def take(self, tick: int, room: int = MAX_PAYLOAD) -> list[tuple[bytes, Parts]]:
        """Remove the partials of slices that are over at a tick.

        Returns payloads of up to `room` bytes, each with the readings in its partials.
        """
        by_table: dict[int, list[tuple[Partial, frozenset[Reading]]]] = {}
        early, self._early = deque(self._early), []
        for number, partial in self._memory.take(tick):
            place = _place(number, partial)
            _, readings = early.popleft() if early else (place, self._readings.pop(place))
            by_table.setdefault(number, []).append((partial, readings))
        found = []
        for number, partials in sorted(by_table.items()):
            table = self._memory.table(number)
            if table is None:
                raise KeyError(f"there are partials of table {number}, and no such table")
            shape = table.shape
            left = deque(sorted(partials, key=lambda each: each[0].slice))
            for payload in encode_partials(shape, [partial for partial, _ in partials], room):
                inside = [left.popleft() for _ in decode_partials(payload, shape, self._site)]
                inside.sort(key=lambda each: each[0].bare)  # bare partials are last in a payload
                found.append((payload, [(_place(number, partial), readings) for partial, readings in inside]))
        return found


def _place(number: int, partial: Partial) -> Place:
    return number, partial.slice, partial.bare, partial.group
