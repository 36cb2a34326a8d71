"""What a mote should have and what it says it has, and the messages that bring the one to the other.

Two records and a pure function. Nothing here remembers what was sent before: whatever was lost, doubled or forgotten,
the next look says again what is missing, and says nothing once nothing is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from gateway.frame import MAX_PAYLOAD, Frame, FrameKind, Message, MoteId
from gateway.image import NO_IMAGE, Image, Stamp, encode_chunk, split_into_chunks
from gateway.payload import Hello, MissingBlocks, RefusedImage

ORDER = (FrameKind.PROGRAM, FrameKind.SCHEDULE)
"""A program goes first: a sampling that is begun without its code measures in vain."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """What a mote should have; None where it may have what it likes."""

    schedule: Image | None = None
    program: Image | None = None

    def image(self, kind: FrameKind) -> Image | None:
        return self.schedule if kind is FrameKind.SCHEDULE else self.program


@dataclass(frozen=True, slots=True)
class ReportedState:
    """What a mote has said since its start number `boot`; None: it has said nothing, and is to be asked.

    `seq` is the number of the hello that said so; `clock_off_ms` is by how much its clock was then ahead of ours, None
    if it had no time. `arriving` is what it lacks of an image on its way, `refused` what it cannot take.
    """

    boot: int | None = None
    seq: int = 0
    installed: Mapping[FrameKind, Stamp] = field(default_factory=dict)
    clock_off_ms: int | None = None
    arriving: Mapping[FrameKind, MissingBlocks] = field(default_factory=dict)
    refused: frozenset[RefusedImage] = frozenset()

    def after_hello(self, frame: Frame, hello: Hello, now_ms: int) -> "ReportedState":
        """What it says now takes the place of what it said before; what it said before and comes late does not."""
        boot = frame.boot
        if self.boot is not None and (boot, frame.seq) < (self.boot, self.seq):
            return self
        installed = {FrameKind.SCHEDULE: hello.schedule, FrameKind.PROGRAM: hello.program}
        off = None if hello.clock_ms is None else hello.clock_ms - now_ms
        same = boot == self.boot
        arriving = {k: w for k, w in self.arriving.items() if same and w.stamp != installed[k]}
        return ReportedState(boot, frame.seq, installed, off, arriving, self.refused if same else frozenset())

    def after_event(self, event: MissingBlocks | RefusedImage) -> "ReportedState":
        if isinstance(event, MissingBlocks):
            return replace(self, arriving={**self.arriving, event.kind: event})
        return replace(self, refused=self.refused | {event})


def is_up_to_date(desired: DesiredState, reported: ReportedState) -> bool:
    """Whether the mote has what it should have."""
    return reported.boot is not None and not any(_outdated_image(desired, reported, kind) for kind in ORDER)


def plan_messages(
    desired: DesiredState, reported: ReportedState, mote: MoteId, room: int = MAX_PAYLOAD
) -> list[Message]:
    """What is to be said to the mote now: the question who it is, or the chunks that it lacks, or nothing."""
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
    """The image that the mote should have and has not."""
    image = desired.image(kind)
    return image if image and reported.installed.get(kind, NO_IMAGE) != image.stamp else None


def _missing_blocks(image: Image, wants: MissingBlocks | None) -> frozenset[int] | None:
    return wants.missing if wants and wants.stamp == image.stamp else None
