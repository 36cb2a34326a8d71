"""PROGRAM: all that a mote is told to run, as one image; the gateway cuts it into chunks (`gateway.image`).

An image consists of sections, each of them: type u8, length u16, body. A mote refuses an image with a section that it
does not know.

    1 CODE    sampling u8, version u16, channels u8, then the code
    2 PARENT  mote u16: whom to give what goes up; 0 is the base station
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from gateway.frame import COORDINATOR
from gateway.image import Image
from innet.errors import PayloadError, ProgramError
from innet.program.program import MoteProgram, instructions

SECTION, CODE, PARENT = struct.Struct("<BH"), struct.Struct("<BHB"), struct.Struct("<H")


class Section(IntEnum):
    """The type of a section."""

    CODE = 1
    PARENT = 2


@dataclass(frozen=True, slots=True)
class Orders:
    """What one mote runs, and to whom it gives what goes up."""

    programs: tuple[MoteProgram, ...] = ()
    parent: int = COORDINATOR


def encode_orders(version: int, orders: Orders) -> Image:
    bodies = [(Section.PARENT, PARENT.pack(orders.parent))]
    bodies += [(Section.CODE, encode_program(program)) for program in orders.programs]
    return Image(version, b"".join(SECTION.pack(section, len(body)) + body for section, body in bodies))


def decode_orders(image: Image, site: int) -> Orders:
    """What a mote understands of an image that came whole. PayloadError if it is not to be run."""
    programs, parents = [], []
    for section, body in _sections(image.content, site):
        if section == Section.CODE:
            programs.append(decode_program(body, site))
        elif section == Section.PARENT and len(body) == PARENT.size:
            parents += PARENT.unpack(body)
        else:
            raise PayloadError("section", site, f"a PROGRAM with a section of type {section} and {len(body)} bytes")
    if len(parents) != 1 or parents == [site]:
        raise PayloadError("parent", site, f"a PROGRAM with the parents {parents}")
    if len({program.sampling for program in programs}) < len(programs):
        raise PayloadError("sampling", site, "a PROGRAM with two codes for one sampling")
    return Orders(tuple(programs), parents[0])


def _sections(content: bytes, site: int) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(content):
        start = at + SECTION.size
        if start > len(content):
            raise PayloadError("short", site, "a PROGRAM that ends inside the head of a section")
        section, length = SECTION.unpack_from(content, at)
        at = start + length
        if at > len(content):
            raise PayloadError("short", site, f"a PROGRAM whose section of type {section} ends too early")
        yield section, content[start:at]


def encode_program(program: MoteProgram) -> bytes:
    """The body of a CODE section."""
    return CODE.pack(program.sampling, program.version, program.channels) + program.code


def decode_program(body: bytes, site: int) -> MoteProgram:
    if len(body) < CODE.size:
        raise PayloadError("short", site, f"a program of {len(body)} bytes")
    sampling, version, channels = CODE.unpack_from(body)
    try:
        return MoteProgram(site, sampling, version, channels, body[CODE.size :])
    except ProgramError as error:
        raise PayloadError("code", site, str(error)) from error


def annotate_orders(orders: Orders) -> Iterator[tuple[int, str]]:
    """What the bytes of the image mean, for `gateway.describe`."""
    yield 1, "section PARENT"
    yield 2, f"of {PARENT.size} bytes"
    yield 2, "the base station" if orders.parent == COORDINATOR else f"mote {orders.parent}"
    for program in orders.programs:
        yield 1, "section CODE"
        yield 2, f"of {CODE.size + len(program.code)} bytes"
        yield 1, f"for sampling {program.sampling}"
        yield 2, f"version {program.version}"
        yield 1, f"{program.channels} channels"
        yield from annotate_code(program.code)


def annotate_code(code: bytes) -> Iterator[tuple[int, str]]:
    for _, opcode, operands in instructions(code):
        yield opcode.length, " ".join((opcode.name, *(str(operand) for operand in operands)))


def programs_of(compiled: Sequence[MoteProgram]) -> dict[int, tuple[MoteProgram, ...]]:
    """Compiled programs by their site."""
    by_site: dict[int, tuple[MoteProgram, ...]] = {}
    for program in compiled:
        by_site[program.site] = (*by_site.get(program.site, ()), program)
    return by_site
