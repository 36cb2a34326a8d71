"""Answers in one columnar form, from whatever system, and digests by which they are compared.

A digest is the sum of a hash of every row with its window's tick and revision, or its tick and index: the same rows give
the same digest in whatever order a bag is handed out, and doubles must agree to the bit. Types are hashed too.
"""

import hashlib
from dataclasses import dataclass

import numpy as np

_PORTION = 1 << 14  # rows hashed at a time, so that checking needs no memory of the size of an answer
_NULL = np.uint64(0x6E756C6C)


@dataclass(frozen=True)
class Windows:
    """Windows one after another: window w has the rows bounds[w] to bounds[w + 1]. Columns are (values, there or None).

    `sign` is 1 for rows that are given and -1 for rows that are taken back; both parts of a revision are Windows.
    """

    tick: np.ndarray
    bounds: np.ndarray
    columns: list
    revision: np.ndarray | int = 0
    sign: int = 1
    query: int = 1

    @property
    def rows(self):
        return int(self.bounds[-1] - self.bounds[0])

    @property
    def items(self):
        return len(self.tick)

    def tags(self):
        sizes = np.diff(self.bounds)
        revision = np.broadcast_to(self.revision, self.tick.shape)
        return [np.repeat(self.tick, sizes), np.repeat(revision, sizes)]

    def hashed(self):
        """Each window counts also where it is empty."""
        revision = np.broadcast_to(self.revision, self.tick.shape)
        frames = _hash([self.tick, revision, np.diff(self.bounds)], (2, self.query, self.sign))
        return frames + _hash([*self.tags(), *self.columns], (3, self.query, self.sign))


@dataclass(frozen=True)
class Tuples:
    """Tuples of a stream, with tick and index; `query` may be an array where they are of several. Columns as above."""

    tick: np.ndarray
    index: np.ndarray
    columns: list
    sign: int = 1
    query: np.ndarray | int = 1

    @property
    def rows(self):
        return len(self.tick)

    items = rows

    def hashed(self):
        query = np.broadcast_to(np.int64(self.query), self.tick.shape)
        return _hash([query, self.tick, self.index, *self.columns], (1, self.sign))


class Digest:
    """Adds up answers: how many rows, windows or tuples there were, and the digest of all of them so far."""

    def __init__(self):
        self.rows = self.items = self.sum = 0

    def add(self, answers):
        for each in answers:
            self.rows += each.rows
            self.items += each.items
            self.sum = (self.sum + each.hashed()) % 2**64

    def __str__(self):
        return f"{self.rows}:{self.items}:{self.sum:016x}"


def _hash(columns, kind):
    length = len(columns[0] if isinstance(columns[0], np.ndarray) else columns[0][0])
    total = 0
    for begin in range(0, length, _PORTION):
        part = slice(begin, begin + _PORTION)
        mixed = np.full(min(_PORTION, length - begin), hash(kind) % 2**63, np.uint64)
        for column in columns:
            values, there = column if isinstance(column, tuple) else (column, None)
            words = _words(values[part])
            if there is not None:
                words = np.where(there[part], words, _NULL)
            mixed = _mix(mixed + words)
        total += int(mixed.sum(dtype=np.uint64))
    return total % 2**64


def _words(values):
    """64 bits that stand for each value and its type."""
    if values.dtype == object:
        return np.fromiter(map(_word, values), np.uint64, len(values))
    if values.dtype == np.float64:
        return ~(values + 0.0).view(np.uint64)
    if values.dtype != np.int64:
        raise TypeError(f"{values.dtype} is no type of the engine's")
    return values.view(np.uint64)


def _word(text, known={}):  # noqa: B006 - a memory of texts seen
    if text not in known:
        known[text] = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return known[text]


def _mix(words):
    """The finalizer of SplitMix64: every bit of a word changes half the others."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
