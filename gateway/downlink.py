"""DOOR DOWN: what motes should have -> bytes on a transport, until they say that they have it."""

from collections.abc import Iterable, Mapping

from gateway.codec import encode_stream
from gateway.desired_state import Desired
from gateway.frame import Frame, MoteId
from gateway.reconciler import Keepers
from gateway.transports import Transport


def desire(desired: Mapping[MoteId, Desired], keepers: Keepers, now: int) -> None:
    """From now on motes should have this; what lacks is queued on their links."""
    keepers.desire(desired, now)


def tend(keepers: Keepers, transport: Transport, now: int) -> None:
    """Look after each mote: what the clock brings about is sent at once, or queued on its link."""
    _send(keepers.look(now), keepers, transport)


def descend(keepers: Keepers, transport: Transport, now: int) -> list[Frame]:
    """Send what is due on any link at `now` (ms): new frames, and those nobody answered in time."""
    sent = [frame for link in keepers.links.by_mote.values() for frame in link.due(now)]
    _send(sent, keepers, transport)
    return sent


def answer(answers: Iterable[Frame], transport: Transport) -> None:
    """Send acknowledgements; they go to whoever handed the frame over, and are never repeated by themselves."""
    for frame in answers:
        transport.send(encode_stream(frame))


def _send(frames: Iterable[Frame], keepers: Keepers, transport: Transport) -> None:
    for frame in frames:
        transport.send(encode_stream(frame.along(keepers.way(frame.mote)), keepers.mtu))
