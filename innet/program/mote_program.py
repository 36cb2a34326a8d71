"""MoteProgram: the code that a mote runs for one sampling, its verification and its disassembly."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from innet.errors import ProgramError
from innet.operators.slices import SlicePattern
from innet.partials import PartialShape
from innet.program.opcodes import (
    BY_NAME,
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

_SLOT_AT = 4
"""The byte of a TABLE at which its slot begins: behind the opcode, the number and the number of slots."""


@dataclass(frozen=True, slots=True)
class PartialTable:
    """A table of partials as a mote declares it, without names and without the list of sites."""

    number: int
    slots: int  # the number of sites that may contribute
    slot: int | None  # its own bit among them; None if it only merges
    keys: int  # of a group
    room: int  # groups of all slices together
    slices: SlicePattern
    kinds: tuple[str, ...]

    @property
    def shape(self) -> PartialShape:
        """The layout of its partials, with slots in place of sites."""
        return PartialShape(self.number, tuple(range(self.slots)), self.keys, self.kinds, self.slices)


@dataclass(frozen=True, slots=True)
class MoteProgram:
    """The program of a site for one sampling. The constructor verifies the code, so every program can run."""

    site: int
    sampling: int
    version: int
    channels: int
    code: bytes
    tables: tuple[PartialTable, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        verify(self.code, self.channels)
        object.__setattr__(self, "tables", _tables(self.code))

    def at_site(self, site: int, version: int, slots: Sequence[int]) -> "MoteProgram":
        """Return the program of another site that computes the same; `slots` has its slot in each table.

        Nothing else of the code differs, so it is not verified again. ProgramError for a slot that a table does not have.
        """
        code, tables, at = bytearray(self.code), [], 0
        for table, slot in zip(self.tables, slots, strict=True):
            _check_slot(slot, table.slots, at)
            code[at + _SLOT_AT : at + _SLOT_AT + 2] = slot.to_bytes(2, "little")
            tables.append(replace(table, slot=None if slot == NO_SLOT else slot))
            at += BY_NAME["TABLE"].length + BY_NAME["KEEP"].length * len(table.kinds)
        program = object.__new__(MoteProgram)
        values = site, self.sampling, version, self.channels, bytes(code), tuple(tables)
        for name, value in zip(_FIELDS, values, strict=True):
            object.__setattr__(program, name, value)
        return program

    @property
    def body(self) -> bytes:
        """The code after the declarations, equal at all sites that compute the same."""
        return next(
            (self.code[at:] for at, opcode, _ in decode_instructions(self.code) if opcode.name not in DECLARING), b""
        )

    @property
    def sends(self) -> bool:
        """Whether it ever sends a reading; otherwise it only folds."""
        return any(opcode.name == "SEND" for _, opcode, _ in decode_instructions(self.code))

    @property
    def peers(self) -> frozenset[int]:
        """The numbers of other samplings that it reads."""
        return frozenset(
            operands[0] for _, opcode, operands in decode_instructions(self.code) if opcode.name in ("PEER", "HERE")
        )

    def disassemble(self) -> str:
        """Return one line per instruction: `byte  bytes  instruction`."""
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


_FIELDS = tuple(field.name for field in fields(MoteProgram))


def decode_instructions(code: bytes) -> Iterator[tuple[int, Opcode, tuple[int, ...]]]:
    """Yield (byte, opcode, operands) of each instruction. ProgramError at a byte that is no instruction."""
    at = 0
    while at < len(code):
        if (opcode := BY_NUMBER.get(code[at])) is None:
            raise ProgramError(f"unknown instruction {code[at]:#04x}", at)
        operands, begin = [], at + 1
        for operand in opcode.operands:
            if begin + operand.bytes > len(code):
                raise ProgramError(f"{opcode.name} ends before its {operand.name}", at)
            operands.append(int.from_bytes(code[begin : begin + operand.bytes], "little", signed=operand.signed))
            begin += operand.bytes
        yield at, opcode, tuple(operands)
        at = begin


def verify(code: bytes, channels: int) -> None:
    """Verify a program: length, one HALT at the end, operands in range, stack within bounds. ProgramError otherwise.

    Motes verify the same before they run a program from the air.
    """
    if len(code) > MAX_CODE:
        raise ProgramError(f"expected at most {MAX_CODE} bytes, found {len(code)}")
    walk = _Verifier(channels)
    for at, opcode, operands in decode_instructions(code):
        walk.step(at, opcode, operands)
    if walk.halted_at != len(code) - 1 or not code:
        raise ProgramError("expected HALT at the end")
    if unmet := walk.targets - walk.places:
        raise ProgramError(f"SKIP leads to byte {min(unmet)}, where no instruction begins")
    _tables(code)


class _Verifier:
    """The state of a verification, instruction by instruction."""

    def __init__(self, channels: int) -> None:
        self.channels = channels
        self.depth, self.keys, self.halted_at = 0, 0, -1
        self.declaring = True
        self.tables: dict[int, list[int]] = {}  # by number: [keys, states]
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
            raise ProgramError(f"{name} needs {opcode.pops} values on the stack, found {self.depth}", at)
        if at in self.targets:
            self._land(at)
        self.depth += opcode.pushes - opcode.pops
        if self.depth > STACK_DEPTH:
            raise ProgramError(f"more than {STACK_DEPTH} values on the stack", at)
        if name in DECLARING and not self.declaring:
            raise ProgramError(f"{name} after the declarations", at)
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
        self.entered = None  # a jump may have passed the ENTER

    def _names(self, at: int, name: str, operands: tuple[int, ...]) -> None:
        match name:
            case "LOAD" | "OUT" if operands[0] >= self.channels:
                raise ProgramError(f"unknown channel {operands[0]}; the sampling has {self.channels}", at)
            case "STORE" | "FETCH" if operands[0] >= CELLS:
                raise ProgramError(f"unknown cell {operands[0]}; a mote has {CELLS}", at)
            case "EVERY" | "WITHIN" if operands[0] == 0:
                raise ProgramError("expected a period of at least one tick, found 0", at)
            case "TABLE":
                if operands[0] in self.tables:
                    raise ProgramError(f"table {operands[0]} is declared twice", at)
                self.tables[operands[0]] = [operands[3], 0]
            case "KEEP":
                if not self.tables or operands[0] not in list(StateKind):
                    raise ProgramError(f"KEEP needs a table before it and a known kind, found kind {operands[0]}", at)
                self.tables[next(reversed(self.tables))][1] += 1
            case "MARK" | "ENTER" if operands[0] not in self.tables:
                raise ProgramError(f"unknown table {operands[0]}", at)
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
                    raise ProgramError(f"FOLD needs an entered group with a state {operands[0]}", at)


def _check_slot(slot: int, slots: int, at: int) -> None:
    if slot >= slots and slot != NO_SLOT:
        raise ProgramError(f"expected a slot below {slots}, found {slot}", at)


def _tables(code: bytes) -> tuple[PartialTable, ...]:
    found: list[PartialTable] = []
    kinds: list[list[str]] = []
    for at, opcode, operands in decode_instructions(code):
        if opcode.name == "TABLE":
            number, slots, slot, keys, room, *cuts = operands
            try:
                slices = SlicePattern(*cuts)
            except ValueError as error:
                raise ProgramError(str(error), at) from error
            if room == 0 or keys > MAX_KEYS:
                raise ProgramError(
                    f"expected room and at most {MAX_KEYS} keys, found a table of {room} groups of {keys} keys", at
                )
            _check_slot(slot, slots, at)
            found.append(PartialTable(number, slots, None if slot == NO_SLOT else slot, keys, room, slices, ()))
            kinds.append([])
        elif opcode.name == "KEEP":
            kinds[-1].append(StateKind(operands[0]).name)
        else:
            break
    return tuple(replace(table, kinds=tuple(kept)) for table, kept in zip(found, kinds, strict=True))
