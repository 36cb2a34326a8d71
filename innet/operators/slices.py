"""SlicePattern: where the ticks are cut into slices, so that every window is a run of whole slices (semantics 3.6)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:  # callers without arrays start without numpy
    from acquisition.arrays import BoolArray, IntArray, IntOrArray


@dataclass(frozen=True, slots=True)
class SlicePattern:
    """Slices begin at the ticks `edge` and `other` of each `period`; the two are equal if a period has one edge.

    Slices are numbered consecutively, from 0 on. No window holds the slices that begin at `gap_edge`, if there are such:
    they are neither folded nor sent.

        period 6, edge 2, other 5:

        tick    0  1  2  3  4  5  6  7  8  9 10 11 12 13 14
        slice  |--0--|---1----|---2----|---3----|---4----|-
    """

    period: int
    edge: int
    other: int
    gap_edge: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.edge <= self.other < self.period:
            found = f"{self.edge} and {self.other} of {self.period}"
            raise ValueError(f"expected ascending edges below the period of slices, found {found}")
        if self.gap_edge is not None and (self.edges == 1 or self.gap_edge not in (self.edge, self.other)):
            raise ValueError(
                f"expected a gap at one of two different edges {self.edge} and {self.other}, found {self.gap_edge}"
            )

    @classmethod
    def cut(cls, period: int, edges: tuple[int, ...], interval: int, gap: bool = False) -> "SlicePattern":
        """Return the canonical pattern with these edges, for readings at multiples of `interval` ticks.

        With a `gap`, no window holds the ticks from the second edge to the first. An edge lies anywhere between two
        readings, so it moves up to the next reading, and an edge without effect is dropped. Queries whose slices have
        the same readings thus share them.
        """
        if period % interval == 0:
            edges = tuple(-(-edge // interval) * interval for edge in edges)
        begin, end = edges[0] % period, edges[-1] % period
        if interval % period == 0:  # no slice has two readings, whatever the edges
            return cls(interval, 0, 0)
        return cls(period, min(begin, end), max(begin, end), end if gap and begin != end else None)

    @property
    def edges(self) -> int:
        """The number of slices in a period."""
        return 1 if self.edge == self.other else 2

    @property
    def window_slices(self) -> int:
        """The number of slices in a period that windows hold."""
        return self.edges - (self.gap_edge is not None)

    @property
    def window_span(self) -> tuple[int, int]:
        """(edge, length) in ticks of the slices in windows, for a pattern with a gap."""
        gap = self.other - self.edge
        return (self.edge, gap) if self.gap_edge == self.other else (self.other, self.period - gap)

    @overload
    def is_in_windows(self, number: int) -> bool: ...
    @overload
    def is_in_windows(self, number: "IntArray") -> "BoolArray": ...
    def is_in_windows(self, number: "int | IntArray") -> "bool | BoolArray":
        """Whether windows hold a slice; for a pattern with a gap also for an array of slices."""
        # Slices with even numbers begin at the later edge.
        return self.gap_edge is None or (number % 2 == 0) == (self.gap_edge == self.edge)

    def number(self, tick: "IntOrArray") -> "IntOrArray":
        """Return the number of the slice of a tick, or of each tick of an array."""
        whole = (tick + self.period - self.edge) // self.period
        if self.edges == 1:
            return whole
        return whole + (tick + self.period - self.other) // self.period

    def begin(self, number: "IntOrArray") -> "IntOrArray":
        """Return the first tick of a slice, or of each slice of an array."""
        if self.edges == 1:
            return (number - 1) * self.period + self.edge
        # Slices with even numbers begin at the later edge: a tick has then passed both edges equally often.
        whole, odd = divmod(number, 2)
        return whole * self.period + odd * self.edge + (1 - odd) * (self.other - self.period)

    def end(self, number: "IntOrArray") -> "IntOrArray":
        """Return the first tick after a slice, or after each slice of an array."""
        return self.begin(number + 1)

    def ticks(self, number: int, interval: int) -> range:
        """Return the ticks of a slice that are multiples of `interval`."""
        first = -(-self.begin(number) // interval) * interval
        return range(max(first, 0), self.end(number), interval)

    def max_ticks(self, interval: int) -> int:
        """Return the largest number of readings of one site in a slice that windows hold."""
        gap = self.other - self.edge
        longest = self.period if self.edges == 1 else max(gap, self.period - gap)
        return -(-(longest if self.gap_edge is None else self.window_span[1]) // interval)

    def longest_pause(self, interval: int) -> int:
        """Return the largest number of ticks between the ends of two successive slices that windows hold."""
        return interval * (self.max_ticks(interval) if self.gap_edge is None else -(-self.period // interval))

    def label(self) -> str:
        """Return the pattern in words, for EXPLAIN."""
        cut = f"at {self.edge}" if self.edges == 1 else f"at {self.edge} and {self.other}"
        left_out = "" if self.gap_edge is None else f", without those from {self.gap_edge} on"
        return f"cut {cut} of each {self.period} ticks{left_out}"
