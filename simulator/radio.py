"""The air between motes. So far its null version: nothing is lost, nothing collides, all hear each other."""

from collections.abc import Callable

from simulator.kernel import Kernel
from simulator.trace import Trace

PERFECT = 255


class NullAir:
    """Carries a message to its receiver after `delay_ms`. `cut` and `mend` silence a mote, both ways, for tests."""

    def __init__(self, kernel: Kernel, trace: Trace, delay_ms: int = 0) -> None:
        self._kernel, self._trace, self._delay = kernel, trace, delay_ms
        self._receivers: dict[int, Callable[[bytes], None]] = {}
        self._cut: set[int] = set()

    def join(self, number: int, receive: Callable[[bytes], None]) -> None:
        """Take part, under a number of one's own."""
        if number in self._receivers:
            raise ValueError(f"there are two motes with the number {number}")
        self._receivers[number] = receive

    def send(self, sender: int, receiver: int, message: bytes) -> None:
        if receiver not in self._receivers or self._cut & {sender, receiver}:
            self._trace.record(self._kernel.now, sender, "lost", to=receiver, bytes=message.hex())
            return
        self._kernel.after(self._delay, lambda: self._receivers[receiver](message))

    def neighbours(self, number: int) -> list[tuple[int, int]]:
        """Who a mote hears, and how well (0 to 255)."""
        return [(other, PERFECT) for other in sorted(self._receivers) if other != number]

    def cut(self, number: int) -> None:
        self._cut.add(number)

    def mend(self, number: int) -> None:
        self._cut.discard(number)
