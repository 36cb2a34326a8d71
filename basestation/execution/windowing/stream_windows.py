"""StreamWindows: the base of windows over one stream, as inputs of a query block; windows of time and of rows extend it.

A WindowSource (`interfaces.py`) answers for many windows at once: which windows are there up to a tick (`due`), which
given ones may look different after a change (`dirty`), what they contain (`content`), and what they cover.
"""

from abc import ABC, abstractmethod
from collections import Counter

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.execution.columns.change import Change
from basestation.execution.columns.coverage_ranges import CoverageRanges
from basestation.execution.columns.next_due import DUE_NOW, NextDue
from basestation.execution.columns.tuples import Tuples, empty_like
from basestation.execution.columns.window_batch import (
    WindowBatch,
)
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import Claims, View
from basestation.execution.streams.stream import Stream


class StreamWindows(ABC):
    """The base of windows over a stream. Tuples lose their tags when they enter a window (1.7)."""

    def __init__(self, stream: Stream, columns: tuple[Column, ...]) -> None:
        self.stream, self.level = stream, stream.level
        self._ids = Counter(column.id for column in columns)  # how many views read each column

    @property
    def next_due(self) -> NextDue:
        """When the next window may be due."""
        return DUE_NOW

    @property
    @abstractmethod
    def has_late_appends(self) -> bool:
        """Whether a window may contain tuples from their arrival on, not from the beginning (3.6)."""

    @property
    @abstractmethod
    def in_order(self) -> bool:
        """Whether the order of a window's tuples is that of their ticks or rows (6.4)."""

    @property
    @abstractmethod
    def max_rows(self) -> int | None:
        """The most tuples in one window at the declared rates; None where none is declared."""

    @property
    @abstractmethod
    def tick_slide(self) -> int | None:
        """The ticks from one window to the next; None where rows or a loop decide."""

    @property
    @abstractmethod
    def may_be_dirty(self) -> bool:
        """Whether the change of the stream may reach a window that was given; seldom, and then `dirty` tells which."""

    @abstractmethod
    def due(self, upto: int) -> WindowBatch:
        """The windows up to a tick that were not given before."""

    @abstractmethod
    def dirty(self, given: WindowBatch) -> BoolArray:
        """A mask of the given windows that the change of the stream may affect."""

    @abstractmethod
    def apply(self) -> None:
        """Take in the change of the stream."""

    @abstractmethod
    def recall(self, given: WindowBatch) -> None:
        """Make sure that the tuples of given windows are held."""

    @abstractmethod
    def ordered_tuples(self, first: int) -> tuple[Tuples, IntArray] | None:
        """(held tuples, ascending; by which number windows contain each: its tick or row), from a number on; None without any."""

    @abstractmethod
    def content(self, given: WindowBatch) -> WindowContents | None:
        """The tuples of the given windows, numbered by position; None if there never was a tuple."""

    @abstractmethod
    def covers(self, given: WindowBatch) -> list[CoverageRanges]:
        """The coverage of the given windows, numbered by position."""

    @abstractmethod
    def forget(self, before: int, kept: WindowBatch) -> None:
        """Drop what neither the kept windows nor those to come can reach."""

    @abstractmethod
    def describe(self) -> OperatorDescription:
        """The windows, for EXPLAIN."""

    def show(self, view: View) -> Claims:
        """Provide what a view of the windows reads, until it is released."""
        self._ids.update(view.column_ids)
        return [(self, view.column_ids)]

    def release(self, what: set[int]) -> None:
        """End one use of columns."""
        self._ids -= Counter(what)

    def close(self) -> None:  # noqa: B027 - most windows have nothing to give back
        """Release the window store: the block is removed."""

    def untagged(self, tuples: Tuples) -> dict[int, Vector]:
        """The columns that views read, without tags."""
        return {id: tuples.columns[id] for id in self._ids}

    @property
    def watermark(self) -> int:
        return self.stream.watermark

    @property
    def certain(self) -> int:
        return self.stream.certain

    @property
    def horizon(self) -> int:
        """The number of ticks behind the watermark in which tuples may still be revised."""
        return self.stream.horizon

    def empty_covers(self) -> list[CoverageRanges]:
        return self.stream.empty_covers()

    def final(self, before: int, given: WindowBatch) -> BoolArray:
        """A mask of the windows that no longer change if no tick before `before` of the extents changes."""
        return given.right < self.stream.open_from(before)

    def empty(self, count: int) -> WindowContents:
        """`count` windows without tuples."""
        change: Change | None = getattr(self.stream, "change", None)  # absent before the first step
        tuples = empty_like((change or self.stream.all()).inserted)
        none = np.empty(0, np.int64)
        return WindowContents(count, none, self.untagged(tuples), none, none)


def find_touched(ticks: IntArray, left: IntArray, right: IntArray) -> BoolArray:
    """A mask of the ranges left[i] to right[i] that contain one of some ascending ticks."""
    return np.searchsorted(ticks, left) < np.searchsorted(ticks, right, "right")
