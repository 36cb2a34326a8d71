"""DOOR DOWN: messages for motes -> bytes on a transport, until acknowledged or given up."""

from collections.abc import Iterable, Iterator

from gateway.codec import encode_stream
from gateway.frame import Frame, Message
from gateway.link import Links
from gateway.transports import Transport


def post(messages: Iterable[Message], links: Links) -> list[Frame]:
    """Number the messages and queue each on its mote's link."""
    return [links.of(message.mote).post(message) for message in messages]


def descend(links: Links, transport: Transport, now: int) -> list[Frame]:
    """Send what is due on any link at `now` (ms): new frames, and those nobody answered in time."""
    return [frame for link in links.by_mote.values() for frame in _send(link.due(now), transport)]


def answer(answers: Iterable[Frame], transport: Transport) -> None:
    """Send acknowledgements; they are never repeated by themselves."""
    for frame in answers:
        transport.send(encode_stream(frame))


def _send(frames: Iterable[Frame], transport: Transport) -> Iterator[Frame]:
    for frame in frames:
        transport.send(encode_stream(frame))
        yield frame
