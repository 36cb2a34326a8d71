"""DOOR DOWN: mote programs -> messages for motes."""

from collections.abc import Iterable

from gateway.frame import Kind, Message, MoteId
from innet.payload import encode_program
from innet.program.program import MoteProgram


def programs(compiled: Iterable[MoteProgram]) -> list[Message]:
    """One PROGRAM for each; a mote starts with it at its next epoch."""
    return [Message(Kind.PROGRAM, MoteId(program.site), encode_program(program)) for program in compiled]
