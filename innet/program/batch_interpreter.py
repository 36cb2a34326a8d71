"""The batch interpreter: runs a program for many motes and ticks in one pass over the code, on columns instead of values.

Its results equal those of `innet.program.interpreter`; the tests hold both together. A jump takes some rows along and not
others, so an instruction affects active rows only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from acquisition.arrays import IntArray
from innet.operators.column_evaluation import BINARY, UNARY, Mask, ValueColumn, choose_values
from innet.program.mote_program import MoteProgram, decode_instructions
from innet.program.opcodes import CELLS, DECLARING


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """Samples, one row per mote and tick. `values` has a column per channel. `peers` has, by sampling number, which rows have a
    sample of it, and its columns.
    """

    site: IntArray
    tick: IntArray
    values: Sequence[ValueColumn]
    peers: Mapping[int, tuple[Mask, Sequence[ValueColumn]]] = field(default_factory=dict)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.site)


@dataclass(slots=True)
class TableColumns:
    """The rows in one table: those that belong to it (`marked`), those in a group (`entered`), and the keys of the groups.

    `folds` has (place, rows, values) in the order of the FOLD instructions.
    """

    marked: Mask
    entered: Mask
    keys: tuple[ValueColumn, ...] = ()
    folds: list[tuple[int, Mask, ValueColumn]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ProgramOutcomes:
    """The results of many runs: the readings by channel, which rows are `sent`, and which are `due`; due and not sent is filtered."""

    reading: tuple[ValueColumn, ...]
    sent: Mask
    due: Mask
    tables: Mapping[int, TableColumns]


def run_batch(program: MoteProgram, columns: SampleColumns) -> ProgramOutcomes:
    """Run a program for every row. Motes whose programs have the same body can run together."""
    state = _Run(program, columns)
    for at, opcode, operands in decode_instructions(program.code):
        if opcode.name in DECLARING:
            continue
        state.land(at)
        if opcode.name == "HALT":
            break
        if opcode.name == "SKIP":
            state.skip(at + opcode.length + operands[0])
        else:
            state.step(opcode.name, operands)
    return ProgramOutcomes(tuple(state.reading), state.sent, state.due, state.tables)


class _Run:
    """The state of a run. `active` are the rows that reach the current instruction."""

    def __init__(self, program: MoteProgram, columns: SampleColumns) -> None:
        self.columns, self.n = columns, len(columns)
        self.active = np.ones(self.n, bool)
        self.waiting: dict[int, Mask] = {}
        self.stack: list[ValueColumn] = []
        self.cells = [self.constant(None)] * CELLS
        self.reading = [self.constant(None)] * program.channels
        self.sent, self.due = self.no_rows(), self.no_rows()
        self.tables = {table.number: TableColumns(self.no_rows(), self.no_rows()) for table in program.tables}
        self.keys: list[ValueColumn] = []
        self.entered = 0

    def no_rows(self) -> Mask:
        """Return a mask without rows."""
        return np.zeros(self.n, bool)

    def constant(self, value: int | None) -> ValueColumn:
        """Return a column with one value."""
        return ValueColumn.constant(value, self.n)

    def land(self, at: int) -> None:
        """Activate the rows that jumped to this byte."""
        if at in self.waiting:
            self.active = self.active | self.waiting.pop(at)

    def skip(self, target: int) -> None:
        """Pop a truth value; rows for which it is not true continue at `target`."""
        truth = self.stack.pop()
        stays = self.active & truth.is_true
        jumped = self.active & ~stays
        self.waiting[target] = jumped | self.waiting[target] if target in self.waiting else jumped
        self.active = stays

    def step(self, name: str, operands: tuple[int, ...]) -> None:
        """Run one instruction."""
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
        if sampling not in self.columns.peers or channel >= len(self.columns.peers[sampling][1]):
            self.stack.append(self.constant(None))
        else:
            here, values = self.columns.peers[sampling]
            self.stack.append(ValueColumn.of(values[channel].values, values[channel].valid & here))

    def _here(self, sampling: int) -> None:
        here = self.columns.peers.get(sampling, (self.no_rows(), ()))[0]
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
        column = self.stack.pop()
        self.tables[self.entered].folds.append((place, self.active & column.valid, column))
