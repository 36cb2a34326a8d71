"""A network: motes on the radio medium, and gateways between the medium and the byte stream to the base station."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway.codec import FrameDecoder, encode_stream
from gateway.errors import FrameError
from gateway.frame import COORDINATOR, LARGEST_FRAME, Frame, FrameKind, MoteId
from gateway.link import make_ack
from gateway.transports import Transport
from innet.payload import encode_links
from innet.routing.topology import LinksReport, NeighbourLink
from simulator.energy import EnergyAccount, Timing
from simulator.forwarder import advance_time
from simulator.indirect_queue import IndirectQueue
from simulator.kernel import MS, Kernel
from simulator.mac import MacLayer, RetryPolicy, keep_unchanged
from simulator.mote import Mote
from simulator.partial_aggregates import Provenance
from simulator.radio_medium import RadioMedium
from simulator.trace import Trace


class Gateway:
    """A radio of the base station, as a radio stick on a serial line is.

    It keeps a frame until the base station answers it, and sends it again after RETRY_MS. It reports its own links.
    Without a wire it records the frames that reach it and drops them.
    """

    RETRY_MS = 10_000

    def __init__(self, number: int, timing: Timing, kernel: Kernel, medium: RadioMedium, trace: Trace,
                 provenance: Provenance | None = None, boot: int = 1) -> None:  # fmt: skip
        self.number, self.timing, self.account, self.boot = number, timing, EnergyAccount(), boot
        self.on = self.listening = True
        self._provenance = Provenance() if provenance is None else provenance
        self._kernel, self._trace = kernel, trace
        self._indirect = IndirectQueue(MacLayer(self, kernel, medium, trace, RetryPolicy(again=0)))
        self._unanswered: dict[tuple[int, int, int], tuple[Frame, int]] = {}  # (frame, since when)
        self._answered = True  # whether the base station has answered any frame since the last retry
        self.wire: Transport | None = None
        self._medium, self._reported, self._next_seq = medium, LinksReport(number, ()), 0
        medium.join(self)

    def report_neighbours(self) -> None:
        """Send LINKS if the neighbours differ from those of the last report."""
        links = LinksReport(self.number, tuple(NeighbourLink(*each) for each in self._medium.neighbours(self.number)))
        if self.wire and links.differs(self._reported):
            self._reported = links
            frame = Frame(FrameKind.LINKS, MoteId(self.number), self.boot, self._next_seq, encode_links(links))
            self._keep_until_answered(frame)
            self._next_seq += 1

    def accept(self, message: bytes) -> bool:
        """Record a frame for the base station and pass it on."""
        try:
            frame = self._medium.decode(message)
        except FrameError as error:
            self._trace.record(self._kernel.now, self.number, "rejected", code=error.code)
            return False
        if frame.down or frame.is_poll:
            return frame.is_poll
        if frame.identity not in self._unanswered:
            self._trace.record(self._kernel.now, self.number, "delivered", kind=frame.kind.name, origin=frame.mote,
                               boot=frame.boot, seq=frame.seq, bytes=len(message))  # fmt: skip
            if frame.kind is FrameKind.PARTIAL:
                self._record_contents(frame)
            if self.wire:
                self._keep_until_answered(frame)
        return True

    def _record_contents(self, frame: Frame) -> None:
        """Record the readings in each partial of a frame."""
        for (table, slice_, bare, group), readings in self._provenance.deliver(frame):
            of = ",".join(f"{site}:{tick}" for site, tick in sorted(readings))
            self._trace.record(self._kernel.now, self.number, "merged", origin=frame.mote, boot=frame.boot, seq=frame.seq,
                               table=table, slice=slice_, bare=int(bare), group=group, readings=of)  # fmt: skip

    def send_down(self, frame: Frame) -> None:
        """Send a frame of the base station, or take its acknowledgement of one."""
        if frame.kind is FrameKind.ACK and not frame.payload:
            self._answered = True
            self._unanswered.pop(frame.identity, None)
            return
        sent = replace(frame, sender=MoteId(self.number))
        is_time = frame.kind is FrameKind.TIME
        refresh = partial(advance_time, self.timing, self._kernel.now) if is_time else keep_unchanged
        self._indirect.send(sent, True, partial(self._answer, frame), refresh)

    def has_frames_for(self, number: int) -> bool:
        return self._indirect.has_frames_for(number)

    def release(self, number: int) -> None:
        self._indirect.release(number)

    def note_pending(self) -> None:
        """No frames wait for a gateway: it never sleeps."""

    def _answer(self, frame: Frame) -> None:
        """The next hop has taken a frame: acknowledge it to the base station."""
        if frame.want_ack and self.wire:
            self.wire.send(encode_stream(make_ack(frame)))

    def _keep_until_answered(self, frame: Frame) -> None:
        """Send a frame to the base station, again and again until it answers."""
        self._forward(frame)
        if frame.want_ack:
            if not self._unanswered:
                self._kernel.after(self.RETRY_MS * MS, self._retry)
            self._unanswered[frame.identity] = frame, self._kernel.now

    def _forward(self, frame: Frame) -> None:
        if self.wire:
            self.wire.send(encode_stream(replace(frame, receiver=MoteId(self.number)), self._medium.mtu))

    def _retry(self) -> None:
        """Send unanswered frames again; only the oldest one while the base station answers none."""
        overdue = self._kernel.now - self.RETRY_MS * MS
        waiting = [frame for frame, since in self._unanswered.values() if since <= overdue]
        for frame in waiting if self._answered else waiting[:1]:
            self._forward(frame)
        self._answered = False
        if self._unanswered:
            self._kernel.after(self.RETRY_MS * MS, self._retry)


class MoteNetwork:
    """Motes and gateways on one kernel and trace, and their wire to the base station."""

    def __init__(self, kernel: Kernel, trace: Trace, motes: Sequence[Mote], gateways: Sequence[Gateway],
                 wire: Transport) -> None:  # fmt: skip
        self.kernel, self.trace = kernel, trace
        self.motes = {mote.site: mote for mote in motes}
        self._gateways = {gateway.number: gateway for gateway in gateways}
        self._wire, self._decoder = wire, FrameDecoder(LARGEST_FRAME)
        for gateway in gateways:
            gateway.wire = wire

    def start(self) -> None:
        """Switch all motes on. Gateways report their links when all motes are there."""
        for mote in self.motes.values():
            mote.start()
        for gateway in self._gateways.values():
            self.kernel.after(0, gateway.report_neighbours, priority=1)

    def run_until(self, ms: int) -> None:
        """Run the simulation until `ms` milliseconds after tick 0, that moment included."""
        self.kernel.run_until(ms * MS)

    def from_wire(self) -> None:
        """Send the frames of the base station that have arrived on the wire."""
        self._decoder.receive_bytes(self._wire.receive())
        for event in self._decoder.events():
            if isinstance(event, FrameError):
                self.trace.record(self.kernel.now, COORDINATOR, "rejected", code=event.code)
            else:
                sender = COORDINATOR if event.sender is None else event.sender
                self._gateways.get(sender, self._first).send_down(event)

    @property
    def _first(self) -> Gateway:
        return self._gateways[min(self._gateways)]
