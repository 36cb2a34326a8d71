"""Bits: numbers of any width at any bit of many payloads, taken by a few array operations, filled from the lowest."""

from collections.abc import Sequence

import numpy as np

STEP = 32
"""What one look takes: with the bits before it in its first byte it fits into the eight bytes that are looked at."""


class BitReader:
    """Payloads one behind the other. A place is a bit, counted from the first payload's lowest; `start` are theirs.

    A place behind the end is no error and gives any number: whoever asks has not yet found out how long a payload is.
    """

    def __init__(self, payloads: Sequence[bytes]) -> None:
        self.size = np.fromiter(map(len, payloads), np.int64, len(payloads))
        self.start = 8 * (np.cumsum(self.size) - self.size)
        data = b"".join([*payloads, bytes(8)])
        self._words = np.ndarray(len(data) - 7, "<u8", data, strides=(1,))

    def take(self, at: np.ndarray, width: np.ndarray | int) -> np.ndarray:
        """Unsigned numbers of up to 32 bits, as int64."""
        words = self._words[np.minimum(at >> 3, len(self._words) - 1)]
        return (words >> (at & 7).astype(np.uint64)).astype(np.int64) & ((1 << width) - 1)

    def take_signed(self, at: np.ndarray, width: np.ndarray | int) -> np.ndarray:
        """Numbers of up to 32 bits in two's complement."""
        unsigned = self.take(at, width)
        return unsigned - (unsigned >> (width - 1) << width)

    def take_wide(self, at: np.ndarray, width: int, signed: bool) -> np.ndarray:
        """Numbers of any width: int64 if they fit there, else Python's integers."""
        if width <= STEP:
            return self.take_signed(at, width) if signed else self.take(at, width)
        fits = width < 64 or (width == 64 and signed)
        total = np.zeros(len(at), np.int64 if fits else object)
        for done in range(0, width, STEP):
            part = min(STEP, width - done)
            last = done + part == width
            digits = self.take_signed(at + done, part) if signed and last else self.take(at + done, part)
            total += digits << done if fits else digits.astype(object) << done
        return total
