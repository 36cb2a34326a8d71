"""Programs are verified before they run, and generated files are up to date."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import PayloadError
from innet.errors import ProgramError
from innet.operators.slices import SlicePattern
from innet.payload import decode_program, encode_program
from innet.program import opcodes
from innet.program.interpreter import TickSample, run
from innet.program.mote_program import MoteProgram, PartialTable, verify
from innet.program.opcodes import BY_NAME, MAX_CODE, MAX_KEYS, NO_SLOT, OPCODES, STACK_DEPTH, assemble
from innet.program.table_memory import TableMemory

ROOT = Path(__file__).resolve().parents[2]
LOAD, OUT, HALT = (BY_NAME[name].number for name in ("LOAD", "OUT", "HALT"))


def code(*words):
    """Assemble a program from text, without the HALT at its end: `code("LOAD 0", "SEND")`."""
    return b"".join(assemble(name, *map(int, rest)) for name, *rest in (word.split() for word in words))


DECLARED = code("TABLE 4 2 1 1 3 60 0 0", "KEEP 1", "KEEP 3")


@pytest.mark.promise("pages-are-true")
@pytest.mark.parametrize("path", opcodes.generate_files())
def test_generated_files_are_up_to_date(path):
    """If this fails: python -m innet.program.opcodes"""
    assert (ROOT / path).read_text() == opcodes.generate_files()[path]


def test_opcode_numbers_and_names_are_unique():
    assert len({opcode.number for opcode in OPCODES}) == len({opcode.name for opcode in OPCODES}) == len(OPCODES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "expected HALT at the end"),
        (bytes([LOAD, 0]), "expected HALT at the end"),
        (bytes([HALT, HALT]), "at byte 1: code after HALT"),
        (bytes([0xEE, HALT]), "at byte 0: unknown instruction 0xee"),
        (bytes([LOAD]), "at byte 0: LOAD ends before its channel"),
        (code("EVERY 7")[:3], "at byte 0: EVERY ends before its ticks"),
        (bytes([LOAD, 2, HALT]), "at byte 0: unknown channel 2; the sampling has 2"),
        (bytes([OUT, 0, HALT]), "at byte 0: OUT needs 1 values on the stack, found 0"),
        (bytes([LOAD, 0] * (STACK_DEPTH + 1) + [HALT]), f"at byte {2 * STACK_DEPTH}: more than {STACK_DEPTH} values"),
        (
            bytes([LOAD, 0, OUT, 0] * (MAX_CODE // 4) + [HALT]),
            f"expected at most {MAX_CODE} bytes, found {MAX_CODE + 1}",
        ),
        (code("LIT8 1", "STORE 8"), "unknown cell 8; a mote has 8"),
        (code("EVERY 0"), "expected a period of at least one tick"),
        (code("WITHIN 0 1 2"), "expected a period of at least one tick"),
        (code("LIT8 1", "LIT8 1", "SKIP 0"), "at byte 4: SKIP with values left"),
        (code("LIT8 1", "SKIP 1", "LIT8 2", "HALT"), "SKIP leads to byte 6, where no instruction begins"),
        (code("LIT8 1", "SKIP 9", "HALT"), "SKIP leads to byte 14, where no instruction begins"),
        (code("LIT8 1", "SKIP 2", "LIT8 2", "OUT 0", "HALT"), "at byte 7: a SKIP leads to where values are"),
        (code("MARK 4"), "unknown table 4"),
        (code("WANT") + DECLARED, "TABLE after the declarations"),
        (code("KEEP 1"), "KEEP needs a table before it"),
        (DECLARED + code("KEEP 9"), "KEEP needs a table before it and a known kind, found kind 9"),
        (DECLARED + DECLARED, "table 4 is declared twice"),
        (DECLARED + code("ENTER 4"), "table 4 has 1 keys"),
        (DECLARED + code("LIT8 1", "FOLD 0"), "FOLD needs an entered group with a state 0"),
        (DECLARED + code("SITE", "KEY", "ENTER 4", "SITE", "FOLD 2"), "FOLD needs an entered group with a state 2"),
        (DECLARED + code("SITE", "KEY", "ENTER 4", "SITE", "KEY", "ENTER 4"), "ENTER of table 4 a second time"),
        (DECLARED + code("MARK 4", "MARK 4"), "MARK of table 4 a second time"),
        (code(*["SITE", "KEY"] * (MAX_KEYS + 1)), f"more than {MAX_KEYS} keys"),
        (code("TABLE 4 2 1 1 3 60 60 60", "HALT"), "expected ascending edges"),
        (code("TABLE 4 2 2 1 3 60 0 0", "HALT"), "expected a slot below 2, found 2"),
        (code("TABLE 4 2 1 1 0 60 0 0", "HALT"), "found a table of 0 groups"),
        (
            DECLARED + code("LIT8 1", "SKIP 4", "SITE", "KEY", "ENTER 4", "SITE", "FOLD 0", "HALT"),
            "FOLD needs an entered group with a state 0",
        ),
    ],
)
def test_invalid_program_is_refused(text, said):
    with pytest.raises(ProgramError, match=said):
        verify(text, channels=2)


def test_program_moves_values_and_nulls():
    program = MoteProgram(3, 0, 1, 3, code("LOAD 2", "OUT 0", "LOAD 0", "OUT 2", "SEND", "HALT"))
    assert run(program, TickSample(0, (7, 8, None)), TableMemory()).reading == (None, None, 7)
    assert run(program, TickSample(0, (7, 8, 9)), TableMemory()).reading == (9, None, 7)


def test_disassembly_of_program():
    text = DECLARED + code("LOAD 0", "SKIP 4", "LOAD 0", "OUT 0", "SEND", "HALT")
    lines = MoteProgram(3, 0, 1, 1, text).disassemble().splitlines()
    assert [line.split(None, 2)[2] for line in lines] == [
        "TABLE 4 2 1 1 3 60 0 0", "KEEP 1  SUM", "KEEP 3  MIN", "LOAD 0", "SKIP 4  to 33", "LOAD 0", "OUT 0", "SEND", "HALT",
    ]  # fmt: skip
    assert lines[3].startswith("24  0100    LOAD")


def test_program_knows_peers_and_whether_it_sends():
    program = MoteProgram(3, 0, 1, 1, DECLARED + code("LOAD 0", "OUT 0", "SEND", "HALT"))
    assert program.tables == (PartialTable(4, 2, 1, 1, 3, SlicePattern(60, 0, 0), ("SUM", "MIN")),)
    assert program.tables[0].shape.slots == (0, 1)
    assert program.body == code("LOAD 0", "OUT 0", "SEND", "HALT")
    assert program.sends
    relay = MoteProgram(3, 0, 1, 0, code(f"TABLE 4 2 {NO_SLOT} 0 3 60 0 0", "HALT"))
    assert (relay.sends, relay.tables[0].slot) == (False, None)


@pytest.mark.promise("reconciled")
@given(st.binary(max_size=80))
def test_fuzzed_code_gives_program_or_payload_error(payload):
    """Invariant: a program that runs to its end and encodes to the same bytes, or PayloadError."""
    try:
        program = decode_program(payload, 3)
    except PayloadError:
        return
    assert encode_program(program) == payload
    memory = TableMemory()
    memory.install([program])
    reading = run(program, TickSample(7, range(program.channels)), memory).reading
    assert reading is None or (program.sends and len(reading) == program.channels)


PIECES = [
    code(word)
    for word in ("LOAD 0", "LOAD 1", "OUT 1", "SEND", "SITE", "KEY", "MARK 4", "ENTER 4", "FOLD 0", "FOLD 1", "SKIP 2")
]


@pytest.mark.promise("reconciled")
@given(st.lists(st.sampled_from(PIECES), max_size=16), st.booleans())
def test_verified_program_runs(parts, declared):
    text = (DECLARED if declared else b"") + b"".join(parts) + bytes([HALT])
    try:
        program = MoteProgram(3, 0, 1, 2, text)
    except ProgramError:
        return
    memory = TableMemory()
    memory.install([program])
    outcome = run(program, TickSample(0, (7, 8)), memory)
    assert program.sends or outcome.reading is None
    assert len(memory) <= 1
