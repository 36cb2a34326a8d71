"""The backhaul between gateways and base station, with the duplicates, delays and damage of a scenario."""

from functools import partial

from gateway import framing
from gateway.codec import decode
from gateway.frame import LARGEST_FRAME, FrameKind
from gateway.transports import Transport
from simulator.counter_rng import Purpose, draw, uniform
from simulator.kernel import MS, Kernel
from simulator.scenario import WireFaults
from simulator.trace import Trace


class Backhaul:
    """A transport for gateways: sends their frames on through `transport`, some of them twice, late or damaged."""

    def __init__(self, transport: Transport, kernel: Kernel, trace: Trace, wire: WireFaults, seed: int) -> None:
        self._transport, self._kernel, self._trace = transport, kernel, trace
        self._wire, self._seed = wire, seed
        self._count = 0

    def send(self, data: bytes) -> None:
        self._count += 1
        copies = 2 if self._luck(Purpose.DUPLICATE) < self._wire.duplicated else 1
        for copy in range(copies):
            received = self._damage(data, copy)
            share = self._luck(Purpose.DELAY, copy)
            late = share < self._wire.delayed
            wait = int(self._wire.delay_ms * MS * share / self._wire.delayed) if late else 0
            if late:
                self._kernel.after(wait, partial(self._deliver, received, received == data))
            else:
                self._deliver(received, received == data)

    def receive(self) -> bytes:
        return self._transport.receive()

    def open(self) -> None:
        self._transport.open()

    def close(self) -> None:
        self._transport.close()

    def _luck(self, purpose: Purpose, copy: int = 0) -> float:
        return uniform(draw(self._seed, purpose, self._count, copy))

    def _damage(self, data: bytes, copy: int) -> bytes:
        """Flip one bit, or none; never one of the delimiter, so that no other frame is damaged."""
        if self._luck(Purpose.CORRUPTION, copy) >= self._wire.damaged:
            return data
        bit = draw(self._seed, Purpose.PLACE, self._count, copy) % (8 * (len(data) - 1))
        return bytes(byte ^ (1 << bit % 8 if at == bit // 8 else 0) for at, byte in enumerate(data))

    def _deliver(self, data: bytes, intact: bool) -> None:
        if intact:
            frame = decode(framing.unstuff(data.rstrip(framing.DELIMITER)), LARGEST_FRAME)
            if frame.kind is not FrameKind.ACK:
                self._trace.record(self._kernel.now, 0, "arrived", kind=frame.kind.name, origin=frame.mote, boot=frame.boot,
                                   seq=frame.seq)  # fmt: skip
        else:
            self._trace.record(self._kernel.now, 0, "damaged", bytes=len(data))
        self._transport.send(data)
