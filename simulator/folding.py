"""The partial aggregates of a mote, and what nobody in the world is told: which readings are in them.

The memory is that of `innet.program`; beside it stands an account of each partial's origins, so that the trace can say
what a frame that was lost, or arrived, had in it.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from gateway.frame import Frame
from innet.partials import Key, Partial
from innet.payload import decode_partials, encode_partials
from innet.program.memory import Memory
from innet.program.program import MoteProgram, Table

Place = tuple[int, int, bool, Key]
"""(table, slice, bare, group)."""
Reading = tuple[int, int]
"""(site, tick)."""
Identity = tuple[int, int, int]
MOST_UNDER_WAY = 100_000
REMEMBERED = 64
"""So many frames a mote knows again: a neighbour that heard no acknowledgement says what it said."""


@dataclass(slots=True)
class Provenance:
    """Of each PARTIAL frame, by its identity: what is in each of its partials. One account for a whole network."""

    frames: dict[Identity, dict[Place, frozenset[Reading]]] = field(default_factory=dict)
    home: dict[Identity, None] = field(default_factory=dict)

    def carry(self, frame: Frame, parts: dict[Place, frozenset[Reading]]) -> None:
        self.frames[frame.identity] = parts
        if len(self.frames) > MOST_UNDER_WAY:  # what was lost is never taken
            del self.frames[next(iter(self.frames))]

    def take(self, frame: Frame) -> dict[Place, frozenset[Reading]]:
        """Whoever takes a frame for good takes its account with it."""
        return self.frames.pop(frame.identity)

    def bring_home(self, frame: Frame) -> dict[Place, frozenset[Reading]]:
        """The account of a frame at a gateway; nothing, if it has come before: the base station knows copies."""
        if frame.identity in self.home:
            return {}
        self.home[frame.identity] = None
        if len(self.home) > MOST_UNDER_WAY:
            del self.home[next(iter(self.home))]
        return self.take(frame)


class Folding:
    """Takes the place of `innet.program.memory.Memory` for the interpreter: `at` says which tick is being folded."""

    def __init__(self, site: int, provenance: Provenance) -> None:
        self._site, self._provenance = site, provenance
        self._memory = Memory()
        self._within: dict[Place, frozenset[Reading]] = {}
        self._known: deque[Identity] = deque(maxlen=REMEMBERED)
        self._tables: tuple[Table, ...] = ()
        self._ended: frozenset[int] = frozenset()  # tables that we had, and that nobody wants any more
        self._tick = 0

    def install(self, programs: Iterable[MoteProgram]) -> None:
        programs = tuple(programs)
        before = {table.number: table for table in self._tables}
        self._memory.install(programs)
        same = {number for number, table in before.items() if self._memory.table(number) == table}
        self._within = {place: readings for place, readings in self._within.items() if place[0] in same}
        self._tables = tuple(table for program in programs for table in program.tables)
        self._ended = (self._ended | before.keys()) - {table.number for table in self._tables}

    def at(self, tick: int) -> "Folding":
        self._tick = tick
        return self

    def add(self, number: int, partials: Iterable[Partial]) -> None:
        """Readings of our own, at the tick that is being folded."""
        for partial in partials:
            self._add(number, partial, frozenset({(self._site, self._tick)}))

    def knows(self, frame: Frame) -> bool:
        return frame.identity in self._known

    def remember(self, frame: Frame) -> None:
        self._known.append(frame.identity)

    def merge(self, frame: Frame) -> bool:
        """Take the partials of a child, or drop those of a fold that has ended; False if we know of none like them."""
        number = frame.payload[0] if frame.payload else None
        table = self._memory.table(number)
        if table is None:
            return number in self._ended  # who made it has not been told yet
        self.remember(frame)
        parts = self._provenance.take(frame)
        for partial in decode_partials(frame.payload, table.shape, frame.mote):
            self._add(table.number, partial, parts[_place(table.number, partial)])
        return True

    def _add(self, number: int, partial: Partial, readings: frozenset[Reading]) -> None:
        place = _place(number, partial)
        self._within[place] = self._within.get(place, frozenset()) | readings
        self._memory.add(number, [partial])

    def take(self, tick: int) -> list[tuple[bytes, dict[Place, frozenset[Reading]]]]:
        """Payloads with the partials of slices that are over at a tick, and what is in each of them."""
        by_table: dict[int, list[Partial]] = {}
        for number, partial in self._memory.take(tick):
            by_table.setdefault(number, []).append(partial)
        found = []
        for number, partials in sorted(by_table.items()):
            shape = self._memory.table(number).shape
            for payload in encode_partials(shape, partials):
                places = [_place(number, partial) for partial in decode_partials(payload, shape, self._site)]
                # A group that had to go early for want of room may come back: its readings count with the first.
                found.append((payload, {place: self._within.pop(place, frozenset()) for place in places}))
        return found


def _place(number: int, partial: Partial) -> Place:
    return number, partial.slice, partial.bare, partial.group
