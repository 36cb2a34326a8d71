"""Bytes <-> frames, without any input or output of its own.

`encode` and `decode` are for transports that keep messages apart (MQTT, radio); `FrameDecoder` and `encode_stream` are
for byte streams (serial lines, memory). SPEC.md has the bits.
"""

import struct
from collections import deque
from typing import Final

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


class NeedData:
    """The decoder has given all it has."""

    def __repr__(self) -> str:
        return "NEED_DATA"


NEED_DATA: Final = NeedData()


def encode(frame: Frame, mtu: int = MAX_FRAME) -> bytes:
    """A frame as one message; LinkError if the link has no room for it."""
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
    """One message -> its frame, or FrameError `short`, `long`, `version`, `kind`, `flags` or `route`."""
    if len(message) < HEADER_SIZE:
        raise FrameError("short", f"{len(message)} bytes are no frame: the header alone has {HEADER_SIZE}", message)
    if len(message) > mtu:
        raise FrameError("long", f"{len(message)} bytes are more than a frame's {mtu}", message)
    first, flags, mote, boot, seq, sender, receiver = HEADER.unpack_from(message)
    version, number = first >> 4, first & 0x0F
    if version != VERSION:
        raise FrameError("version", f"frame of version {version}; this is version {VERSION}", message)
    if (kind := KINDS.get(number)) is None:
        raise FrameError("kind", f"there is no kind {number} of frames", message)
    if flags & ~KNOWN_FLAGS:
        raise FrameError("flags", f"flags {flags:#04x} have bits without a meaning", message)
    end = len(message) - (SEAL_SIZE if flags & SEALED else 0)
    if end < HEADER_SIZE:
        raise FrameError("short", f"{len(message)} bytes cannot hold a header and a seal", message)
    if end > mtu - SEAL_SIZE:
        raise FrameError("long", "the payload leaves no room for a seal", message)
    route = _route(message, end) if flags & ROUTED else ()
    start = HEADER_SIZE + route_size(len(route))
    if flags & PENDING and flags & DOWN and (kind is not FrameKind.ACK or start < end):
        raise FrameError("flags", "something pending is told upwards, or in the answer to a frame", message)
    if flags & REPEATED and flags & DOWN:
        raise FrameError("flags", "only what goes up is told to be repeated", message)
    return Frame(
        kind=kind,
        mote=MoteId(mote),
        boot=boot,
        seq=seq,
        payload=bytes(message[start:end]),
        down=bool(flags & DOWN),
        want_ack=bool(flags & WANT_ACK),
        seal=bytes(message[end:]),
        sender=MoteId(sender),
        receiver=MoteId(receiver),
        route=route,
        pending=bool(flags & PENDING),
        repeated=bool(flags & REPEATED),
    )


def _route(message: bytes, end: int) -> tuple[MoteId, ...]:
    hops = message[HEADER_SIZE] if end > HEADER_SIZE else 0
    if not 1 <= hops <= MAX_ROUTE or HEADER_SIZE + route_size(hops) > end:
        raise FrameError("route", f"{end - HEADER_SIZE} bytes hold no route of {hops} hops", message)
    return struct.unpack_from(f"<{hops}H", message, HEADER_SIZE + 1)


def encode_stream(frame: Frame, mtu: int = MAX_FRAME) -> bytes:
    """A frame as it goes onto a byte stream."""
    return framing.stuff(encode(frame, mtu))


class FrameDecoder:
    """Finds the frames in a byte stream, however it was cut into chunks.

    A damaged frame is an event like any other: the next delimiter starts afresh. At most one frame's worth of
    unfinished bytes is kept, so noise cannot fill the memory.
    """

    def __init__(self, mtu: int = MAX_FRAME) -> None:
        self.mtu, self.limit = mtu, framing.stuffed_size(mtu)
        self._unfinished = b""
        self._overlong = False
        self._events: deque[Frame | FrameError] = deque()

    def receive_bytes(self, chunk: bytes) -> None:
        *finished, rest = (self._unfinished + chunk).split(framing.DELIMITER)
        for stuffed in finished:
            self._finish(stuffed)
        if len(rest) > self.limit:
            self._overlong = True
            rest = rest[: self.limit]
        self._unfinished = rest

    def next_event(self) -> Frame | FrameError | NeedData:
        """The next frame, or what was found instead of one, or NEED_DATA."""
        return self._events.popleft() if self._events else NEED_DATA

    @property
    def trailing(self) -> bytes:
        """Bytes after the last delimiter: the beginning of a frame, or noise."""
        return self._unfinished

    def _finish(self, stuffed: bytes) -> None:
        overlong, self._overlong = self._overlong or len(stuffed) > self.limit, False
        if not stuffed:
            return  # Two delimiters in a row: senders may put one in front to end what noise began.
        try:
            if overlong:
                raise FrameError("long", f"more than {self.limit} bytes without a delimiter", stuffed)
            self._events.append(decode(framing.unstuff(stuffed), self.mtu))
        except FrameError as error:
            self._events.append(error)
