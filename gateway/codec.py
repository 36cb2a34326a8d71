"""Encode and decode frames, without input or output.

`encode` and `decode` are for transports that keep messages apart (MQTT, radio). `encode_stream` and `FrameDecoder` are
for byte streams (serial lines, memory). SPEC.md defines every bit.
"""

import struct
from collections import deque
from collections.abc import Iterator

from gateway import framing
from gateway.errors import FrameError, LinkError
from gateway.frame import (
    HEADER_SIZE,
    MAX_FRAME,
    MAX_ROUTE,
    SEAL_SIZE,
    VERSION,
    Frame,
    FrameKind,
    MoteId,
    payload_room,
    route_size,
)

HEADER = struct.Struct("<BBHHHHH")
SEALED, DOWN, WANT_ACK, ROUTED, PENDING, REPEATED = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
KNOWN_FLAGS = SEALED | DOWN | WANT_ACK | ROUTED | PENDING | REPEATED
KINDS = {int(kind): kind for kind in FrameKind}


def encode(frame: Frame, mtu: int = MAX_FRAME) -> bytes:
    """Encode a frame as one message of at most `mtu` bytes. Raises LinkError if it does not fit."""
    if len(frame.payload) > payload_room(mtu, len(frame.route)):
        raise LinkError(f"a payload of {len(frame.payload)} bytes does not fit into a frame of {mtu}")
    flags = (SEALED if frame.seal else 0) | (DOWN if frame.down else 0) | (WANT_ACK if frame.want_ack else 0)
    flags |= (ROUTED if frame.route else 0) | (PENDING if frame.pending else 0)
    flags |= REPEATED if frame.repeated else 0
    header = HEADER.pack(
        VERSION << 4 | frame.kind, flags, frame.mote, frame.boot, frame.seq, frame.sender, frame.receiver
    )
    route = struct.pack(f"<B{len(frame.route)}H", len(frame.route), *frame.route) if frame.route else b""
    return header + route + frame.payload + frame.seal


def decode(message: bytes, mtu: int = MAX_FRAME) -> Frame:
    """Decode one message. Raises FrameError with code `short`, `long`, `version`, `kind`, `flags` or `route`."""
    if len(message) < HEADER_SIZE:
        raise FrameError("short", f"expected at least {HEADER_SIZE} bytes of header, found {len(message)}", message)
    if len(message) > mtu:
        raise FrameError("long", f"expected a frame of at most {mtu} bytes, found {len(message)}", message)
    first, flags, mote, boot, seq, sender, receiver = HEADER.unpack_from(message)
    version, number = first >> 4, first & 0x0F
    if version != VERSION:
        raise FrameError("version", f"expected a frame of version {VERSION}, found {version}", message)
    if (kind := KINDS.get(number)) is None:
        raise FrameError("kind", f"unknown kind of frame {number}", message)
    if flags & ~KNOWN_FLAGS:
        raise FrameError("flags", f"flags {flags:#04x} have undefined bits", message)
    end = len(message) - (SEAL_SIZE if flags & SEALED else 0)
    if end < HEADER_SIZE:
        raise FrameError("short", f"{len(message)} bytes are too few for a header and a seal", message)
    if end > mtu - SEAL_SIZE:
        raise FrameError("long", "the payload leaves no room for a seal", message)
    route = _route(message, end) if flags & ROUTED else ()
    start = HEADER_SIZE + route_size(len(route))
    if flags & PENDING and flags & DOWN and (kind is not FrameKind.ACK or start < end):
        raise FrameError("flags", "PENDING is allowed in upward frames and in an ACK without payload", message)
    if flags & REPEATED and flags & DOWN:
        raise FrameError("flags", "REPEATED is allowed in upward frames only", message)
    return Frame(
        kind=kind,
        mote=mote,
        boot=boot,
        seq=seq,
        payload=bytes(message[start:end]),
        down=bool(flags & DOWN),
        want_ack=bool(flags & WANT_ACK),
        seal=bytes(message[end:]),
        sender=sender,
        receiver=receiver,
        route=route,
        pending=bool(flags & PENDING),
        repeated=bool(flags & REPEATED),
    )


def _route(message: bytes, end: int) -> tuple[MoteId, ...]:
    """Return the route behind the header; `end` is where the payload ends."""
    hops = message[HEADER_SIZE] if end > HEADER_SIZE else 0
    if not 1 <= hops <= MAX_ROUTE or HEADER_SIZE + route_size(hops) > end:
        raise FrameError("route", f"{end - HEADER_SIZE} bytes are too few for a route of {hops} hops", message)
    return struct.unpack_from(f"<{hops}H", message, HEADER_SIZE + 1)


def encode_stream(frame: Frame, mtu: int = MAX_FRAME) -> bytes:
    """Encode a frame of at most `mtu` bytes for a byte stream. Raises LinkError if it does not fit."""
    return framing.stuff(encode(frame, mtu))


class FrameDecoder:
    """Finds the frames in a byte stream that arrives in chunks of any size.

    A damaged frame becomes a FrameError, and the decoder resynchronizes at the next delimiter. It keeps at most one
    frame of unfinished bytes, so noise cannot exhaust memory.
    """

    def __init__(self, mtu: int = MAX_FRAME) -> None:
        self.mtu, self.limit = mtu, framing.stuffed_size(mtu)
        self._unfinished = b""
        self._overlong = False
        self._events: deque[Frame | FrameError] = deque()

    def receive_bytes(self, chunk: bytes) -> None:
        """Decode what the next chunk of the stream completes; `events` returns it."""
        *finished, rest = (self._unfinished + chunk).split(framing.DELIMITER)
        for stuffed in finished:
            self._finish(stuffed)
        if len(rest) > self.limit:
            self._overlong = True
            rest = rest[: self.limit]
        self._unfinished = rest

    def events(self) -> Iterator[Frame | FrameError]:
        """Yield, each once and in order, the decoded frames and the errors found instead of frames."""
        while self._events:
            yield self._events.popleft()

    def _finish(self, stuffed: bytes) -> None:
        overlong, self._overlong = self._overlong or len(stuffed) > self.limit, False
        if not stuffed:
            return  # Two delimiters in a row: a sender may send one first to end what noise began.
        try:
            if overlong:
                raise FrameError("long", f"more than {self.limit} bytes without a delimiter", stuffed)
            self._events.append(decode(framing.unstuff(stuffed), self.mtu))
        except FrameError as error:
            self._events.append(error)
