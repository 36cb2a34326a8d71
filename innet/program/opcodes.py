"""The instruction set of motes, in one table.

`python -m innet.program.opcodes` generates `firmware_stubs/core/opcodes.h` and `docs/opcodes.md` from it, below the current
folder; disassembler and verifier use it too. `innet/program/interpreter.py` defines the meaning.

The machine has a stack of values. A value is a 32-bit integer or null; a truth value is 1, 0 or null for unknown. A program
runs once per epoch of a sampling, on the values just sampled, and ends with HALT. It jumps forwards only, so it cannot
loop, nor run past its end.
"""

import sys
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from innet.aggregates import mote_layout

STACK_DEPTH = 8
CELLS = 8
MAX_KEYS = 4
MAX_CODE = 1024
HEADER_FILE, PAGE_FILE = "firmware_stubs/core/opcodes.h", "docs/opcodes.md"


class Operand(NamedTuple):
    """A number behind an instruction, little-endian, in so many bytes."""

    name: str
    bytes: int = 1
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Opcode:
    """One instruction: one byte, then its operands."""

    name: str
    number: int
    operands: tuple[Operand, ...]
    pops: int
    pushes: int
    meaning: str

    @property
    def length(self) -> int:
        """Bytes of the instruction with its operands."""
        return 1 + sum(operand.bytes for operand in self.operands)


class StateKind(IntEnum):
    """The aggregates whose states a table can keep; the operand of KEEP."""

    COUNT = 0
    SUM = 1
    VARIANCE = 2
    MIN = 3
    MAX = 4
    FIRST = 5
    LAST = 6


def _one(name: str, number: int, meaning: str) -> Opcode:
    return Opcode(name, number, (), 1, 1, meaning)


def _two(name: str, number: int, meaning: str) -> Opcode:
    return Opcode(name, number, (), 2, 1, meaning)


_CHANNEL, _TABLE = Operand("channel"), Operand("table")
_EDGES = (Operand("period", 4), Operand("edge", 4), Operand("other", 4))

OPCODES = (
    Opcode("HALT", 0x00, (), 0, 0, "The end."),
    Opcode("LOAD", 0x01, (_CHANNEL,), 0, 1, "Push the value sampled on `channel`; null if the sensor gave none."),
    Opcode("OUT", 0x02, (_CHANNEL,), 1, 0, "Pop a value and put it into the reading, in the place of `channel`."),
    Opcode("WANT", 0x03, (), 0, 0, "A reading is due at this tick; unless SEND follows, it was filtered."),
    Opcode("SEND", 0x04, (), 0, 0, "The reading is sent."),
    Opcode("PEER", 0x05, (Operand("sampling"), _CHANNEL), 0, 1, "Push the value of another sampling at this tick."),
    Opcode("HERE", 0x06, (Operand("sampling"),), 0, 1, "Push whether another sampling is due at this tick, too."),
    Opcode("EVERY", 0x07, (Operand("ticks", 4),), 0, 1, "Push whether this tick is a multiple of `ticks`."),
    Opcode("WITHIN", 0x0F, (Operand("period", 4), Operand("edge", 4), Operand("ticks", 4)), 0, 1,
           "Push whether this tick is less than `ticks` behind the last tick that is at `edge` of a `period`."),
    Opcode("SITE", 0x08, (), 0, 1, "Push the number of this mote."),
    Opcode("NULL", 0x09, (), 0, 1, "Push null, or unknown."),
    Opcode("LIT8", 0x0A, (Operand("value", 1, True),), 0, 1, "Push a number."),
    Opcode("LIT16", 0x0B, (Operand("value", 2, True),), 0, 1, "Push a number."),
    Opcode("LIT32", 0x0C, (Operand("value", 4, True),), 0, 1, "Push a number."),
    Opcode("STORE", 0x0D, (Operand("cell"),), 1, 0, "Pop a value into a cell."),
    Opcode("FETCH", 0x0E, (Operand("cell"),), 0, 1, "Push the value of a cell; null before the first STORE."),
    _two("ADD", 0x10, "Null with a null, here and below."),
    _two("SUB", 0x11, "The lower value minus the one on top."),
    _two("MUL", 0x12, "The product."),
    _two("DIV", 0x13, "Cut towards zero; by zero, null."),
    _two("MOD", 0x14, "With the sign of the dividend; by zero, null."),
    _one("NEG", 0x15, "The value with the other sign."),
    _one("ABS", 0x16, "The value without its sign."),
    _two("LEAST", 0x17, "The smaller one; a null is left out."),
    _two("GREATEST", 0x18, "The larger one; a null is left out."),
    _two("ELSE", 0x19, "The lower value unless it is null, then the one on top."),
    _two("EQ", 0x20, "Unknown with a null, here and in all comparisons."),
    _two("NE", 0x21, "Unequal."),
    _two("LT", 0x22, "Whether the lower value is less than the one on top."),
    _two("LE", 0x23, "Less or equal."),
    _two("GT", 0x24, "Greater."),
    _two("GE", 0x25, "Greater or equal."),
    _two("AND", 0x26, "False wins over unknown, unknown over true."),
    _two("OR", 0x27, "True wins over unknown, unknown over false."),
    _one("NOT", 0x28, "Unknown stays unknown."),
    _one("ISNULL", 0x29, "Whether the value is null; never unknown."),
    Opcode("PICK", 0x2A, (), 3, 1, "Of a truth and two values: the lower value if it is true, else the one on top."),
    Opcode("SKIP", 0x30, (Operand("bytes", 2),), 1, 0, "Pop a truth; unless it is true, go on so many bytes further."),
    Opcode("MARK", 0x38, (_TABLE,), 0, 0, "The reading belongs to `table`; unless ENTER follows, to no group of it."),
    Opcode("KEY", 0x39, (), 1, 0, "Pop the next key of a group."),
    Opcode("ENTER", 0x3A, (_TABLE,), 0, 0, "Take the group with these keys, in the slice of this tick."),
    Opcode("FOLD", 0x3B, (Operand("place"),), 1, 0, "Pop a value and fold it into a place of the group; no null."),
    Opcode("TABLE", 0x40, (_TABLE, Operand("slots", 2), Operand("slot", 2), Operand("keys"), Operand("room"), *_EDGES), 0, 0,
           "Declare a table: how many sites have a slot and which one is this, keys of a group, room, where slices are cut."),
    Opcode("KEEP", 0x41, (Operand("kind"),), 0, 0, "The table declared last keeps a state of this kind in each group."),
)  # fmt: skip
BY_NUMBER = {opcode.number: opcode for opcode in OPCODES}
BY_NAME = {opcode.name: opcode for opcode in OPCODES}
DECLARING = ("TABLE", "KEEP")
NO_SLOT = 0xFFFF
"""The slot of a mote that merges partials of its children and contributes no readings to a table."""


def assemble(name: str, *operands: int) -> bytes:
    """Return one instruction as bytes."""
    opcode = BY_NAME[name]
    pairs = zip(opcode.operands, operands, strict=True)
    return bytes((opcode.number,)) + b"".join(n.to_bytes(o.bytes, "little", signed=o.signed) for o, n in pairs)


def generate_header() -> str:
    """Return the table as a C header."""
    lines = [
        "/* Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. */",
        "#ifndef MOTELOOM_OPCODES_H",
        "#define MOTELOOM_OPCODES_H",
        "",
        f"#define ML_STACK_DEPTH {STACK_DEPTH}",
        f"#define ML_CELLS {CELLS}",
        f"#define ML_MAX_KEYS {MAX_KEYS}",
        f"#define ML_MAX_CODE {MAX_CODE}",
        f"#define ML_NO_SLOT 0x{NO_SLOT:04x}u",
        "",
    ]
    for opcode in OPCODES:
        lines.append(f"#define ML_OP_{opcode.name} 0x{opcode.number:02x}u /* {opcode.meaning} */")
    lines += ["", *(f"#define ML_KEEP_{kind.name} {kind.value}" for kind in StateKind)]
    lines += ["", "/* X(name, number, operand bytes, values popped, values pushed) */", "#define ML_OPCODES(X) \\"]
    rows = [f"    X({o.name}, 0x{o.number:02x}u, {o.length - 1}, {o.pops}, {o.pushes})" for o in OPCODES]
    return "\n".join([*lines, " \\\n".join(rows), "", "#endif", ""])


_PAGE = f"""<!-- Generated from innet/program/opcodes.py; change it there and run `python -m innet.program.opcodes`. -->
# The instruction set of motes

This page is for engineers who port the interpreter or read the disassembly of a program (`MoteProgram.disassemble`). At its end
you can follow a program byte by byte. Each program runs once per epoch of its sampling, on the values just sampled:

```text
22  0100    LOAD 0        push the value of channel 0
24  0b6b0a  LIT16 2667    push 2667
27  25      GE            is the value at least 2667?
28  300500  SKIP 5        if that is not true, continue 5 bytes further
31  0100    LOAD 0
33  0200    OUT 0         put the value into the reading
35  04      SEND          send the reading
36  00      HALT
```

## Rules

* A program has at most {MAX_CODE} bytes and uses at most {STACK_DEPTH} stack entries and {CELLS} cells.
* A value is a 32-bit integer or null. A truth value is 1, 0, or null for unknown.
* Operands are little-endian.
* A program jumps forwards only, and only while the stack is empty. So it runs at most as many instructions as it has.
* A result is cut to its lowest 32 bits. The compiler proves that this never changes a value
  (`innet/operators/value_ranges.py`).
* Motes verify a program before they run it (`innet.program.mote_program.verify`).

## Tables

A program begins with its declarations: the tables of partial aggregates. `edge` and `other` are the ticks within each
`period` at which a slice begins; they are equal if a period has one edge. A mote that contributes no readings to a table
has the slot {NO_SLOT}. A table keeps these states:

| kind | state | fields, in bits |
|---|---|---|
{{kinds}}

A folded value has up to 32 bits. Counts, sums and sums of squares have room for 2^32 of them.

## Instructions

The column *stack* has the number of values popped and pushed.

| byte | instruction | stack | meaning |
|---|---|---|---|
"""


def generate_page() -> str:
    """Return the table as a page of the documentation."""
    lines = [_PAGE.replace("{kinds}", _kinds()).rstrip("\n")]
    for opcode in OPCODES:
        operands = (o.name if o.bytes == 1 else f"{o.name}:{8 * o.bytes}" for o in opcode.operands)
        written = " ".join((opcode.name, *operands))
        lines.append(f"| `{opcode.number:02x}` | `{written}` | -{opcode.pops} +{opcode.pushes} | {opcode.meaning} |")
    return "\n".join([*lines, ""])


def _kinds() -> str:
    rows = []
    for kind in StateKind:
        fields = ", ".join(f"{field.name} {field.bits}" for field in mote_layout(kind.name))
        rows.append(f"| {kind.value} | {kind.name} | {fields} |")
    return "\n".join(rows)


def generate_files() -> dict[str, str]:
    """Return the content of every generated file, by its path in the repository."""
    return {HEADER_FILE: generate_header(), PAGE_FILE: generate_page()}


def write_files(root: Path) -> None:
    """Write the generated files below `root`."""
    for path, content in generate_files().items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        print(f"wrote {target}", file=sys.stderr)


if __name__ == "__main__":
    write_files(Path.cwd())
