"""Programs are checked before they run, compiled once for all queries, and generated files are up to date."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.instants import Epochs
from acquisition.schedule import Channel, Sampling, Schedule
from innet.errors import PayloadError, ProgramError
from innet.operators.acquire import Acquire
from innet.operators.deliver import Deliver
from innet.payload import decode_program, encode_program
from innet.program import opcodes
from innet.program.compile import compile_programs
from innet.program.interpreter import run
from innet.program.opcodes import BY_NAME, MAX_CODE, STACK_DEPTH, TABLE
from innet.program.program import MoteProgram, check

ROOT = Path(__file__).resolve().parents[2]
LOAD, OUT, HALT = (BY_NAME[name].number for name in ("LOAD", "OUT", "HALT"))


@pytest.mark.parametrize("path", opcodes.generated())
def test_generated_files_are_up_to_date(path):
    """If this fails: python -m innet.program.opcodes"""
    assert (ROOT / path).read_text() == opcodes.generated()[path]


def test_the_table_has_each_number_and_name_once():
    assert len({opcode.number for opcode in TABLE}) == len({opcode.name for opcode in TABLE}) == len(TABLE)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (b"", "ends with HALT"),
        (bytes([LOAD, 0]), "ends with HALT"),
        (bytes([HALT, HALT]), "at byte 1: code after HALT"),
        (bytes([0xEE, HALT]), "at byte 0: there is no instruction 0xee"),
        (bytes([LOAD]), "at byte 0: LOAD ends before its channel"),
        (bytes([LOAD, 2, HALT]), "at byte 0: there is no channel 2 among 2"),
        (bytes([OUT, 0, HALT]), "at byte 0: OUT needs 1 values, 0 are there"),
        (bytes([LOAD, 0] * (STACK_DEPTH + 1) + [HALT]), f"at byte {2 * STACK_DEPTH}: more than {STACK_DEPTH} values"),
        (bytes([LOAD, 0, OUT, 0] * (MAX_CODE // 4) + [HALT]), f"{MAX_CODE + 1} bytes are more"),
    ],
)
def test_programs_that_break_a_rule(code, said):
    with pytest.raises(ProgramError, match=said):
        check(code, channels=2)


def test_a_program_moves_values_and_nulls():
    program = MoteProgram(3, 0, 1, 3, bytes([LOAD, 2, OUT, 0, LOAD, 0, OUT, 2, HALT]))
    assert run(program, (7, 8, None)) == (None, None, 7)
    assert run(program, (7, 8, 9)) == (9, None, 7)


def test_disassembly():
    program = MoteProgram(3, 0, 1, 1, bytes([LOAD, 0, OUT, 0, HALT]))
    assert program.disassembly() == "00  0100    LOAD 0\n02  0200    OUT 0\n04  00      HALT"


@given(st.binary(max_size=MAX_CODE + 4))
def test_fuzz_programs_from_the_air(payload):
    """The invariant: a program that runs to its end and is encoded to the very same bytes, or PayloadError."""
    try:
        program = decode_program(payload, 3)
    except PayloadError:
        return
    assert encode_program(program) == payload
    reading = run(program, range(program.channels))
    assert len(reading) == program.channels


@given(st.lists(st.sampled_from([bytes([LOAD, 0]), bytes([LOAD, 1]), bytes([OUT, 1])]), max_size=12))
def test_a_program_that_passes_the_check_runs(parts):
    code = b"".join(parts) + bytes([HALT])
    try:
        program = MoteProgram(3, 0, 1, 2, code)
    except ProgramError:
        return
    assert run(program, (7, 8))[1] in (None, 7, 8)


def sampling(number, extent, *attributes):
    return Sampling(number, extent, Epochs(0, 10), tuple(Channel(name, 1, 16) for name in attributes))


def test_each_value_is_sent_once_for_all_queries():
    field, road = sampling(0, "field", "temp", "volt"), sampling(1, "road", "load")
    schedules = [Schedule(3, 5, (field,)), Schedule(4, 2, (field, road))]
    first = Deliver(Acquire("field", 10, ("temp",)), ("temp",))
    second = Deliver(Acquire("field", 20, ("temp", "volt")), ("temp", "volt"))
    third = Deliver(Acquire("road", 10, ("load",)), ("load",))
    programs = {(p.site, p.sampling): p for p in compile_programs([first, second, third], schedules)}
    assert set(programs) == {(3, 0), (4, 0), (4, 1)}
    assert run(programs[3, 0], (7, 8)) == (7, 8)
    assert len(programs[3, 0].code) == 9
    assert [programs[key].version for key in programs] == [5, 2, 2]


def test_what_is_not_sampled_cannot_be_sent():
    with pytest.raises(ProgramError, match="`volt` of field is to be sent and is not sampled"):
        compile_programs([Deliver(Acquire("field", 10, ("volt",)), ("volt",))], [Schedule(3, 1, (sampling(0, "field"),))])


def test_labels_say_what_motes_do():
    acquire = Acquire("field", 10, ("temp", "volt"))
    deliver = Deliver(acquire, ("temp",))
    assert acquire.label() == "acquire temp, volt of field every 10 ticks"
    assert (deliver.label(), deliver.children, deliver.attributes) == ("deliver temp", (acquire,), ("temp",))
