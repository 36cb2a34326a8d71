"""DOOR DOWN: what motes should have -> bytes on a transport, until they say that they have it."""

from collections.abc import Iterable, Mapping

from gateway.codec import encode_stream
from gateway.desired_state import DesiredState
from gateway.frame import Frame, MoteId
from gateway.reconciler import MoteReconcilers
from gateway.transports import Transport


def set_desired(desired: Mapping[MoteId, DesiredState], reconcilers: MoteReconcilers, now: int) -> None:
    """From now on motes should have this; what lacks is queued on their links."""
    reconcilers.set_desired(desired, now)


def maintain(reconcilers: MoteReconcilers, transport: Transport, now: int) -> None:
    """Look after each mote: what the clock brings about is sent at once, or queued on its link."""
    _send(reconcilers.run_timers(now), reconcilers, transport)


def send_due(reconcilers: MoteReconcilers, transport: Transport, now: int) -> list[Frame]:
    """Send what is due on any link at `now` (ms): new frames, and those nobody answered in time."""
    sent = [frame for link in reconcilers.links.by_mote.values() for frame in link.due(now)]
    _send(sent, reconcilers, transport)
    return sent


def send_acks(answers: Iterable[Frame], transport: Transport) -> None:
    """Send acknowledgements; they go to whoever handed the frame over, and are never repeated by themselves."""
    for frame in answers:
        transport.send(encode_stream(frame))


def _send(frames: Iterable[Frame], reconcilers: MoteReconcilers, transport: Transport) -> None:
    for frame in frames:
        transport.send(encode_stream(frame.along(reconcilers.way(frame.mote)), reconcilers.mtu))
