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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from acquisition.errors import PayloadError
from gateway.frame import COORDINATOR
from gateway.image import Image
from innet.errors import ProgramError
from innet.placement.agenda import Activity, Agenda, Slot
from innet.placement.round_pattern import EVERY_ROUND, RoundPattern
from innet.program.mote_program import MoteProgram, decode_instructions

SECTION, CODE, PARENT = struct.Struct("<BH"), struct.Struct("<BHB"), struct.Struct("<H")
ROUNDS, SLOT = struct.Struct("<IIIIIBB"), struct.Struct("<BIHH")
RADIO_ACTIVITIES = {1: Activity.RECEIVE, 2: Activity.SEND}
"""The slots that a mote must be told; when it senses its schedule says, and it computes when it has sensed."""


class Section(IntEnum):
    """The type of a section."""

    CODE = 1
    PARENT = 2
    AGENDA = 3


@dataclass(frozen=True, slots=True)
class RadioSchedule:
    """When a mote's radio is on, and when it sends: `slots` of receiving and sending in each `period_ms`.

    Rounds follow each other from tick 0 on; before the `first` of them the mote goes on as it did. In a round slots come
    again after each `again_ms` for who has said in them that there is more; never where that is 0. Slots are in the `rounds`
    in which something is due, and it is its turn to ask in those whose number is `turn` more than a multiple of `rounds.poll_every`.
    """

    period_ms: int
    slots: tuple[Slot, ...]
    first: int = 0
    repeat_ms: int = 0
    rounds: RoundPattern = EVERY_ROUND
    poll_phase: int = 0

    @classmethod
    def of(cls, agenda: Agenda, site: int) -> "RadioSchedule":
        slots = tuple(slot for slot in agenda.sites[site].slots if slot.activity in RADIO_ACTIVITIES.values())
        return cls(agenda.period_ms, slots, agenda.first, agenda.repeat_ms, agenda.rounds, agenda.poll_phase(site))


@dataclass(frozen=True, slots=True)
class MoteAssignment:
    """What one mote runs, to whom it gives what goes up, and when; without a duty at once, and it always listens."""

    programs: tuple[MoteProgram, ...] = ()
    parent: int = COORDINATOR
    radio_schedule: RadioSchedule | None = None


def encode_assignment(version: int, orders: MoteAssignment) -> Image:
    bodies = [(Section.PARENT, PARENT.pack(orders.parent))]
    bodies += [(Section.AGENDA, _encode_duty(orders.radio_schedule))] if orders.radio_schedule else []
    bodies += [(Section.CODE, encode_program(program)) for program in orders.programs]
    return Image(version, b"".join(SECTION.pack(section, len(body)) + body for section, body in bodies))


def decode_assignment(image: Image, site: int) -> MoteAssignment:
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
    return MoteAssignment(tuple(programs), parents[0], duties[0] if duties else None)


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


def _encode_duty(radio_schedule: RadioSchedule) -> bytes:
    numbers = {activity: number for number, activity in RADIO_ACTIVITIES.items()}
    slots = (
        SLOT.pack(numbers[s.activity], s.start_ms, s.length_ms, s.peer or COORDINATOR) for s in radio_schedule.slots
    )
    turns = (
        radio_schedule.rounds.every,
        radio_schedule.rounds.phase,
        radio_schedule.rounds.poll_every,
        radio_schedule.poll_phase,
    )
    return ROUNDS.pack(radio_schedule.period_ms, radio_schedule.first, radio_schedule.repeat_ms, *turns) + b"".join(
        slots
    )


def _decode_duty(body: bytes, site: int) -> RadioSchedule:
    if len(body) < ROUNDS.size or (len(body) - ROUNDS.size) % SLOT.size:
        raise PayloadError("agenda", site, f"an agenda of {len(body)} bytes")
    period, first, again, every, phase, asks, turn = ROUNDS.unpack_from(body)
    if phase >= every or turn > max(0, asks - 1):
        raise PayloadError("agenda", site, "an agenda whose slots come in no round")
    slots, end = [], 0
    for what, start, length, peer in SLOT.iter_unpack(body[ROUNDS.size :]):
        if what not in RADIO_ACTIVITIES or start < end or start + length > period:
            raise PayloadError("agenda", site, "an agenda whose slots overlap, leave the period or are none")
        slots.append(Slot(start, length, RADIO_ACTIVITIES[what], peer))
        end = start + length
    return RadioSchedule(period, tuple(slots), first, again, RoundPattern(every, phase, asks), turn)


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


def annotate_assignment(orders: MoteAssignment) -> Iterator[tuple[int, str]]:
    """What the bytes of the image mean, for `gateway.frame_annotation`."""
    yield 1, "section PARENT"
    yield 2, f"of {PARENT.size} bytes"
    yield 2, "the base station" if orders.parent == COORDINATOR else f"mote {orders.parent}"
    if orders.radio_schedule:
        yield 1, "section AGENDA"
        yield 2, f"of {ROUNDS.size + SLOT.size * len(orders.radio_schedule.slots)} bytes"
        yield 4, f"each {orders.radio_schedule.period_ms} ms"
        yield 4, f"from round {orders.radio_schedule.first} on"
        yield 4, f"again after each {orders.radio_schedule.repeat_ms} ms"
        yield 4, f"slots in one of {orders.radio_schedule.rounds.every} rounds"
        yield 4, f"the first is round {orders.radio_schedule.rounds.phase}"
        yield 1, f"asks in one of {orders.radio_schedule.rounds.poll_every} rounds"
        yield 1, f"the first is round {orders.radio_schedule.poll_phase}"
        for slot in orders.radio_schedule.slots:
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
    for _, opcode, operands in decode_instructions(code):
        yield opcode.length, " ".join((opcode.name, *(str(operand) for operand in operands)))


def group_by_site(compiled: Iterable[MoteProgram]) -> dict[int, tuple[MoteProgram, ...]]:
    """Return the programs of each site."""
    by_site: dict[int, tuple[MoteProgram, ...]] = {}
    for program in compiled:
        by_site[program.site] = (*by_site.get(program.site, ()), program)
    return by_site
