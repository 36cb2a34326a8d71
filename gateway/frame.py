"""What a frame is: an envelope with eight bytes of header around a payload that stays opaque. SPEC.md has the bits."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import NewType

from gateway.errors import LinkError

MoteId = NewType("MoteId", int)

VERSION = 1
HEADER_SIZE = 8
SEAL_SIZE = 8
# IEEE 802.15.4 carries 127 octets; addressing, its own security header and checksum may take 25 of them.
MAX_FRAME = 102
MAX_PAYLOAD = MAX_FRAME - HEADER_SIZE - SEAL_SIZE
BROADCAST = MoteId(0xFFFF)
COORDINATOR = MoteId(0)
"""The number of the base station where motes count it among their neighbours; no mote has it."""


class Kind(IntEnum):
    """What a payload is about. The gateway understands ACK; the payloads of the others belong to the layers above."""

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
    """One message between a mote and the base station.

    `mote` is where an upward frame began and where a downward frame is to end. (`boot`, `seq`) number the frames of
    one sender and never repeat: whoever has used `seq` 65535 goes on with the next `boot`.
    """

    kind: Kind
    mote: MoteId
    boot: int
    seq: int
    payload: bytes = b""
    down: bool = False
    want_ack: bool = True
    seal: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        for name, value in (("mote", self.mote), ("boot", self.boot), ("seq", self.seq)):
            if not 0 <= value <= 0xFFFF:
                raise LinkError(f"{name} {value} of a frame does not fit into 16 bits")
        if len(self.payload) > MAX_PAYLOAD:
            raise LinkError(f"a payload of {len(self.payload)} bytes is longer than {MAX_PAYLOAD}")
        if len(self.seal) not in (0, SEAL_SIZE):
            raise LinkError(f"a seal has {SEAL_SIZE} bytes, not {len(self.seal)}")

    @property
    def identity(self) -> tuple[int, int, int]:
        """What makes two receptions of a frame the same frame."""
        return self.mote, self.boot, self.seq


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody above wants sent to a mote; the link makes a numbered frame of it."""

    kind: Kind
    mote: MoteId
    payload: bytes
    want_ack: bool = True
