"""DOOR UP: bytes from a transport become new frames, acknowledgements to send, and errors."""

from dataclasses import dataclass

from gateway.codec import FrameDecoder
from gateway.errors import FrameError
from gateway.frame import Frame, FrameKind
from gateway.link import Links, make_ack


@dataclass(frozen=True, slots=True)
class DecodedFrames:
    """The frames in a chunk of bytes. The caller sends `acks` after it has stored `frames` durably."""

    frames: tuple[Frame, ...]
    duplicates: tuple[Frame, ...]
    acks: tuple[Frame, ...]
    errors: tuple[FrameError, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to do for the chunk."""
        return not (self.frames or self.duplicates or self.acks or self.errors)


def receive(chunk: bytes, decoder: FrameDecoder, links: Links) -> DecodedFrames:
    """Decode bytes, process acknowledgements, and separate duplicates.

    Duplicates are acknowledged again, because the first acknowledgement may have been lost.
    """
    decoder.receive_bytes(chunk)
    frames: list[Frame] = []
    duplicates: list[Frame] = []
    acks: list[Frame] = []
    errors: list[FrameError] = []
    for event in decoder.events():
        if isinstance(event, FrameError):
            errors.append(event)
        elif event.down:
            errors.append(FrameError("direction", f"a frame to mote {event.mote} arrived from the motes"))
        elif event.kind is FrameKind.ACK:
            links.of(event.mote).take_ack(event)
        else:
            if event.want_ack:
                acks.append(make_ack(event))
            (frames if links.of(event.mote).accept(event) else duplicates).append(event)
    return DecodedFrames(tuple(frames), tuple(duplicates), tuple(acks), tuple(errors))
