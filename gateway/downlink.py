"""DOOR DOWN: what motes should have -> bytes on a transport, until they say that they have it."""

from collections.abc import Iterable, Iterator, Mapping

from gateway.codec import encode_stream
from gateway.frame import Frame, MoteId
from gateway.keeper import Keepers
from gateway.link import Links
from gateway.reconcile import Desired
from gateway.transports import Transport


def desire(desired: Mapping[MoteId, Desired], keepers: Keepers, now: int) -> None:
    """From now on motes should have this; what lacks is queued on their links."""
    keepers.desire(desired, now)


def tend(keepers: Keepers, transport: Transport, now: int) -> None:
    """Look after each mote: what is due by the clock is sent at once, or queued on its link."""
    answer(keepers.look(now), transport)


def descend(links: Links, transport: Transport, now: int) -> list[Frame]:
    """Send what is due on any link at `now` (ms): new frames, and those nobody answered in time."""
    return [frame for link in links.by_mote.values() for frame in _send(link.due(now), transport)]


def answer(answers: Iterable[Frame], transport: Transport) -> None:
    """Send what is never repeated by itself: acknowledgements, times, questions for gaps."""
    for frame in answers:
        transport.send(encode_stream(frame))


def _send(frames: Iterable[Frame], transport: Transport) -> Iterator[Frame]:
    for frame in frames:
        transport.send(encode_stream(frame))
        yield frame
