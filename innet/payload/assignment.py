"""PROGRAM: all that a mote is told to run, as one image; the gateway cuts it into chunks (`gateway.image`).

An image consists of sections, each of them: type u8, length u16, body. A mote refuses an image with a section that it
does not know.

    1 CODE    sampling u8, version u16, channels u8, then the code
    2 PARENT  mote u16: whom to give what goes up; 0 is the base station
    3 AGENDA  period in ms u32, number of the first round u32, so long after them slots come again in ms u32, slots in one of so
              many rounds u32, in which of them u32, asks in one of so many u8, in which of them u8, then for each slot: what u8
              (1 receive, 2 send), start in ms u32, length in ms u16, peer u16; without it the mote's radio is always on
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

from gateway.frame import COORDINATOR
from gateway.image import Image
from innet.errors import PayloadError, ProgramError
from innet.placement.agenda import Activity, Agenda, Slot
from innet.placement.round_pattern import ALL, Rounds
from innet.program.mote_program import MoteProgram, instructions

SECTION, CODE, PARENT = struct.Struct("<BH"), struct.Struct("<BHB"), struct.Struct("<H")
ROUNDS, SLOT = struct.Struct("<IIIIIBB"), struct.Struct("<BIHH")
ON_AIR = {1: Activity.RECEIVE, 2: Activity.SEND}
"""The slots that a mote must be told; when it senses its schedule says, and it computes when it has sensed."""


class Section(IntEnum):
    """The type of a section."""

    CODE = 1
    PARENT = 2
    AGENDA = 3


@dataclass(frozen=True, slots=True)
class Duty:
    """When a mote's radio is on, and when it sends: `slots` of receiving and sending in each `period_ms`.

    Rounds follow each other from tick 0 on; before the `first` of them the mote goes on as it did. In a round slots come
    again after each `again_ms` for who has said in them that there is more; never where that is 0. Slots are in the `rounds`
    in which something is due, and it is its turn to ask in those whose number is `turn` more than a multiple of `rounds.asks`.
    """

    period_ms: int
    slots: tuple[Slot, ...]
    first: int = 0
    again_ms: int = 0
    rounds: Rounds = ALL
    turn: int = 0

    @classmethod
    def of(cls, agenda: Agenda, site: int) -> "Duty":
        slots = tuple(slot for slot in agenda.sites[site].slots if slot.activity in ON_AIR.values())
        return cls(agenda.period_ms, slots, agenda.first, agenda.again_ms, agenda.rounds, agenda.turn(site))


@dataclass(frozen=True, slots=True)
class Orders:
    """What one mote runs, to whom it gives what goes up, and when; without a duty at once, and it always listens."""

    programs: tuple[MoteProgram, ...] = ()
    parent: int = COORDINATOR
    duty: Duty | None = None


def encode_orders(version: int, orders: Orders) -> Image:
    bodies = [(Section.PARENT, PARENT.pack(orders.parent))]
    bodies += [(Section.AGENDA, _encode_duty(orders.duty))] if orders.duty else []
    bodies += [(Section.CODE, encode_program(program)) for program in orders.programs]
    return Image(version, b"".join(SECTION.pack(section, len(body)) + body for section, body in bodies))


def decode_orders(image: Image, site: int) -> Orders:
    """What a mote understands of an image that came whole. PayloadError if it is not to be run."""
    programs, parents, duties = [], [], []
    for section, body in _sections(image.content, site):
        if section == Section.CODE:
            programs.append(decode_program(body, site))
        elif section == Section.PARENT and len(body) == PARENT.size:
            parents += PARENT.unpack(body)
        elif section == Section.AGENDA:
            duties.append(_decode_duty(body, site))
        else:
            raise PayloadError("section", site, f"a PROGRAM with a section of type {section} and {len(body)} bytes")
    if len(parents) != 1 or parents == [site]:
        raise PayloadError("parent", site, f"a PROGRAM with the parents {parents}")
    if len(duties) > 1:
        raise PayloadError("agenda", site, f"a PROGRAM with {len(duties)} agendas")
    if len({program.sampling for program in programs}) < len(programs):
        raise PayloadError("sampling", site, "a PROGRAM with two codes for one sampling")
    return Orders(tuple(programs), parents[0], duties[0] if duties else None)


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


def _encode_duty(duty: Duty) -> bytes:
    numbers = {activity: number for number, activity in ON_AIR.items()}
    slots = (SLOT.pack(numbers[s.activity], s.start_ms, s.length_ms, s.peer or COORDINATOR) for s in duty.slots)
    turns = duty.rounds.every, duty.rounds.phase, duty.rounds.asks, duty.turn
    return ROUNDS.pack(duty.period_ms, duty.first, duty.again_ms, *turns) + b"".join(slots)


def _decode_duty(body: bytes, site: int) -> Duty:
    if len(body) < ROUNDS.size or (len(body) - ROUNDS.size) % SLOT.size:
        raise PayloadError("agenda", site, f"an agenda of {len(body)} bytes")
    period, first, again, every, phase, asks, turn = ROUNDS.unpack_from(body)
    if phase >= every or turn > max(0, asks - 1):
        raise PayloadError("agenda", site, "an agenda whose slots come in no round")
    slots, end = [], 0
    for what, start, length, peer in SLOT.iter_unpack(body[ROUNDS.size :]):
        if what not in ON_AIR or start < end or start + length > period:
            raise PayloadError("agenda", site, "an agenda whose slots overlap, leave the period or are none")
        slots.append(Slot(start, length, ON_AIR[what], peer))
        end = start + length
    return Duty(period, tuple(slots), first, again, Rounds(every, phase, asks), turn)


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
    """What the bytes of the image mean, for `gateway.frame_annotation`."""
    yield 1, "section PARENT"
    yield 2, f"of {PARENT.size} bytes"
    yield 2, "the base station" if orders.parent == COORDINATOR else f"mote {orders.parent}"
    if orders.duty:
        yield 1, "section AGENDA"
        yield 2, f"of {ROUNDS.size + SLOT.size * len(orders.duty.slots)} bytes"
        yield 4, f"each {orders.duty.period_ms} ms"
        yield 4, f"from round {orders.duty.first} on"
        yield 4, f"again after each {orders.duty.again_ms} ms"
        yield 4, f"slots in one of {orders.duty.rounds.every} rounds"
        yield 4, f"the first is round {orders.duty.rounds.phase}"
        yield 1, f"asks in one of {orders.duty.rounds.asks} rounds"
        yield 1, f"the first is round {orders.duty.turn}"
        for slot in orders.duty.slots:
            yield 1, slot.activity.value
            yield 4, f"from {slot.start_ms} ms on"
            yield 2, f"for {slot.length_ms} ms"
            yield 2, f"{'from' if slot.activity is Activity.RECEIVE else 'to'} {slot.peer or 'the base station'}"
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
