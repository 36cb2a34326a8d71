"""MoteProgram: the code that one mote runs for one sampling; its rules and its disassembly."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from innet.errors import ProgramError
from innet.operators.slices import SlicePattern
from innet.partials import PartialShape
from innet.program.opcodes import (
    BY_NUMBER,
    CELLS,
    DECLARING,
    MAX_CODE,
    MAX_KEYS,
    NO_SLOT,
    STACK_DEPTH,
    Opcode,
    StateKind,
)


@dataclass(frozen=True, slots=True)
class PartialTable:
    """A table of partial aggregates, as a mote knows it: it needs no names, and no list of who contributes."""

    number: int
    slots: int  # how many sites may contribute
    slot: int | None  # this one's bit among them; None: it merges only
    keys: int
    room: int  # groups, of all slices together, that it has memory for
    slices: SlicePattern
    kinds: tuple[str, ...]

    @property
    def shape(self) -> PartialShape:
        """How its partials are made; a mote knows the sites that contribute by their slots only."""
        return PartialShape(self.number, tuple(range(self.slots)), self.keys, self.kinds, self.slices)


@dataclass(frozen=True, slots=True)
class MoteProgram:
    """Checked when it is made, so whoever holds one can run it: see `check`."""

    site: int
    sampling: int
    version: int
    channels: int
    code: bytes
    tables: tuple[PartialTable, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        verify(self.code, self.channels)
        object.__setattr__(self, "tables", _tables(self.code))

    @property
    def body(self) -> bytes:
        """The code behind the declarations: it is the same at all sites that compute the same."""
        return next(
            (self.code[at:] for at, opcode, _ in decode_instructions(self.code) if opcode.name not in DECLARING), b""
        )

    @property
    def sends(self) -> bool:
        """Whether it ever sends a reading; the others go into tables only."""
        return any(opcode.name == "SEND" for _, opcode, _ in decode_instructions(self.code))

    @property
    def peers(self) -> frozenset[int]:
        """The other samplings that it looks at."""
        return frozenset(
            operands[0] for _, opcode, operands in decode_instructions(self.code) if opcode.name in ("PEER", "HERE")
        )

    def disassemble(self) -> str:
        """One instruction per line: `byte  bytes  instruction`."""
        lines = []
        for at, opcode, operands in decode_instructions(self.code):
            digits = self.code[at : at + opcode.length].hex()
            words = " ".join((opcode.name, *(str(operand) for operand in operands)))
            if opcode.name == "SKIP":
                words += f"  to {at + opcode.length + operands[0]:02}"
            if opcode.name == "KEEP":
                words += f"  {StateKind(operands[0]).name}"
            lines.append(f"{at:02}  {digits:<6}  {words}")
        return "\n".join(lines)


def decode_instructions(code: bytes) -> Iterator[tuple[int, Opcode, tuple[int, ...]]]:
    """Each instruction with its place and its operands; ProgramError where there is none."""
    at = 0
    while at < len(code):
        if (opcode := BY_NUMBER.get(code[at])) is None:
            raise ProgramError(f"there is no instruction {code[at]:#04x}", at)
        operands, begin = [], at + 1
        for operand in opcode.operands:
            if begin + operand.bytes > len(code):
                raise ProgramError(f"{opcode.name} ends before its {operand.name}", at)
            operands.append(int.from_bytes(code[begin : begin + operand.bytes], "little", signed=operand.signed))
            begin += operand.bytes
        yield at, opcode, tuple(operands)
        at = begin


def verify(code: bytes, channels: int) -> None:
    """A program is short, ends with its only HALT, names only what exists, and its stack stays in bounds.

    Motes check the same before they run what came over the air.
    """
    if len(code) > MAX_CODE:
        raise ProgramError(f"{len(code)} bytes are more than a program's {MAX_CODE}")
    walk = _Verifier(channels)
    for at, opcode, operands in decode_instructions(code):
        walk.step(at, opcode, operands)
    if walk.halted_at != len(code) - 1 or not code:
        raise ProgramError("a program ends with HALT")
    if unmet := walk.targets - walk.places:
        raise ProgramError(f"SKIP leads to byte {min(unmet)}, where no instruction begins")
    _tables(code)


class _Verifier:
    """What is known of a program while its instructions are looked at one after another."""

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.depth, self.keys, self.halted_at = 0, 0, -1
        self.declaring = True
        self.tables: dict[int, list[int]] = {}  # by number: its keys, and how many states it keeps
        self.entered: int | None = None
        self.used: set[tuple[str, int]] = set()
        self.targets: set[int] = set()
        self.places: set[int] = set()

    def step(self, at: int, opcode: Opcode, operands: tuple[int, ...]) -> None:
        name = opcode.name
        self.places.add(at)
        if self.halted_at >= 0:
            raise ProgramError("code after HALT", at)
        if self.depth < opcode.pops:
            raise ProgramError(f"{name} needs {opcode.pops} values, {self.depth} are there", at)
        if at in self.targets:
            self._land(at)
        self.depth += opcode.pushes - opcode.pops
        if self.depth > STACK_DEPTH:
            raise ProgramError(f"more than {STACK_DEPTH} values on the stack", at)
        if name in DECLARING and not self.declaring:
            raise ProgramError(f"{name} behind the declarations", at)
        self.declaring = name in DECLARING
        self._names(at, name, operands)
        if name == "HALT":
            self.halted_at = at
        if name == "SKIP":
            if self.depth or self.keys:
                raise ProgramError("SKIP with values left on the stack", at)
            self.targets.add(at + opcode.length + operands[0])

    def _land(self, at: int) -> None:
        if self.depth or self.keys:
            raise ProgramError("a SKIP leads to where values are on the stack", at)
        self.entered = None  # who came here by a jump has entered nothing

    def _names(self, at: int, name: str, operands: tuple[int, ...]) -> None:
        match name:
            case "LOAD" | "OUT" if operands[0] >= self.channels:
                raise ProgramError(f"there is no channel {operands[0]} among {self.channels}", at)
            case "STORE" | "FETCH" if operands[0] >= CELLS:
                raise ProgramError(f"there is no cell {operands[0]} among {CELLS}", at)
            case "EVERY" | "WITHIN" if operands[0] == 0:
                raise ProgramError("a period of 0 ticks", at)
            case "TABLE":
                if operands[0] in self.tables:
                    raise ProgramError(f"there are two tables {operands[0]}", at)
                self.tables[operands[0]] = [operands[3], 0]
            case "KEEP":
                if not self.tables or operands[0] not in list(StateKind):
                    raise ProgramError(f"no table can keep a state of kind {operands[0]} here", at)
                self.tables[next(reversed(self.tables))][1] += 1
            case "MARK" | "ENTER" if operands[0] not in self.tables:
                raise ProgramError(f"there is no table {operands[0]}", at)
            case "MARK" | "ENTER" if (name, operands[0]) in self.used:
                raise ProgramError(f"{name} of table {operands[0]} a second time", at)
            case "KEY":
                self.keys += 1
                if self.keys > MAX_KEYS:
                    raise ProgramError(f"more than {MAX_KEYS} keys", at)
            case "ENTER":
                if self.keys != self.tables[operands[0]][0]:
                    raise ProgramError(f"table {operands[0]} has {self.tables[operands[0]][0]} keys", at)
                self.keys, self.entered = 0, operands[0]
                self.used.add((name, operands[0]))
            case "MARK":
                self.used.add((name, operands[0]))
            case "FOLD":
                if self.entered is None or operands[0] >= self.tables[self.entered][1]:
                    raise ProgramError(f"there is no place {operands[0]} to fold into", at)


def _tables(code: bytes) -> tuple[PartialTable, ...]:
    found: list[list] = []
    for at, opcode, operands in decode_instructions(code):
        if opcode.name == "TABLE":
            number, slots, slot, keys, room, *cuts = operands
            try:
                slices = SlicePattern(*cuts)
            except ValueError as error:
                raise ProgramError(str(error), at) from error
            if room == 0 or keys > MAX_KEYS:
                raise ProgramError(f"a table with room for {room} groups of {keys} keys", at)
            if slot >= slots and slot != NO_SLOT:
                raise ProgramError(f"slot {slot} of {slots}", at)
            found.append([number, slots, None if slot == NO_SLOT else slot, keys, room, slices, []])
        elif opcode.name == "KEEP":
            found[-1][-1].append(StateKind(operands[0]).name)
        else:
            break
    return tuple(PartialTable(*told[:-1], tuple(told[-1])) for told in found)
