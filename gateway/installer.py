"""How a mote receives and installs images. Simulated motes run this class; firmware is tested against it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.frame import Frame, FrameKind
from gateway.image import NO_IMAGE, Chunk, Image, ImageReassembly, Stamp, decode_chunk
from gateway.payload import IMAGES, MissingBlocks

FrameNumber = tuple[int, int]
"""(boot, seq) of a frame. The image with the greater number is the newer one."""


@dataclass(slots=True)
class Installer:
    """The images of one mote: `installed` is what runs, the rest is incomplete.

    `take` returns an image when it is complete. The caller validates it and then calls `install`.
    """

    installed: dict[FrameKind, Stamp] = field(default_factory=lambda: dict.fromkeys(IMAGES, NO_IMAGE))
    _arriving: dict[FrameKind, ImageReassembly] = field(default_factory=dict)
    _begun: dict[FrameKind, FrameNumber] = field(default_factory=dict)

    def take(self, frame: Frame) -> Image | None:
        """Store a chunk; return the image if this chunk completes it.

        A chunk of an image that was started before the present one is ignored. Raises FrameError with code `chunk` or
        `digest`.
        """
        kind, number, chunk = frame.kind, (frame.boot, frame.seq), decode_chunk(frame.payload)
        assembly = self._arriving.get(kind)
        if assembly is None or not assembly.fits(chunk):
            if chunk.stamp == self.installed[kind] or number < self._begun.get(kind, number):
                return None
            assembly = self._arriving[kind] = ImageReassembly.of(chunk)
            self._begun[kind] = number
        assembly.add(chunk)
        if assembly.missing:
            return None
        del self._arriving[kind]
        return assembly.image()

    def has(self, kind: FrameKind, chunk: Chunk) -> bool:
        """Return whether the image of a chunk is already installed, so the sender needs a new HELLO."""
        return chunk.stamp == self.installed[kind]

    def install(self, kind: FrameKind, image: Image) -> None:
        """Record that this image now runs."""
        self.installed[kind] = image.stamp

    def forget(self, kind: FrameKind) -> None:
        """Report no image of this kind from now on, so that it is sent again; the running one goes on."""
        self.installed[kind] = NO_IMAGE

    def missing_blocks(self) -> Iterator[MissingBlocks]:
        """Yield the missing blocks of each incomplete image."""
        for kind, assembly in self._arriving.items():
            yield MissingBlocks(kind, assembly.stamp, assembly.missing)
