"""Read numbers of any width at any bit of many payloads with a few array operations. Bits count from the lowest."""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import AnyArray, IntArray

STEP = 32
"""The most bits of one read: with the bits before it in its first byte it fits into a word of eight bytes."""


class BitReader:
    """Payloads, concatenated. A position is a bit, counted from the lowest bit of the first payload.

    `start` has the position of each payload, `size` its bytes. A position behind the end gives an undefined number and
    no error, because callers check the sizes only afterwards.
    """

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.size: IntArray = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self.start: IntArray = 8 * (np.cumsum(self.size) - self.size)
        data = b"".join([*payloads, bytes(8)])
        self._words: AnyArray = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))  # a word at every byte

    def take(self, at: IntArray, width: IntArray | int) -> IntArray:
        """Return unsigned numbers of `width` bits, at most 32, at the positions `at`."""
        words = self._words[np.minimum(at >> 3, len(self._words) - 1)]
        numbers: IntArray = (words >> (at & 7).astype(np.uint64)).astype(np.int64) & ((1 << width) - 1)
        return numbers

    def take_signed(self, at: IntArray, width: IntArray | int) -> IntArray:
        """Return numbers of `width` bits, at most 32, in two's complement."""
        unsigned = self.take(at, width)
        numbers: IntArray = unsigned - (unsigned >> (width - 1) << width)
        return numbers

    def take_wide(self, at: IntArray, width: int, signed: bool) -> AnyArray:
        """Return numbers of any width, as int64 if they fit, else as Python integers."""
        if width <= STEP:
            return self.take_signed(at, width) if signed else self.take(at, width)
        fits = width < 64 or (width == 64 and signed)
        total: AnyArray = np.zeros(len(at), np.int64 if fits else object)
        for done in range(0, width, STEP):
            part = min(STEP, width - done)
            last = done + part == width
            digits = self.take_signed(at + done, part) if signed and last else self.take(at + done, part)
            total += digits << done if fits else digits.astype(object) << done
        return total
