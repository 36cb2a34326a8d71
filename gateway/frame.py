"""Frames: an envelope with a header of twelve bytes around an opaque payload. SPEC.md defines every bit."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import TypeAlias

from gateway.errors import LinkError

MoteId: TypeAlias = int
"""The number of a mote or gateway on the air, 16 bits."""
HopPath: TypeAlias = tuple[MoteId, ...]
"""The path to a mote: gateway, forwarding motes, the mote itself. Empty if no path is known."""

VERSION = 2
LAST_SEQ = 0xFFFF
"""The greatest sequence number; seq 0 of the next boot follows. PARTIAL frames count down from it."""
HEADER_SIZE = 12
SEAL_SIZE = 8
# IEEE 802.15.4 carries 127 octets; addressing, its own security header and checksum may take 25 of them.
MAX_FRAME = 102
LARGEST_FRAME = 2048
"""The most bytes of a frame on any link: up to here the checksum detects any three wrong bits."""
MAX_ROUTE = 16
"""The most hops of a route."""
BROADCAST = 0xFFFF
"""The receiver of a frame for all neighbours. No mote has this number."""
COORDINATOR = 0
"""The number of the base station among the neighbours of a mote. No mote has it."""
_DEFAULT_END = -(1 << 31)
"""Stands for the default end of a hop until `Frame.__post_init__` replaces it; no number on the air is that small."""


def payload_room(mtu: int = MAX_FRAME, hops: int = 0) -> int:
    """Return the most payload bytes in a frame of `mtu` bytes with a route of `hops` hops; a seal always fits, too.

    Raises LinkError if `mtu` is too small for a header and a seal, or larger than `LARGEST_FRAME`.
    """
    if not HEADER_SIZE + SEAL_SIZE < mtu <= LARGEST_FRAME:
        raise LinkError(f"expected frames of {HEADER_SIZE + SEAL_SIZE + 1} to {LARGEST_FRAME} bytes, found {mtu}")
    return mtu - HEADER_SIZE - SEAL_SIZE - route_size(hops)


def route_size(hops: int) -> int:
    """Return the bytes that a route of `hops` hops takes behind the header."""
    return 1 + 2 * hops if hops else 0


def route_of(path: HopPath) -> tuple[MoteId, ...]:
    """Return the part of a path that goes behind the header: all but the first hop, at most `MAX_ROUTE` hops."""
    return path[2 : 2 + MAX_ROUTE]


MAX_PAYLOAD = payload_room()
"""Payload bytes that fit on every link. Payloads made without knowledge of the path keep to this."""


class FrameKind(IntEnum):
    """The kinds of payloads. The gateway reads HELLO, ACK and EVENT; the layers above read the others."""

    HELLO = 1
    SCHEDULE = 2
    PROGRAM = 3
    READING = 4
    PARTIAL = 5
    LINKS = 6
    ACK = 7
    TIME = 8
    EVENT = 9


@dataclass(frozen=True, slots=True)
class Frame:
    """One message between a mote and the base station, on one hop of its path.

    `mote` is the source of an upward frame and the destination of a downward frame. (`boot`, `seq`) is its number,
    given by its source; numbers never repeat, because the next `boot` follows the last `seq`. Kind, mote, boot and
    seq stay the same from hop to hop. `sender` and `receiver` are the ends of this hop (default: mote and base
    station), `route` the receivers of the hops that follow. `pending` says that more is waiting: in an ACK for its
    receiver, in an upward frame behind it. `repeated` marks an upward frame that may be a second copy.
    """

    kind: FrameKind
    mote: MoteId
    boot: int
    seq: int
    payload: bytes = b""
    down: bool = False
    want_ack: bool = True
    seal: bytes = field(default=b"", repr=False)
    sender: MoteId = _DEFAULT_END
    receiver: MoteId = _DEFAULT_END
    route: tuple[MoteId, ...] = ()
    pending: bool = False
    repeated: bool = False

    def __post_init__(self) -> None:
        if self.sender == _DEFAULT_END:
            object.__setattr__(self, "sender", COORDINATOR if self.down else self.mote)
        if self.receiver == _DEFAULT_END:
            object.__setattr__(self, "receiver", self.mote if self.down else COORDINATOR)
        numbers = self.mote, self.boot, self.seq, self.sender, self.receiver
        if min(numbers) < 0 or max(numbers) > 0xFFFF:
            names = ("mote", "boot", "seq", "sender", "receiver")
            name, found = next(each for each in zip(names, numbers, strict=True) if not 0 <= each[1] <= 0xFFFF)
            raise LinkError(f"expected a {name} of 16 bits, found {found}")
        if self.route and (len(self.route) > MAX_ROUTE or not all(0 <= hop <= 0xFFFF for hop in self.route)):
            raise LinkError(f"expected a route of at most {MAX_ROUTE} hops of 16 bits each, found {self.route}")
        if len(self.payload) > payload_room(LARGEST_FRAME, len(self.route)):
            raise LinkError(f"a payload of {len(self.payload)} bytes fits on no link")
        if self.pending and self.down and (self.kind is not FrameKind.ACK or self.payload):
            raise LinkError("`pending` is allowed in upward frames and in an ACK without payload")
        if self.repeated and self.down:
            raise LinkError("`repeated` is allowed in upward frames only")
        if len(self.seal) not in (0, SEAL_SIZE):
            raise LinkError(f"expected a seal of {SEAL_SIZE} bytes, found {len(self.seal)}")

    def along(self, path: HopPath) -> "Frame":
        """Return the frame as it starts on a downward path; unchanged if no path is known."""
        return replace(self, sender=path[0], receiver=path[1], route=route_of(path)) if len(path) > 1 else self

    @property
    def is_poll(self) -> bool:
        """Whether an idle mote asks its parent with this frame whether anything is pending for it."""
        return self.kind is FrameKind.ACK and self.want_ack

    @property
    def identity(self) -> tuple[int, int, int]:
        """(mote, boot, seq): equal for all copies of a frame."""
        return self.mote, self.boot, self.seq


@dataclass(frozen=True, slots=True)
class Message:
    """A payload for a mote, not yet numbered; the link makes a frame of it."""

    kind: FrameKind
    mote: MoteId
    payload: bytes
    want_ack: bool = True
