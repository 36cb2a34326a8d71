"""TableMemory: the partials that a mote keeps until their slice ends, its own and those of its children."""

from collections.abc import Iterable, Sequence

from innet.partials import Key, Partial, merge_partials
from innet.program.mote_program import MoteProgram, PartialTable


class TableMemory:
    """The tables of all programs of one mote. A reboot loses them."""

    def __init__(self) -> None:
        self._tables: dict[int, PartialTable] = {}
        self._held: dict[int, dict[tuple[int, bool, Key], Partial]] = {}
        self._full: list[tuple[int, Partial]] = []

    def install(self, programs: Iterable[MoteProgram]) -> int:
        """Replace the programs. Tables that stay the same keep their partials.

        Returns the number of readings in tables that changed or went: their partials would be meaningless.
        """
        tables = {table.number: table for program in programs for table in program.tables}
        changed = {number for number, table in self._tables.items() if tables.get(number) != table}
        dropped = [partial for number in changed for partial in self._held.pop(number, {}).values()]
        dropped += [partial for number, partial in self._full if number in changed]
        self._full = [(number, partial) for number, partial in self._full if number not in changed]
        self._tables = tables
        return sum(partial.readings for partial in dropped)

    def table(self, number: int) -> PartialTable | None:
        """Return the table with that number, or None."""
        return self._tables.get(number)

    def add(self, number: int, partials: Iterable[Partial]) -> list[Partial]:
        """Merge partials into a table, own or received. Return those that a full table sends early: the oldest groups."""
        early = []
        table = self._tables[number]
        held, shape = self._held.setdefault(number, {}), table.shape
        for partial in partials:
            place = partial.slice, partial.bare, partial.group
            if place in held:
                held[place] = merge_partials(held[place], partial, table.kinds, shape.has_bitmap)
                continue
            if len(held) >= table.room:
                early.append(held.pop(min(held, key=lambda place: place[0])))
            held[place] = partial
        self._full += [(number, partial) for partial in early]
        return early

    def take(self, tick: int) -> list[tuple[int, Partial]]:
        """Remove and return (table, partial) for slices that ended by `tick`, and for partials that go early."""
        taken, self._full = self._full, []
        for number, held in self._held.items():
            slices = self._tables[number].slices
            over = [place for place in held if slices.end(place[0]) <= tick]
            taken += [(number, held.pop(place)) for place in sorted(over, key=lambda place: place[0])]
        return taken

    def __len__(self) -> int:
        """The number of partials."""
        return len(self._full) + sum(len(held) for held in self._held.values())


def state_bytes(table: PartialTable) -> int:
    """Return the RAM in bytes that a table needs on a mote."""
    return table.room * table.shape.group_bytes


def total_bytes(tables: Sequence[PartialTable]) -> int:
    """Return the RAM in bytes that tables need."""
    return sum(map(state_bytes, tables))
