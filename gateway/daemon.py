"""The gateway daemon: carries frames between a radio and the links of one or more gateways to the station.

It acknowledges nothing: a radio keeps a frame until the station has acknowledged it. So a gateway that loses its power
loses no reading that the station said it has.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence

from gateway.codec import FrameDecoder, encode_stream
from gateway.errors import FrameError, TransportError
from gateway.frame import LARGEST_FRAME
from gateway.log import get_log
from gateway.transports import Transport

PAUSE_SECONDS = 0.02
"""Between two looks at the radio: short beside the time of a frame on the air and at the broker."""
RETRY_SECONDS = 1.0
"""Between two looks at a radio that fails."""
MOST_WAITING = 4_096
"""Frames that wait for a link that is down; the oldest go first."""
LARGEST_BATCH = 32_768
"""Bytes of frames in one message."""

log = get_log(__name__)


class GatewayDaemon:
    """`links` are the ways to the station by gateway. The first one takes frames that are addressed to none of them.

    `counts` adds up frames up and down, damaged ones, and those dropped because the station was away for too long.
    """

    def __init__(self, radio: Transport, links: Mapping[int, Transport]) -> None:
        self._radio, self._links = radio, dict(links)
        self._decoder = FrameDecoder(LARGEST_FRAME)
        self._waiting: dict[int, deque[bytes]] = {number: deque() for number in links}
        self.counts: Counter[str] = Counter()
        self._failures: dict[str, str] = {}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End `run`; a signal handler may call it."""
        self._stopped.set()

    def run(self, before_look: Callable[[], None] | None = None) -> None:
        """Carry frames until stopped; `before_look` is called before each look."""
        while not self._stopped.is_set():
            if before_look is not None:
                before_look()
            self.look()
            self._stopped.wait(RETRY_SECONDS if "radio" in self._failures else PAUSE_SECONDS)

    def look(self) -> None:
        """Carry everything that has arrived at either end."""
        self._take_from_radio()
        for number, link in self._links.items():
            self._send_up(number, link)
            self._send_down(number, link)

    def _take_from_radio(self) -> None:
        self._decoder.receive_bytes(self._attempt("radio", self._radio.receive) or b"")
        for event in self._decoder.events():
            if isinstance(event, FrameError):
                self.counts["damaged"] += 1
                continue
            number = event.receiver if event.receiver in self._links else next(iter(self._links))
            waiting = self._waiting[number]
            if len(waiting) == MOST_WAITING:
                waiting.popleft()
                self.counts["dropped"] += 1
            waiting.append(encode_stream(event, LARGEST_FRAME))

    def _send_up(self, number: int, link: Transport) -> None:
        waiting = self._waiting[number]
        while waiting:
            batch = _batch_of(waiting)
            if not self._send(f"link of gateway {number}", link, b"".join(batch)):
                return
            for _ in batch:
                waiting.popleft()
            self.counts["up"] += len(batch)

    def _send_down(self, number: int, link: Transport) -> None:
        data = self._attempt(f"frames for gateway {number}", link.receive)
        if data and self._send("radio", self._radio, data):
            self.counts["down"] += data.count(0)

    def _send(self, what: str, to: Transport, data: bytes) -> bool:
        def send() -> bytes:
            to.send(data)
            return data

        return self._attempt(what, send) is not None

    def _attempt(self, what: str, action: Callable[[], bytes]) -> bytes | None:
        """Return what an action returns; None where it fails. A change between both is logged."""
        try:
            found = action()
        except TransportError as error:
            if self._failures.get(what) != str(error):
                log.warning("fails", part=what, error=error)
            self._failures[what] = str(error)
            return None
        if self._failures.pop(what, None) is not None:
            log.info("works again", part=what)
        return found


def _batch_of(frames: Sequence[bytes]) -> list[bytes]:
    """Return the first frames that fit into one message."""
    batch: list[bytes] = []
    size = 0
    for frame in frames:
        size += len(frame)
        if batch and size > LARGEST_BATCH:
            break
        batch.append(frame)
    return batch
