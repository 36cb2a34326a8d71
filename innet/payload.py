"""The bits of the payloads PROGRAM and LINKS. Integers are little-endian.

PROGRAM  sampling u8, version u16, channels u8, then the code
LINKS    neighbours u8; each: mote u16, quality u8
"""

import struct
from collections.abc import Iterator

from gateway.frame import MAX_PAYLOAD
from innet.errors import PayloadError, ProgramError
from innet.program.program import MoteProgram, instructions
from innet.routing.topology import Heard, LinksReport

PROGRAM_HEADER, NEIGHBOUR = struct.Struct("<BHB"), struct.Struct("<HB")
MAX_NEIGHBOURS = (MAX_PAYLOAD - 1) // NEIGHBOUR.size


def encode_program(program: MoteProgram) -> bytes:
    return PROGRAM_HEADER.pack(program.sampling, program.version, program.channels) + program.code


def decode_program(payload: bytes, site: int) -> MoteProgram:
    if len(payload) < PROGRAM_HEADER.size:
        raise PayloadError("short", site, f"a PROGRAM of {len(payload)} bytes")
    sampling, version, channels = PROGRAM_HEADER.unpack_from(payload)
    try:
        return MoteProgram(site, sampling, version, channels, payload[PROGRAM_HEADER.size :])
    except ProgramError as error:
        raise PayloadError("code", site, str(error)) from error


def annotate_program(program: MoteProgram) -> Iterator[tuple[int, str]]:
    """What the bytes of a PROGRAM mean, for `gateway.describe`."""
    yield 1, f"for sampling {program.sampling}"
    yield 2, f"version {program.version}"
    yield 1, f"{program.channels} channels"
    for _, opcode, operands in instructions(program.code):
        yield 1 + len(operands), " ".join((opcode.name, *(str(operand) for operand in operands)))


def encode_links(report: LinksReport) -> bytes:
    """The best neighbours, as many as one frame holds."""
    best = sorted(report.heard, key=lambda heard: (-heard.quality, heard.neighbour))[:MAX_NEIGHBOURS]
    return bytes((len(best),)) + b"".join(NEIGHBOUR.pack(heard.neighbour, heard.quality) for heard in best)


def decode_links(payload: bytes, mote: int) -> LinksReport:
    if not payload or len(payload) != 1 + payload[0] * NEIGHBOUR.size:
        raise PayloadError("size", mote, f"a LINKS of {len(payload)} bytes does not hold its neighbours")
    heard = tuple(Heard(*NEIGHBOUR.unpack_from(payload, at)) for at in range(1, len(payload), NEIGHBOUR.size))
    if mote in (h.neighbour for h in heard) or len({h.neighbour for h in heard}) < len(heard):
        raise PayloadError("neighbour", mote, "LINKS that name the mote itself, or one neighbour twice")
    return LinksReport(mote, heard)


def annotate_links(report: LinksReport) -> Iterator[tuple[int, str]]:
    """What the bytes of a LINKS mean, for `gateway.describe`."""
    yield 1, f"{len(report.heard)} neighbours"
    for heard in report.heard:
        yield 2, f"hears mote {heard.neighbour}"
        yield 1, f"with quality {heard.quality} of 255"
