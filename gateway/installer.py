"""Installer: how a mote takes images, whole or not at all. Simulated motes run it, and firmware is tested against it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.frame import Frame, FrameKind
from gateway.image import NO_IMAGE, Chunk, Image, ImageReassembly, Stamp, decode_chunk
from gateway.payload import IMAGES, MissingBlocks

Number = tuple[int, int]
"""(boot, seq) of a frame: what was numbered later was meant later."""


@dataclass(slots=True)
class Installer:
    """`installed` is what runs. Whoever runs it calls `install` with what `take` gives, if it makes sense there."""

    installed: dict[FrameKind, Stamp] = field(default_factory=lambda: dict.fromkeys(IMAGES, NO_IMAGE))
    _arriving: dict[FrameKind, ImageReassembly] = field(default_factory=dict)
    _begun: dict[FrameKind, Number] = field(default_factory=dict)

    def take(self, frame: Frame) -> Image | None:
        """The image, if this chunk makes it whole. FrameError `chunk` or `digest` if it is none.

        A chunk of an image that was begun before the present one is left over from then, and does nothing.
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
        """Whether a chunk is of what is installed already: whoever sent it does not know, and is to be told."""
        return chunk.stamp == self.installed[kind]

    def install(self, kind: FrameKind, image: Image) -> None:
        """From now on this one is what runs."""
        self.installed[kind] = image.stamp

    def forget(self, kind: FrameKind) -> None:
        """What runs goes on, and is to be told anew."""
        self.installed[kind] = NO_IMAGE

    def missing_blocks(self) -> Iterator[MissingBlocks]:
        """What is still missing of the images on their way."""
        for kind, assembly in self._arriving.items():
            yield MissingBlocks(kind, assembly.stamp, assembly.missing)
