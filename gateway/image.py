"""Image: what SCHEDULE and PROGRAM carry, too long for a frame; cut into chunks here, put together there, whole or not.

An image is known by its version and its digest, so one that was made by a base station without memory of the last is
not taken for it. Chunks are whole blocks, and any block may come in any chunk: a gap is asked for by its blocks,
whatever the links on the way have room for.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gateway.errors import FrameError, LinkError
from gateway.framing import checksum

CHUNK = struct.Struct("<HHHB")
BLOCK = 16
MAX_IMAGE = 256 * BLOCK


@dataclass(frozen=True, slots=True)
class Stamp:
    """By what an image is known."""

    version: int
    digest: int


NO_IMAGE = Stamp(0, 0)
"""What a mote has that was never given an image, or lost it."""


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of a schedule or of a program, under a version from 1 on."""

    version: int
    content: bytes
    stamp: Stamp = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.version <= 0xFFFF:
            raise LinkError(f"an image has a version from 1 to 65535, not {self.version}")
        if not 1 <= len(self.content) <= MAX_IMAGE:
            raise LinkError(f"an image has 1 to {MAX_IMAGE} bytes, not {len(self.content)}")
        digest = int.from_bytes(checksum(self.content), "little")
        object.__setattr__(self, "stamp", Stamp(self.version, digest))

    @property
    def blocks(self) -> frozenset[int]:
        """The numbers of all its blocks."""
        return frozenset(range(block_count(len(self.content))))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some neighbouring blocks of an image of `size` bytes, `first` being the number of the first one."""

    stamp: Stamp
    size: int
    first: int
    content: bytes

    @property
    def blocks(self) -> range:
        return range(self.first, self.first + block_count(len(self.content)))


def block_count(size: int) -> int:
    return -(-size // BLOCK)


def encode_chunk(chunk: Chunk) -> bytes:
    return CHUNK.pack(chunk.stamp.version, chunk.stamp.digest, chunk.size, chunk.first) + chunk.content


def decode_chunk(payload: bytes) -> Chunk:
    """FrameError `chunk` for one that cannot be part of an image."""
    if len(payload) <= CHUNK.size:
        raise FrameError("chunk", f"{len(payload)} bytes hold no chunk", payload)
    version, digest, size, first = CHUNK.unpack_from(payload)
    chunk = Chunk(Stamp(version, digest), size, first, payload[CHUNK.size :])
    end = first * BLOCK + len(chunk.content)
    if version == 0 or size > MAX_IMAGE or end > size or (end < size and end % BLOCK):
        raise FrameError("chunk", f"bytes {first * BLOCK} to {end} are no blocks of an image of {size} bytes", payload)
    return chunk


def annotate_chunk(chunk: Chunk, what: str) -> Iterator[tuple[int, str]]:
    """What the bytes before a chunk's content mean, for `gateway.frame_annotation`."""
    yield 2, f"{what} version {chunk.stamp.version}"
    yield 2, f"digest {chunk.stamp.digest:#06x}"
    yield 2, f"of {chunk.size} bytes"
    yield 1, f"from block {chunk.first} on"


def split_into_chunks(image: Image, room: int, wanted: Iterable[int] | None = None) -> list[Chunk]:
    """The chunks that bring the wanted blocks (all, if none are named) in payloads of at most `room` bytes."""
    most = (room - CHUNK.size) // BLOCK
    if most < 1:
        raise LinkError(f"{room} bytes have no room for a block of {BLOCK}")
    runs: list[list[int]] = []
    for block in sorted(image.blocks if wanted is None else image.blocks.intersection(wanted)):
        if runs and runs[-1][-1] == block - 1 and len(runs[-1]) < most:
            runs[-1].append(block)
        else:
            runs.append([block])
    stamp, size = image.stamp, len(image.content)
    return [Chunk(stamp, size, run[0], image.content[run[0] * BLOCK : (run[-1] + 1) * BLOCK]) for run in runs]


@dataclass(slots=True)
class ImageReassembly:
    """An image on its way into a mote. It is whole when every block is there and the digest is right, never before."""

    stamp: Stamp
    size: int
    have: set[int] = field(default_factory=set)
    content: bytearray = field(default_factory=bytearray)

    @classmethod
    def of(cls, chunk: Chunk) -> "ImageReassembly":
        return cls(chunk.stamp, chunk.size, content=bytearray(chunk.size))

    def fits(self, chunk: Chunk) -> bool:
        """Whether the chunk is one of this image."""
        return (chunk.stamp, chunk.size) == (self.stamp, self.size)

    def add(self, chunk: Chunk) -> None:
        start = chunk.first * BLOCK
        self.content[start : start + len(chunk.content)] = chunk.content
        self.have.update(chunk.blocks)

    @property
    def missing(self) -> frozenset[int]:
        return frozenset(range(block_count(self.size))) - self.have

    def image(self) -> Image:
        """The image, once nothing is missing. FrameError `digest` if its bytes are not those that were sent."""
        image = Image(self.stamp.version, bytes(self.content))
        if image.stamp != self.stamp:
            raise FrameError("digest", f"an image of version {self.stamp.version} is not what was sent")
        return image
