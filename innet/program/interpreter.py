"""The meaning of a program: what the C interpreter of the firmware is tested against, and what simulated motes run."""

from collections.abc import Sequence

from innet.program.program import MoteProgram, instructions

Value = int | None


def run(program: MoteProgram, sampled: Sequence[Value]) -> tuple[Value, ...]:
    """One epoch: the values sampled -> the values to send, channel by channel; null where nothing was put out."""
    stack: list[Value] = []
    reading: list[Value] = [None] * program.channels
    for _, opcode, operands in instructions(program.code):
        match opcode.name:
            case "LOAD":
                stack.append(sampled[operands[0]])
            case "OUT":
                reading[operands[0]] = stack.pop()
            case "HALT":
                break
            case name:
                raise AssertionError(f"{name} is in the table and has no meaning")
    return tuple(reading)
