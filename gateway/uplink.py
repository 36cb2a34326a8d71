"""DOOR UP: bytes from a transport -> the frames that were not here before."""

from dataclasses import dataclass

from gateway.codec import NEED_DATA, FrameDecoder
from gateway.errors import FrameError
from gateway.frame import Frame, Kind
from gateway.link import Links, acknowledgement


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a chunk of bytes brought. Send `answers` once `frames` are in safe hands; `copies` were here before."""

    frames: tuple[Frame, ...]
    copies: tuple[Frame, ...]
    answers: tuple[Frame, ...]
    errors: tuple[FrameError, ...]


def rise(chunk: bytes, decoder: FrameDecoder, links: Links) -> Arrivals:
    """Decode, take acknowledgements, leave out duplicates (they are answered again: the first answer was lost)."""
    decoder.receive_bytes(chunk)
    frames, copies, answers, errors = [], [], [], []
    while (event := decoder.next_event()) is not NEED_DATA:
        if isinstance(event, FrameError):
            errors.append(event)
        elif event.down:
            errors.append(FrameError("direction", f"a frame to mote {event.mote} came from the motes"))
        elif event.kind is Kind.ACK:
            links.of(event.mote).acknowledged(event)
        else:
            if event.want_ack:
                answers.append(acknowledgement(event))
            (frames if links.of(event.mote).accept(event) else copies).append(event)
    return Arrivals(tuple(frames), tuple(copies), tuple(answers), tuple(errors))
