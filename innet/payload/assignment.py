"""PROGRAM: the programs, the parent and the radio schedule of one mote, as one image; the gateway splits it into chunks.

An image consists of sections: type u8, length u16, body. A mote refuses an image with an unknown section.

    1 CODE    sampling u8, version u16, channels u8, then the code
    2 PARENT  mote u16: the receiver of all upward frames; 0 is the base station
    3 AGENDA  round in ms u32, first round u32, repetition of slots in ms u32, slots in one of n rounds u32, their phase
              u32, polls in one of n rounds u8, their phase u8; then for each slot: activity u8 (1 receive, 2 send), start
              in ms u32, length in ms u16, peer u16. Without this section the radio is always on.
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
"""The slots in the AGENDA section. A mote senses by its schedule, and computes right after."""


class Section(IntEnum):
    """The type of a section."""

    CODE = 1
    PARENT = 2
    AGENDA = 3


@dataclass(frozen=True, slots=True)
class RadioSchedule:
    """The radio schedule of a mote: `slots` to receive and to send in rounds of `period_ms`, numbered from tick 0 on.

    It applies from the round `first` on; until then the mote keeps its earlier schedule. Slots take place in the rounds of
    `rounds`, and in those in which the mote polls: every `rounds.poll_every`-th, beginning with `poll_phase`. After
    `repeat_ms` a slot repeats in the same round if its frames announced more; 0 means never.
    """

    period_ms: int
    slots: tuple[Slot, ...]
    first: int = 0
    repeat_ms: int = 0
    rounds: RoundPattern = EVERY_ROUND
    poll_phase: int = 0

    @classmethod
    def of(cls, agenda: Agenda, site: int) -> "RadioSchedule":
        """Return the radio schedule of a site in an agenda."""
        slots = tuple(slot for slot in agenda.sites[site].slots if slot.activity in RADIO_ACTIVITIES.values())
        return cls(agenda.period_ms, slots, agenda.first, agenda.repeat_ms, agenda.rounds, agenda.poll_phase(site))


@dataclass(frozen=True, slots=True)
class MoteAssignment:
    """The programs of a mote, the parent that it sends to, and its radio schedule; None means that the radio is always on."""

    programs: tuple[MoteProgram, ...] = ()
    parent: int = COORDINATOR
    radio_schedule: RadioSchedule | None = None


def encode_assignment(version: int, assignment: MoteAssignment) -> Image:
    """Encode an assignment as an image of that version."""
    bodies = [(Section.PARENT, PARENT.pack(assignment.parent))]
    if assignment.radio_schedule:
        bodies.append((Section.AGENDA, _encode_radio_schedule(assignment.radio_schedule)))
    bodies += [(Section.CODE, encode_program(program)) for program in assignment.programs]
    return Image(version, b"".join(SECTION.pack(section, len(body)) + body for section, body in bodies))


def decode_assignment(image: Image, site: int) -> MoteAssignment:
    """Decode a complete image as the mote `site` does. PayloadError if the mote must not run it."""
    programs: list[MoteProgram] = []
    parents: list[int] = []
    radio_schedules: list[RadioSchedule] = []
    for section, body in _sections(image.content, site):
        if section == Section.CODE:
            programs.append(decode_program(body, site))
        elif section == Section.PARENT and len(body) == PARENT.size:
            parents += PARENT.unpack(body)
        elif section == Section.AGENDA:
            radio_schedules.append(_decode_radio_schedule(body, site))
        else:
            raise PayloadError("section", site, f"a PROGRAM with a section of type {section} and {len(body)} bytes")
    if len(parents) != 1 or parents == [site]:
        raise PayloadError("parent", site, f"a PROGRAM with the parents {parents}")
    if len(radio_schedules) > 1:
        raise PayloadError("agenda", site, f"a PROGRAM with {len(radio_schedules)} agendas")
    if len({program.sampling for program in programs}) < len(programs):
        raise PayloadError("sampling", site, "a PROGRAM with two codes for one sampling")
    return MoteAssignment(tuple(programs), parents[0], radio_schedules[0] if radio_schedules else None)


def _sections(content: bytes, site: int) -> Iterator[tuple[int, bytes]]:
    """Yield (type, body) of each section."""
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


def _encode_radio_schedule(found: RadioSchedule) -> bytes:
    numbers = {activity: number for number, activity in RADIO_ACTIVITIES.items()}
    slots = (SLOT.pack(numbers[s.activity], s.start_ms, s.length_ms, s.peer or COORDINATOR) for s in found.slots)
    rounds = found.rounds.every, found.rounds.phase, found.rounds.poll_every, found.poll_phase
    return ROUNDS.pack(found.period_ms, found.first, found.repeat_ms, *rounds) + b"".join(slots)


def _decode_radio_schedule(body: bytes, site: int) -> RadioSchedule:
    if len(body) < ROUNDS.size or (len(body) - ROUNDS.size) % SLOT.size:
        raise PayloadError("agenda", site, f"an agenda of {len(body)} bytes")
    period_ms, first, repeat_ms, every, phase, poll_every, poll_phase = ROUNDS.unpack_from(body)
    if phase >= every or poll_phase > max(0, poll_every - 1):
        raise PayloadError("agenda", site, "an agenda whose phase is not below its number of rounds")
    slots, end = [], 0
    for activity, start, length, peer in SLOT.iter_unpack(body[ROUNDS.size :]):
        if activity not in RADIO_ACTIVITIES or start < end or start + length > period_ms:
            raise PayloadError("agenda", site, "an agenda with slots that overlap, leave the round or have no activity")
        slots.append(Slot(start, length, RADIO_ACTIVITIES[activity], peer))
        end = start + length
    rounds = RoundPattern(every, phase, poll_every)
    return RadioSchedule(period_ms, tuple(slots), first, repeat_ms, rounds, poll_phase)


def encode_program(program: MoteProgram) -> bytes:
    """Return the body of a CODE section."""
    return CODE.pack(program.sampling, program.version, program.channels) + program.code


def decode_program(body: bytes, site: int) -> MoteProgram:
    """Decode the body of a CODE section. PayloadError if the program does not verify."""
    if len(body) < CODE.size:
        raise PayloadError("short", site, f"a program of {len(body)} bytes")
    sampling, version, channels = CODE.unpack_from(body)
    try:
        return MoteProgram(site, sampling, version, channels, body[CODE.size :])
    except ProgramError as error:
        raise PayloadError("code", site, str(error)) from error


def annotate_assignment(assignment: MoteAssignment) -> Iterator[tuple[int, str]]:
    """Yield (number of bytes, meaning) for an image, for `gateway.frame_annotation`."""
    yield 1, "section PARENT"
    yield 2, f"of {PARENT.size} bytes"
    yield 2, "the base station" if assignment.parent == COORDINATOR else f"mote {assignment.parent}"
    if found := assignment.radio_schedule:
        yield 1, "section AGENDA"
        yield 2, f"of {ROUNDS.size + SLOT.size * len(found.slots)} bytes"
        yield 4, f"each {found.period_ms} ms"
        yield 4, f"from round {found.first} on"
        yield 4, f"slots may repeat after {found.repeat_ms} ms"
        yield 4, f"slots in one of {found.rounds.every} rounds"
        yield 4, f"the first is round {found.rounds.phase}"
        yield 1, f"polls in one of {found.rounds.poll_every} rounds"
        yield 1, f"the first is round {found.poll_phase}"
        for slot in found.slots:
            yield 1, slot.activity.value
            yield 4, f"from {slot.start_ms} ms on"
            yield 2, f"for {slot.length_ms} ms"
            yield 2, f"{'from' if slot.activity is Activity.RECEIVE else 'to'} {slot.peer or 'the base station'}"
    for program in assignment.programs:
        yield 1, "section CODE"
        yield 2, f"of {CODE.size + len(program.code)} bytes"
        yield 1, f"for sampling {program.sampling}"
        yield 2, f"version {program.version}"
        yield 1, f"{program.channels} channels"
        yield from annotate_code(program.code)


def annotate_code(code: bytes) -> Iterator[tuple[int, str]]:
    """Yield (number of bytes, instruction) for a program."""
    for _, opcode, operands in decode_instructions(code):
        yield opcode.length, " ".join((opcode.name, *(str(operand) for operand in operands)))


def group_by_site(compiled: Iterable[MoteProgram]) -> dict[int, tuple[MoteProgram, ...]]:
    """Return the programs of each site."""
    by_site: dict[int, tuple[MoteProgram, ...]] = {}
    for program in compiled:
        by_site[program.site] = (*by_site.get(program.site, ()), program)
    return by_site
