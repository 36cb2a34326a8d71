"""MoteProgram: the code that one mote runs for one sampling; its rules and its disassembly."""

from collections.abc import Iterator
from dataclasses import dataclass

from innet.errors import ProgramError
from innet.program.opcodes import BY_NUMBER, MAX_CODE, STACK_DEPTH, Opcode


@dataclass(frozen=True, slots=True)
class MoteProgram:
    """Checked when it is made, so whoever holds one can run it: see `check`."""

    site: int
    sampling: int
    version: int
    channels: int
    code: bytes

    def __post_init__(self) -> None:
        check(self.code, self.channels)

    def disassembly(self) -> str:
        """One instruction per line: `byte  bytes  instruction`."""
        lines = []
        for at, opcode, operands in instructions(self.code):
            digits = self.code[at : at + 1 + len(operands)].hex()
            words = " ".join((opcode.name, *(str(operand) for operand in operands)))
            lines.append(f"{at:02}  {digits:<6}  {words}")
        return "\n".join(lines)


def instructions(code: bytes) -> Iterator[tuple[int, Opcode, bytes]]:
    """Each instruction with its place and its operands; ProgramError where there is none."""
    at = 0
    while at < len(code):
        if (opcode := BY_NUMBER.get(code[at])) is None:
            raise ProgramError(f"there is no instruction {code[at]:#04x}", at)
        operands = code[at + 1 : at + 1 + len(opcode.operands)]
        if len(operands) < len(opcode.operands):
            raise ProgramError(f"{opcode.name} ends before its {opcode.operands[len(operands)]}", at)
        yield at, opcode, operands
        at += 1 + len(operands)


def check(code: bytes, channels: int) -> None:
    """A program is short, ends with its only HALT, names channels that exist, and its stack stays in bounds.

    Motes check the same before they run what came over the air.
    """
    if len(code) > MAX_CODE:
        raise ProgramError(f"{len(code)} bytes are more than a program's {MAX_CODE}")
    depth, halted = 0, False
    for at, opcode, operands in instructions(code):
        if halted:
            raise ProgramError("code after HALT", at)
        if depth < opcode.pops:
            raise ProgramError(f"{opcode.name} needs {opcode.pops} values, {depth} are there", at)
        depth += opcode.pushes - opcode.pops
        if depth > STACK_DEPTH:
            raise ProgramError(f"more than {STACK_DEPTH} values on the stack", at)
        if "channel" in opcode.operands and operands[opcode.operands.index("channel")] >= channels:
            raise ProgramError(f"there is no channel {operands[0]} among {channels}", at)
        halted = opcode.name == "HALT"
    if not halted:
        raise ProgramError("a program ends with HALT")
