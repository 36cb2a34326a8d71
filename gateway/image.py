"""Images: the bytes of a schedule or a program, sent in chunks and installed as a whole or not at all.

Version and digest identify an image, so a base station that lost its memory cannot take another image for its own. A
chunk carries whole blocks, and any block may arrive in any chunk. A gap is therefore requested by block numbers,
whatever room the frames on the path have.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gateway.errors import FrameError, LinkError
from gateway.framing import checksum

CHUNK = struct.Struct("<HHHB")
BLOCK = 16
"""Bytes of a block."""
MAX_IMAGE = 256 * BLOCK
"""Bytes of the largest image: a block number is one byte."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """The identity of an image: its version, and the CRC-16 of its content."""

    version: int
    digest: int


NO_IMAGE = Stamp(0, 0)
"""The stamp that a mote reports if it never had an image, or lost it."""


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of a schedule or of a program, with a version from 1 on."""

    version: int
    content: bytes
    stamp: Stamp = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.version <= 0xFFFF:
            raise LinkError(f"expected an image version from 1 to 65535, found {self.version}")
        if not 1 <= len(self.content) <= MAX_IMAGE:
            raise LinkError(f"expected an image of 1 to {MAX_IMAGE} bytes, found {len(self.content)}")
        digest = int.from_bytes(checksum(self.content), "little")
        object.__setattr__(self, "stamp", Stamp(self.version, digest))

    @property
    def blocks(self) -> frozenset[int]:
        """The numbers of all blocks."""
        return frozenset(range(block_count(len(self.content))))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive blocks of an image of `size` bytes; `first` is the number of the first block."""

    stamp: Stamp
    size: int
    first: int
    content: bytes

    @property
    def blocks(self) -> range:
        """The numbers of its blocks."""
        return range(self.first, self.first + block_count(len(self.content)))


def block_count(size: int) -> int:
    """Return how many blocks `size` bytes take."""
    return -(-size // BLOCK)


def encode_chunk(chunk: Chunk) -> bytes:
    """Return the payload of a SCHEDULE or PROGRAM frame."""
    return CHUNK.pack(chunk.stamp.version, chunk.stamp.digest, chunk.size, chunk.first) + chunk.content


def decode_chunk(payload: bytes) -> Chunk:
    """Decode the payload of a SCHEDULE or PROGRAM frame. Raises FrameError with code `chunk`."""
    if len(payload) <= CHUNK.size:
        raise FrameError("chunk", f"{len(payload)} bytes are too few for a chunk", payload)
    version, digest, size, first = CHUNK.unpack_from(payload)
    chunk = Chunk(Stamp(version, digest), size, first, payload[CHUNK.size :])
    end = first * BLOCK + len(chunk.content)
    if version == 0 or size > MAX_IMAGE or end > size or (end < size and end % BLOCK):
        raise FrameError("chunk", f"bytes {first * BLOCK} to {end} are not blocks of an image of {size} bytes", payload)
    return chunk


def annotate_chunk(chunk: Chunk, what: str) -> Iterator[tuple[int, str]]:
    """Yield (size in bytes, meaning) of the fields before a chunk's content, for `gateway.frame_annotation`."""
    yield 2, f"{what} version {chunk.stamp.version}"
    yield 2, f"digest {chunk.stamp.digest:#06x}"
    yield 2, f"of {chunk.size} bytes"
    yield 1, f"from block {chunk.first} on"


def split_into_chunks(image: Image, room: int, blocks: Iterable[int] | None = None) -> list[Chunk]:
    """Split the given blocks of an image (default: all) into chunks whose payloads have at most `room` bytes.

    Raises LinkError if `room` is too small for one block.
    """
    most = (room - CHUNK.size) // BLOCK
    if most < 1:
        raise LinkError(f"a payload of {room} bytes has no room for a block of {BLOCK} bytes")
    runs: list[list[int]] = []
    for block in sorted(image.blocks if blocks is None else image.blocks.intersection(blocks)):
        if runs and runs[-1][-1] == block - 1 and len(runs[-1]) < most:
            runs[-1].append(block)
        else:
            runs.append([block])
    stamp, size = image.stamp, len(image.content)
    return [Chunk(stamp, size, run[0], image.content[run[0] * BLOCK : (run[-1] + 1) * BLOCK]) for run in runs]


@dataclass(slots=True)
class ImageReassembly:
    """An image of which a mote has received some blocks."""

    stamp: Stamp
    size: int
    received: set[int] = field(default_factory=set)
    content: bytearray = field(default_factory=bytearray)

    @classmethod
    def of(cls, chunk: Chunk) -> "ImageReassembly":
        """Start the reassembly of a chunk's image, without the chunk itself."""
        return cls(chunk.stamp, chunk.size, content=bytearray(chunk.size))

    def fits(self, chunk: Chunk) -> bool:
        """Return whether the chunk belongs to this image."""
        return (chunk.stamp, chunk.size) == (self.stamp, self.size)

    def add(self, chunk: Chunk) -> None:
        """Store the blocks of a chunk of this image."""
        start = chunk.first * BLOCK
        self.content[start : start + len(chunk.content)] = chunk.content
        self.received.update(chunk.blocks)

    @property
    def missing(self) -> frozenset[int]:
        """The numbers of the blocks that have not arrived."""
        return frozenset(range(block_count(self.size))) - self.received

    def image(self) -> Image:
        """Return the complete image. Raises FrameError with code `digest` if its bytes do not match the digest."""
        image = Image(self.stamp.version, bytes(self.content))
        if image.stamp != self.stamp:
            raise FrameError("digest", f"the content of image version {self.stamp.version} does not match its digest")
        return image
