"""A network: motes on the air, and the gateways that join air and byte stream, as a radio stick on a serial line does."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from gateway.codec import NEED_DATA, FrameDecoder, decode, encode_stream
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
    """A radio of the base station. It keeps a frame until the base station has answered it, and sends it there again
    after a while; it says whom it hears. Without a wire it is where frames end."""

    PATIENCE_MS = 10_000
    BOOT = 1

    def __init__(self, number: int, timing: Timing, kernel: Kernel, air: RadioMedium, trace: Trace,
                 provenance: Provenance | None = None) -> None:  # fmt: skip
        self.number, self.timing, self.account = number, timing, EnergyAccount()
        self.on = self.listening = True
        self._provenance = Provenance() if provenance is None else provenance
        self._kernel, self._trace = kernel, trace
        self._down = IndirectQueue(MacLayer(self, kernel, air, trace, RetryPolicy(again=0)))
        self._held: dict[tuple[int, int, int], tuple[Frame, int]] = {}  # each since when
        self._answered = True  # whether the base station has said anything since it was last reminded
        self.wire: Transport | None = None
        self._air, self._told, self._next_seq = air, LinksReport(number, ()), 0
        air.join(self)

    def report_neighbours(self) -> None:
        """Tell whom we hear, where that is something else than what was told."""
        heard = LinksReport(self.number, tuple(NeighbourLink(*each) for each in self._air.neighbours(self.number)))
        if self.wire and heard.differs(self._told):
            self._told = heard
            self._hold(Frame(FrameKind.LINKS, MoteId(self.number), self.BOOT, self._next_seq, encode_links(heard)))
            self._next_seq += 1

    def accept(self, message: bytes) -> bool:
        """A frame for the base station came by air."""
        try:
            frame = decode(message, self._air.mtu)
        except FrameError as error:
            self._trace.record(self._kernel.now, self.number, "rejected", code=error.code)
            return False
        if frame.down or frame.is_poll:
            return frame.is_poll
        if frame.identity not in self._held:
            self._trace.record(self._kernel.now, self.number, "delivered", kind=frame.kind.name, origin=frame.mote,
                               boot=frame.boot, seq=frame.seq, bytes=len(message))  # fmt: skip
            if frame.kind is FrameKind.PARTIAL:
                self._tell_what_is_in(frame)
            if self.wire:
                self._hold(frame)
        return True

    def _tell_what_is_in(self, frame: Frame) -> None:
        for (table, slice_, bare, group), readings in self._provenance.deliver(frame):
            of = ",".join(f"{site}:{tick}" for site, tick in sorted(readings))
            self._trace.record(self._kernel.now, self.number, "merged", origin=frame.mote, boot=frame.boot, seq=frame.seq,
                               table=table, slice=slice_, bare=int(bare), group=group, readings=of)  # fmt: skip

    def send_down(self, frame: Frame) -> None:
        """A frame came from the base station."""
        if frame.kind is FrameKind.ACK and not frame.payload:
            self._answered = True
            self._held.pop(frame.identity, None)
            return
        sent = replace(frame, sender=MoteId(self.number))
        ageing = (
            partial(advance_time, self.timing, self._kernel.now) if frame.kind is FrameKind.TIME else keep_unchanged
        )
        self._down.send(sent, True, partial(self._answer, frame), ageing)

    def has_frames_for(self, number: int) -> bool:
        return self._down.has_frames_for(number)

    def release(self, number: int) -> None:
        self._down.release(number)

    def pending(self) -> None:
        """Nobody keeps anything for a gateway, which never sleeps."""

    def _answer(self, frame: Frame) -> None:
        """The next hop has taken it: tell the base station."""
        if frame.want_ack:
            self.wire.send(encode_stream(make_ack(frame)))

    def _hold(self, frame: Frame) -> None:
        """To the base station, until it answers."""
        self._give(frame)
        if frame.want_ack:
            if not self._held:
                self._kernel.after(self.PATIENCE_MS * MS, self._remind)
            self._held[frame.identity] = frame, self._kernel.now

    def _give(self, frame: Frame) -> None:
        self.wire.send(encode_stream(replace(frame, receiver=MoteId(self.number)), self._air.mtu))

    def _remind(self) -> None:
        """Say again what was not answered; only the oldest of it while nothing is answered at all."""
        overdue = self._kernel.now - self.PATIENCE_MS * MS
        waiting = [frame for frame, since in self._held.values() if since <= overdue]
        for frame in waiting if self._answered else waiting[:1]:
            self._give(frame)
        self._answered = False
        if self._held:
            self._kernel.after(self.PATIENCE_MS * MS, self._remind)


class MoteNetwork:
    """Owns nothing but the joints; kernel, air and trace are handed in."""

    def __init__(self, kernel: Kernel, trace: Trace, motes: Sequence[Mote], gateways: Sequence[Gateway],
                 wire: Transport) -> None:  # fmt: skip
        self.kernel, self.trace = kernel, trace
        self.motes = {mote.site: mote for mote in motes}
        self._gateways = {gateway.number: gateway for gateway in gateways}
        self._wire, self._decoder = wire, FrameDecoder(LARGEST_FRAME)
        for gateway in gateways:
            gateway.wire = wire

    def start(self) -> None:
        """Switch all on; who hears whom is known as soon as everybody is there."""
        for mote in self.motes.values():
            mote.start()
        for gateway in self._gateways.values():
            self.kernel.after(0, gateway.report_neighbours, priority=1)

    def run_until(self, ms: int) -> None:
        """Let the world go on until then."""
        self.kernel.run_until(ms * MS)

    def from_wire(self) -> None:
        """Bytes came from the base station: put their frames on the air."""
        self._decoder.receive_bytes(self._wire.receive())
        while (event := self._decoder.next_event()) is not NEED_DATA:
            if isinstance(event, FrameError):
                self.trace.record(self.kernel.now, COORDINATOR, "rejected", code=event.code)
            else:
                self._gateways.get(event.sender, self._first).send_down(event)

    @property
    def _first(self) -> Gateway:
        return self._gateways[min(self._gateways)]
