"""Desired and reported state of a mote, and the messages that turn one into the other.

Two records and a pure function, which remembers nothing. Frames may be lost, repeated or late: the next comparison
again finds what is missing, and finds nothing once the states agree.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.frame import MAX_PAYLOAD, Frame, FrameKind, Message, MoteId
from gateway.image import NO_IMAGE, Image, Stamp, encode_chunk, split_into_chunks
from gateway.payload import Hello, MissingBlocks, RefusedImage

ORDER = (FrameKind.PROGRAM, FrameKind.SCHEDULE)
"""The program goes first: a sampling that starts without its code measures in vain."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The images a mote should have; None if any image is fine."""

    schedule: Image | None = None
    program: Image | None = None

    def image(self, kind: FrameKind) -> Image | None:
        """Return the desired image of a kind (SCHEDULE or PROGRAM)."""
        return self.schedule if kind is FrameKind.SCHEDULE else self.program


@dataclass(frozen=True, slots=True)
class ReportedState:
    """The report of a mote since its restart number `boot`; None if it has not reported and the station must query it.

    `seq` is the number of the HELLO with the report, `battery_mv` its voltage then. `clock_off_ms` is how far its clock was then ahead of ours, None
    if it had no time. `arriving` holds the missing blocks of incomplete images, `refused` the images it cannot install.
    """

    boot: int | None = None
    seq: int = 0
    installed: Mapping[FrameKind, Stamp] = field(default_factory=dict)
    clock_off_ms: int | None = None
    arriving: Mapping[FrameKind, MissingBlocks] = field(default_factory=dict)
    refused: frozenset[RefusedImage] = frozenset()
    battery_mv: int | None = None

    def after_hello(self, frame: Frame, hello: Hello, now_ms: int) -> "ReportedState":
        """Return the state after a HELLO; unchanged if the HELLO is older than the last one."""
        boot = frame.boot
        if self.boot is not None and (boot, frame.seq) < (self.boot, self.seq):
            return self
        installed = {FrameKind.SCHEDULE: hello.schedule, FrameKind.PROGRAM: hello.program}
        off = None if hello.clock_ms is None else hello.clock_ms - now_ms
        same = boot == self.boot
        arriving = {k: w for k, w in self.arriving.items() if same and w.stamp != installed[k]}
        refused = self.refused if same else frozenset()
        return ReportedState(boot, frame.seq, installed, off, arriving, refused, hello.battery_mv)

    def after_event(self, event: MissingBlocks | RefusedImage) -> "ReportedState":
        """Return the state after an event about an image."""
        if isinstance(event, MissingBlocks):
            return replace(self, arriving={**self.arriving, event.kind: event})
        return replace(self, refused=self.refused | {event})


def is_up_to_date(desired: DesiredState, reported: ReportedState) -> bool:
    """Return whether the mote has reported all desired images."""
    if reported.boot is None:
        return False
    schedule, program, installed = desired.schedule, desired.program, reported.installed
    return (schedule is None or installed.get(FrameKind.SCHEDULE, NO_IMAGE) == schedule.stamp) and (
        program is None or installed.get(FrameKind.PROGRAM, NO_IMAGE) == program.stamp
    )


def plan_messages(
    desired: DesiredState, reported: ReportedState, mote: MoteId, room: int = MAX_PAYLOAD
) -> list[Message]:
    """Return the messages that the mote needs: a request for a HELLO, or the missing chunks, or nothing.

    `room` is the most bytes of a payload.
    """
    if reported.boot is None:
        return [Message(FrameKind.HELLO, mote, b"")]
    return [
        Message(kind, mote, encode_chunk(chunk))
        for kind in ORDER
        if (image := _outdated_image(desired, reported, kind))
        and RefusedImage(kind, image.stamp) not in reported.refused
        for chunk in split_into_chunks(image, room, _missing_blocks(image, reported.arriving.get(kind)))
    ]


def _outdated_image(desired: DesiredState, reported: ReportedState, kind: FrameKind) -> Image | None:
    """Return the desired image of a kind if the mote does not have it."""
    image = desired.image(kind)
    return image if image and reported.installed.get(kind, NO_IMAGE) != image.stamp else None


def _missing_blocks(image: Image, report: MissingBlocks | None) -> frozenset[int] | None:
    """Return the blocks of an image that the mote has reported missing; None if all are to be sent."""
    return report.missing if report and report.stamp == image.stamp else None
