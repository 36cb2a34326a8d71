"""The meaning of a program once more, for many motes and ticks at once: one pass over the code, columns instead of values.

What it gives for each of them is what `innet.program.interpreter` gives; the tests hold them together. A jump takes
some of the motes along and not the others, so an instruction counts for those only that come by.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from innet.operators.column_evaluation import BINARY, UNARY, Mask, ValueColumn, choose_values
from innet.program.mote_program import MoteProgram, decode_instructions
from innet.program.opcodes import CELLS, DECLARING


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """What was measured, by whom and when. A peer is due (the mask) or not, and has lanes of its own."""

    site: np.ndarray
    tick: np.ndarray
    values: Sequence[ValueColumn]
    peers: Mapping[int, tuple[Mask, Sequence[ValueColumn]]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.site)


@dataclass(slots=True)
class TableColumns:
    """What became of the readings in one table: which belong to it, which of them are in a group and in which one.

    `folds` are (place, which, what) in the order in which they were folded.
    """

    marked: Mask
    entered: Mask
    keys: tuple[ValueColumn, ...] = ()
    folds: list[tuple[int, Mask, ValueColumn]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProgramOutcomes:
    """By channel what is to be sent, and of which; `wanted` without `sent` was filtered."""

    reading: tuple[ValueColumn, ...]
    sent: Mask
    due: Mask
    tables: Mapping[int, TableColumns]


def run_batch(program: MoteProgram, columns: SampleColumns) -> ProgramOutcomes:
    """As if every mote ran the program at its tick. Motes whose programs have the same body can be run together."""
    lanes = _Lanes(program, columns)
    for at, opcode, operands in decode_instructions(program.code):
        if opcode.name in DECLARING:
            continue
        lanes.land(at)
        if opcode.name == "HALT":
            break
        if opcode.name == "SKIP":
            lanes.skip(at + opcode.length + operands[0])
        else:
            lanes.step(opcode.name, operands)
    return ProgramOutcomes(tuple(lanes.reading), lanes.sent, lanes.due, lanes.tables)


class _Lanes:
    """What the programs have at hand while they run. `active` are those that come by."""

    def __init__(self, program: MoteProgram, columns: SampleColumns) -> None:
        self.columns, self.n = columns, len(columns)
        self.active = np.ones(self.n, bool)
        self.waiting: dict[int, Mask] = {}
        self.stack: list[ValueColumn] = []
        self.cells = [self.constant(None)] * CELLS
        self.reading = [self.constant(None)] * program.channels
        self.sent, self.due = self.nobody(), self.nobody()
        self.tables = {table.number: TableColumns(self.nobody(), self.nobody()) for table in program.tables}
        self.keys: list[ValueColumn] = []
        self.entered = 0

    def nobody(self) -> Mask:
        return np.zeros(self.n, bool)

    def constant(self, value: int | None) -> ValueColumn:
        return ValueColumn.constant(value, self.n)

    def land(self, at: int) -> None:
        if at in self.waiting:
            self.active = self.active | self.waiting.pop(at)

    def skip(self, target: int) -> None:
        truth = self.stack.pop()
        goes_on = self.active & truth.is_true
        gone = self.active & ~goes_on
        self.waiting[target] = gone | self.waiting[target] if target in self.waiting else gone
        self.active = goes_on

    def step(self, name: str, operands: tuple[int, ...]) -> None:
        if name in UNARY:
            self.stack.append(UNARY[name](self.stack.pop()))
        elif name in BINARY:
            right, left = self.stack.pop(), self.stack.pop()
            self.stack.append(BINARY[name](left, right))
        else:
            getattr(self, f"_{name.lower()}")(*operands)

    # --- values ------------------------------------------------------------------------------------------------------

    def _load(self, channel: int) -> None:
        self.stack.append(self.columns.values[channel])

    def _peer(self, sampling: int, channel: int) -> None:
        here, values = self.columns.peers.get(sampling, (None, ()))
        if channel >= len(values):
            self.stack.append(self.constant(None))
        else:
            self.stack.append(ValueColumn.of(values[channel].values, values[channel].valid & here))

    def _here(self, sampling: int) -> None:
        here = self.columns.peers.get(sampling, (self.nobody(), ()))[0]
        self.stack.append(ValueColumn.truth(here))

    def _every(self, ticks: int) -> None:
        self.stack.append(ValueColumn.truth(self.columns.tick % ticks == 0))

    def _within(self, period: int, edge: int, ticks: int) -> None:
        self.stack.append(ValueColumn.truth((self.columns.tick - edge) % period < ticks))

    def _site(self) -> None:
        self.stack.append(ValueColumn(self.columns.site, np.ones(self.n, bool)))

    def _null(self) -> None:
        self.stack.append(self.constant(None))

    def _lit8(self, value: int) -> None:
        self.stack.append(self.constant(value))

    _lit16 = _lit32 = _lit8

    def _store(self, cell: int) -> None:
        self.cells[cell] = choose_values(self.active, self.stack.pop(), self.cells[cell])

    def _fetch(self, cell: int) -> None:
        self.stack.append(self.cells[cell])

    def _pick(self) -> None:
        otherwise, value, truth = self.stack.pop(), self.stack.pop(), self.stack.pop()
        self.stack.append(choose_values(truth.is_true, value, otherwise))

    # --- what goes out, and tables -----------------------------------------------------------------------------------

    def _want(self) -> None:
        self.due = self.due | self.active

    def _out(self, channel: int) -> None:
        self.reading[channel] = choose_values(self.active, self.stack.pop(), self.reading[channel])

    def _send(self) -> None:
        self.sent = self.sent | self.active

    def _mark(self, table: int) -> None:
        self.tables[table].marked = self.active

    def _key(self) -> None:
        self.keys.append(self.stack.pop())

    def _enter(self, table: int) -> None:
        self.entered = table
        self.tables[table].entered, self.tables[table].keys = self.active, tuple(self.keys)
        self.keys = []

    def _fold(self, place: int) -> None:
        lane = self.stack.pop()
        self.tables[self.entered].folds.append((place, self.active & lane.valid, lane))
