"""The instruction set of motes, in one table.

From it are made `firmware_stubs/core/opcodes.h` and `docs/opcodes.md` (`python -m innet.program.opcodes` writes both
below the current folder), the disassembler and the checker. The meaning is `innet/program/interpreter.py`.

The machine has a stack of values. A value is a 32-bit integer or null. A program runs once per epoch of a sampling,
over the values just sampled, and leaves by HALT; it can neither loop nor run out of its own bytes.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

STACK_DEPTH = 8
MAX_CODE = 64
HEADER_FILE, PAGE_FILE = "firmware_stubs/core/opcodes.h", "docs/opcodes.md"


@dataclass(frozen=True, slots=True)
class Opcode:
    """One instruction: one byte, then its operands of one byte each."""

    name: str
    number: int
    operands: tuple[str, ...]
    pops: int
    pushes: int
    meaning: str


TABLE = (
    Opcode("HALT", 0x00, (), 0, 0, "The end; the reading is sent."),
    Opcode("LOAD", 0x01, ("channel",), 0, 1, "Push the value sampled on `channel`; null if the sensor gave none."),
    Opcode("OUT", 0x02, ("channel",), 1, 0, "Pop a value and put it into the reading, in the place of `channel`."),
)
BY_NUMBER = {opcode.number: opcode for opcode in TABLE}
BY_NAME = {opcode.name: opcode for opcode in TABLE}


def header() -> str:
    """The table as a C header."""
    lines = [
        "/* Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. */",
        "#ifndef MOTELOOM_OPCODES_H",
        "#define MOTELOOM_OPCODES_H",
        "",
        f"#define ML_STACK_DEPTH {STACK_DEPTH}",
        f"#define ML_MAX_CODE {MAX_CODE}",
        "",
    ]
    for opcode in TABLE:
        lines.append(f"#define ML_OP_{opcode.name} 0x{opcode.number:02x}u /* {opcode.meaning} */")
    lines += ["", "/* X(name, number, operand bytes, values popped, values pushed) */", "#define ML_OPCODES(X) \\"]
    rows = [f"    X({o.name}, 0x{o.number:02x}u, {len(o.operands)}, {o.pops}, {o.pushes})" for o in TABLE]
    return "\n".join([*lines, " \\\n".join(rows), "", "#endif", ""])


def page() -> str:
    """The table as a page of the documentation."""
    lines = [
        "<!-- Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. -->",
        "# What a mote program consists of",
        "",
        f"A program has at most {MAX_CODE} bytes and needs at most {STACK_DEPTH} places on the stack. A value is a 32-bit",
        "integer or null. The program runs once per epoch over the values just sampled.",
        "",
        "| byte | instruction | stack | meaning |",
        "|---|---|---|---|",
    ]
    for opcode in TABLE:
        written = " ".join((opcode.name, *opcode.operands))
        lines.append(f"| `{opcode.number:02x}` | `{written}` | -{opcode.pops} +{opcode.pushes} | {opcode.meaning} |")
    return "\n".join([*lines, ""])


def generated() -> dict[str, str]:
    """Every file that is made from the table, by its path in the repository."""
    return {HEADER_FILE: header(), PAGE_FILE: page()}


def write(root: Path) -> None:
    for path, content in generated().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(f"wrote {target}", file=sys.stderr)


if __name__ == "__main__":
    write(Path.cwd())
