"""DOOR UP: bytes from a transport -> the frames that were not here before."""

from dataclasses import dataclass

from gateway.codec import NEED_DATA, FrameDecoder
from gateway.errors import FrameError
from gateway.frame import Frame, FrameKind
from gateway.link import Links, make_ack


@dataclass(frozen=True, slots=True)
class DecodedFrames:
    """What a chunk of bytes brought. Send `answers` once `frames` are in safe hands; `copies` were here before."""

    frames: tuple[Frame, ...]
    duplicates: tuple[Frame, ...]
    acks: tuple[Frame, ...]
    errors: tuple[FrameError, ...]


def receive(chunk: bytes, decoder: FrameDecoder, links: Links) -> DecodedFrames:
    """Decode, take acknowledgements, leave out duplicates (they are answered again: the first answer was lost)."""
    decoder.receive_bytes(chunk)
    frames, copies, answers, errors = [], [], [], []
    while (event := decoder.next_event()) is not NEED_DATA:
        if isinstance(event, FrameError):
            errors.append(event)
        elif event.down:
            errors.append(FrameError("direction", f"a frame to mote {event.mote} came from the motes"))
        elif event.kind is FrameKind.ACK:
            links.of(event.mote).take_ack(event)
        else:
            if event.want_ack:
                answers.append(make_ack(event))
            (frames if links.of(event.mote).accept(event) else copies).append(event)
    return DecodedFrames(tuple(frames), tuple(copies), tuple(answers), tuple(errors))
