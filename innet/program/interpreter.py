"""The reference interpreter: one mote, one tick, one value at a time. Slow and clear.

The C interpreter of the firmware is tested against it, and simulated motes run it. `innet.program.batch_interpreter` does
the same for many motes and ticks at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from innet.aggregates.state_fields import EMPTY_FIELDS, Fields, make_fields, merge_fields
from innet.operators.scalar_evaluation import BINARY, UNARY, Value, choose_value
from innet.partials import Key, Partial
from innet.program.mote_program import MoteProgram, PartialTable, decode_instructions
from innet.program.opcodes import CELLS, DECLARING


@dataclass(frozen=True, slots=True)
class TickSample:
    """The samples of a mote at one tick: `values` of the program's own sampling, by channel, and `peers` of its other samplings
    that are due, by sampling number.
    """

    tick: int
    values: Sequence[Value]
    peers: Mapping[int, Sequence[Value]] = field(default_factory=dict)


class PartialSink(Protocol):
    """The tables that a program folds into, such as a `TableMemory`."""

    def add(self, number: int, partials: Iterable[Partial], /) -> object:
        """Merge partials into the table of that number."""


@dataclass(frozen=True, slots=True)
class ProgramOutcome:
    """The result of one run. `reading` is the reading to send, by channel, or None. A reading that `is_due` and is not sent was
    filtered.
    """

    reading: tuple[Value, ...] | None
    is_due: bool

    @property
    def filtered(self) -> bool:
        """Whether a reading was due and is not sent."""
        return self.is_due and self.reading is None


def run(program: MoteProgram, sampled: TickSample, memory: PartialSink) -> ProgramOutcome:
    """Run a program at one tick. The memory takes the partials that it folds."""
    frame = _Frame(program, sampled)
    skipped_to = 0
    for at, opcode, operands in decode_instructions(program.code):
        if at < skipped_to or opcode.name in DECLARING:
            continue
        if opcode.name == "HALT":
            break
        if opcode.name == "SKIP":
            if frame.stack.pop() != 1:
                skipped_to = at + opcode.length + operands[0]
            continue
        frame.step(opcode.name, operands)
    for number, partial in frame.partials():
        memory.add(number, [partial])
    return ProgramOutcome(tuple(frame.reading) if frame.sent else None, frame.is_due)


class _Frame:
    """The state of one run of a program: its stack, the reading so far, and the partials to fold."""

    def __init__(self, program: MoteProgram, sampled: TickSample) -> None:
        self.site, self.sampled = program.site, sampled
        self.tables = {table.number: table for table in program.tables}
        self.stack: list[Value] = []
        self.cells: list[Value] = [None] * CELLS
        self.reading: list[Value] = [None] * program.channels
        self.is_due = self.sent = False
        self.marked: list[int] = []
        self.keys: list[Value] = []
        self.groups: dict[int, tuple[Key, list[Fields]]] = {}
        self.entered: PartialTable | None = None

    def step(self, name: str, operands: tuple[int, ...]) -> None:
        if name in UNARY:
            self.stack.append(UNARY[name](self.stack.pop()))
        elif name in BINARY:
            right, left = self.stack.pop(), self.stack.pop()
            self.stack.append(BINARY[name](left, right))
        else:
            getattr(self, f"_{name.lower()}")(*operands)

    def partials(self) -> list[tuple[int, Partial]]:
        """Return (table, partial) for each table that the reading belongs to."""
        made = []
        for number in {**dict.fromkeys(self.marked), **self.groups}:
            table = self.tables[number]
            key, states = self.groups.get(number, ((), None))
            contributors = 0 if table.slot is None else 1 << table.slot if table.shape.has_bitmap else 1
            slice_number = table.slices.number(self.sampled.tick)
            made.append(
                (number, Partial(slice_number, contributors, 1, key, None if states is None else tuple(states)))
            )
        return made

    # --- values ------------------------------------------------------------------------------------------------------

    def _load(self, channel: int) -> None:
        self.stack.append(self.sampled.values[channel])

    def _peer(self, sampling: int, channel: int) -> None:
        values = self.sampled.peers.get(sampling, ())
        self.stack.append(values[channel] if channel < len(values) else None)

    def _here(self, sampling: int) -> None:
        self.stack.append(int(sampling in self.sampled.peers))

    def _every(self, ticks: int) -> None:
        self.stack.append(int(self.sampled.tick % ticks == 0))

    def _within(self, period: int, edge: int, ticks: int) -> None:
        self.stack.append(int((self.sampled.tick - edge) % period < ticks))

    def _site(self) -> None:
        self.stack.append(self.site)

    def _null(self) -> None:
        self.stack.append(None)

    def _lit8(self, value: int) -> None:
        self.stack.append(value)

    _lit16 = _lit32 = _lit8

    def _store(self, cell: int) -> None:
        self.cells[cell] = self.stack.pop()

    def _fetch(self, cell: int) -> None:
        self.stack.append(self.cells[cell])

    def _pick(self) -> None:
        otherwise, value, truth = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.stack.append(choose_value(truth, value, otherwise))

    # --- readings ----------------------------------------------------------------------------------------------------

    def _want(self) -> None:
        self.is_due = True

    def _out(self, channel: int) -> None:
        self.reading[channel] = self.stack.pop()

    def _send(self) -> None:
        self.sent = True

    # --- tables ------------------------------------------------------------------------------------------------------

    def _mark(self, table: int) -> None:
        self.marked.append(table)

    def _key(self) -> None:
        self.keys.append(self.stack.pop())

    def _enter(self, table: int) -> None:
        self.entered = self.tables[table]
        self.groups[table] = tuple(self.keys), [EMPTY_FIELDS[kind] for kind in self.entered.kinds]
        self.keys = []

    def _fold(self, place: int) -> None:
        value, table = self.stack.pop(), self.entered
        if value is not None and table is not None:
            kind, states = table.kinds[place], self.groups[table.number][1]
            states[place] = merge_fields(kind, states[place], make_fields(kind, value, self.sampled.tick, self.site))
