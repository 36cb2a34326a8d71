"""DOOR DOWN: desired states of motes become bytes on a transport, until the motes report them."""

from collections.abc import Iterable, Mapping

from gateway.codec import encode_stream
from gateway.desired_state import DesiredState
from gateway.frame import Frame, MoteId
from gateway.reconciler import MoteReconcilers
from gateway.transports import Transport


def set_desired(desired: Mapping[MoteId, DesiredState], reconcilers: MoteReconcilers, now: int) -> None:
    """Set the desired states of motes; missing images are queued on their links."""
    reconcilers.set_desired(desired, now)


def maintain(reconcilers: MoteReconcilers, transport: Transport, now: int) -> None:
    """Run the timers of all motes at `now` (ms): send TIME and gap requests, queue repeated messages."""
    _send(reconcilers.run_timers(now), reconcilers, transport)


def send_due(reconcilers: MoteReconcilers, transport: Transport, now: int) -> list[Frame]:
    """Send and return the frames that are due on any link at `now` (ms): new ones, and retransmissions."""
    sent = [frame for link in reconcilers.links.by_mote.values() for frame in link.due(now)]
    _send(sent, reconcilers, transport)
    return sent


def send_acks(acks: Iterable[Frame], transport: Transport) -> None:
    """Send acknowledgements to the neighbours that handed the frames over; they are never retransmitted."""
    for frame in acks:
        transport.send(encode_stream(frame))


def _send(frames: Iterable[Frame], reconcilers: MoteReconcilers, transport: Transport) -> None:
    for frame in frames:
        transport.send(encode_stream(frame.along(reconcilers.path_to(frame.mote)), reconcilers.mtu))
