"""A network: motes on the air, and the sink that joins air and byte stream, as a radio stick on a serial line does."""

from gateway.codec import NEED_DATA, FrameDecoder, decode, encode, encode_stream
from gateway.errors import FrameError
from gateway.frame import COORDINATOR
from gateway.transports import Transport
from simulator.kernel import Kernel
from simulator.mote import Mote
from simulator.radio import NullAir
from simulator.trace import Trace


class Network:
    """Owns nothing but the joints; kernel, air and trace are handed in."""

    def __init__(self, kernel: Kernel, air: NullAir, trace: Trace, motes: list[Mote], wire: Transport) -> None:
        self.kernel, self.trace, self.motes = kernel, trace, motes
        self._air, self._wire = air, wire
        self._decoder = FrameDecoder()
        air.join(COORDINATOR, self._from_air)

    def start(self) -> None:
        for mote in self.motes:
            mote.start()

    def run_until(self, ms: int) -> None:
        """Let the world go on until then."""
        self.kernel.run_until(ms)

    def from_wire(self) -> None:
        """Bytes came from the base station: put their frames on the air."""
        self._decoder.receive_bytes(self._wire.receive())
        while (event := self._decoder.next_event()) is not NEED_DATA:
            if isinstance(event, FrameError):
                self.trace.record(self.kernel.now, COORDINATOR, "rejected", code=event.code)
            else:
                self._air.send(COORDINATOR, event.mote, encode(event))

    def _from_air(self, message: bytes) -> None:
        self._wire.send(encode_stream(decode(message)))
