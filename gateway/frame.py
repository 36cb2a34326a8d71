"""What a frame is: an envelope with twelve bytes of header around a payload that stays opaque. SPEC.md has the bits."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NewType

from gateway.errors import LinkError

MoteId = NewType("MoteId", int)

VERSION = 2
LAST_SEQ = 0xFFFF
"""After it comes seq 0 of the next boot; the partials of a mote are numbered from it down."""
HEADER_SIZE = 12
SEAL_SIZE = 8
# IEEE 802.15.4 carries 127 octets; addressing, its own security header and checksum may take 25 of them.
MAX_FRAME = 102
LARGEST_FRAME = 2048
"""What a link with more room may carry at most: the checksum finds any three wrong bits up to here."""
MAX_ROUTE = 16
BROADCAST = MoteId(0xFFFF)
"""All who hear it; no mote has this number."""
COORDINATOR = MoteId(0)
"""The number of the base station where motes count it among their neighbours; no mote has it."""


def payload_room(mtu: int = MAX_FRAME, hops: int = 0) -> int:
    """The bytes a payload may have on a link, behind a route of so many hops; there is always room for a seal."""
    if not HEADER_SIZE + SEAL_SIZE < mtu <= LARGEST_FRAME:
        raise LinkError(f"a link for frames of {mtu} bytes is of no use; {LARGEST_FRAME} is the most")
    return mtu - HEADER_SIZE - SEAL_SIZE - route_size(hops)


def route_size(hops: int) -> int:
    """The bytes that a route of so many hops takes behind the header."""
    return 1 + 2 * hops if hops else 0


HopPath = tuple[MoteId, ...]
"""How a mote is reached: the gateway, the motes that hand a frame on, the mote itself. Empty where it is not known."""


def route_of(way: HopPath) -> tuple[MoteId, ...]:
    """What of a way goes behind the header: all but the first hop, up to what a route may have."""
    return way[2 : 2 + MAX_ROUTE]


MAX_PAYLOAD = payload_room()
"""What fits on every link: what is made without knowing the way keeps to this."""


class FrameKind(IntEnum):
    """What a payload is about. The gateway understands HELLO, ACK and EVENT; the others belong to the layers above."""

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
    """One message between a mote and the base station, on one hop of its way.

    `mote` is where an upward frame began and where a downward frame is to end. (`boot`, `seq`) number the frames of
    one sender and never repeat: who has none left goes on with the next `boot`. Those four stay the same
    from hop to hop; `sender` and `receiver` are the two ends of this hop, `route` the hops that follow it. Where
    nothing is said of the hop, it is the only one, between the mote and the base station. An answer may say that
    something is `pending` for the one that it answers, and what goes up that more is to follow, or that it is `repeated`.
    """

    kind: FrameKind
    mote: MoteId
    boot: int
    seq: int
    payload: bytes = b""
    down: bool = False
    want_ack: bool = True
    seal: bytes = field(default=b"", repr=False)
    sender: MoteId | None = None
    receiver: MoteId | None = None
    route: tuple[MoteId, ...] = ()
    pending: bool = False
    repeated: bool = False

    def __post_init__(self) -> None:
        ends = (COORDINATOR, self.mote) if self.down else (self.mote, COORDINATOR)
        for name, end in zip(("sender", "receiver"), ends, strict=True):
            if getattr(self, name) is None:
                object.__setattr__(self, name, end)
        for name in ("mote", "boot", "seq", "sender", "receiver"):
            if not 0 <= getattr(self, name) <= 0xFFFF:
                raise LinkError(f"{name} {getattr(self, name)} of a frame does not fit into 16 bits")
        if len(self.route) > MAX_ROUTE or not all(0 <= hop <= 0xFFFF for hop in self.route):
            raise LinkError(f"a route has at most {MAX_ROUTE} hops of 16 bits each, not {self.route}")
        if len(self.payload) > payload_room(LARGEST_FRAME, len(self.route)):
            raise LinkError(f"a payload of {len(self.payload)} bytes fits on no link")
        if self.pending and self.down and (self.kind is not FrameKind.ACK or self.payload):
            raise LinkError("only what goes up, or the answer to a frame, says that something is pending")
        if self.repeated and self.down:
            raise LinkError("only what goes up says that it is repeated")
        if len(self.seal) not in (0, SEAL_SIZE):
            raise LinkError(f"a seal has {SEAL_SIZE} bytes, not {len(self.seal)}")

    def along(self, way: HopPath) -> "Frame":
        """The frame as it sets out on a way down; where none is known, to the mote itself."""
        return replace(self, sender=way[0], receiver=way[1], route=route_of(way)) if len(way) > 1 else self

    @property
    def is_poll(self) -> bool:
        """Whether a mote that has nothing else to say asks its parent whether something waits for it."""
        return self.kind is FrameKind.ACK and self.want_ack

    @property
    def identity(self) -> tuple[int, int, int]:
        """What makes two receptions of a frame the same frame."""
        return self.mote, self.boot, self.seq


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody above wants sent to a mote; the link makes a numbered frame of it."""

    kind: FrameKind
    mote: MoteId
    payload: bytes
    want_ack: bool = True
