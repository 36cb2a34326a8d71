"""Slices: where the ticks are cut, so that every window is a run of whole slices (SEMANTICS 3.6; DESIGN.md: Windows)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # numpy is loaded where there are arrays
    from acquisition.arrays import IntOrArray


@dataclass(frozen=True, slots=True)
class SlicePattern:
    """A slice begins at `edge`, and at `other`, of each period of ticks; they are equal where there is one edge.

    The number of a slice rises by one from each to the next, and is never negative. No window holds those that begin at
    the edge `void`, if it is one of two, and nobody keeps anything of them.
    """

    period: int
    edge: int
    other: int
    void: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.edge <= self.other < self.period:
            raise ValueError(f"no slices are cut at {self.edge} and {self.other} of each {self.period} ticks")
        if self.void is not None and (self.edges == 1 or self.void not in (self.edge, self.other)):
            raise ValueError(f"of the slices cut at {self.edge} and {self.other}, those at {self.void} are not some")

    @classmethod
    def cut(cls, period: int, edges: tuple[int, ...], interval: int, gap: bool = False) -> "SlicePattern":
        """The slices that tell the same ticks apart, for ticks that are multiples of `interval`. With a `gap`, no window
        holds what is from the second edge to the first.

        An edge lies between two ticks, and it does not matter where; so that queries whose slices differ by nothing
        share them, each is moved up to the next tick that there is, and one that says nothing more is dropped.
        """
        if period % interval == 0:
            edges = tuple(-(-edge // interval) * interval for edge in edges)
        begin, end = edges[0] % period, edges[-1] % period
        if interval % period == 0:  # no slice has two ticks, whatever the edges
            return cls(interval, 0, 0)
        return cls(period, min(begin, end), max(begin, end), end if gap and begin != end else None)

    @property
    def edges(self) -> int:
        """How many slices there are in a period."""
        return 1 if self.edge == self.other else 2

    @property
    def kept(self) -> int:
        """How many slices of a period are in windows."""
        return self.edges - (self.void is not None)

    @property
    def within(self) -> tuple[int, int]:
        """Where there is a void: the edge at which those begin that are in windows, and for how many ticks."""
        gap = self.other - self.edge
        return (self.edge, gap) if self.void == self.other else (self.other, self.period - gap)

    def is_in_windows(self, number: int) -> bool:
        """Whether a slice is in windows; where there is a void, also of an array of slices."""
        return self.void is None or (number % 2 == 0) == (self.void == self.edge)  # even ones begin at the later edge

    def number(self, tick: "IntOrArray") -> "IntOrArray":
        """The slice of a tick; also of an array of ticks."""
        whole = (tick + self.period - self.edge) // self.period
        if self.edges == 1:
            return whole
        return whole + (tick + self.period - self.other) // self.period

    def begin(self, number: "IntOrArray") -> "IntOrArray":
        """The first tick of a slice; also of an array of slices."""
        if self.edges == 1:
            return (number - 1) * self.period + self.edge
        # Even numbers begin at the later edge: both edges were passed equally often.
        whole, odd = divmod(number, 2)
        return whole * self.period + odd * self.edge + (1 - odd) * (self.other - self.period)

    def end(self, number: "IntOrArray") -> "IntOrArray":
        """The first tick that is no longer in a slice."""
        return self.begin(number + 1)

    def ticks(self, number: int, interval: int) -> range:
        """The ticks of a slice at which something is sampled."""
        first = -(-self.begin(number) // interval) * interval
        return range(max(first, 0), self.end(number), interval)

    def max_ticks(self, interval: int) -> int:
        """How many sampled ticks a slice that is in windows has at most."""
        gap = self.other - self.edge
        longest = self.period if self.edges == 1 else max(gap, self.period - gap)
        return -(-(longest if self.void is None else self.within[1]) // interval)

    def longest_pause(self, interval: int) -> int:
        """Ticks from the end of a slice that is in windows to that of the next, at most."""
        return interval * (self.max_ticks(interval) if self.void is None else -(-self.period // interval))

    def label(self) -> str:
        cut = f"at {self.edge}" if self.edges == 1 else f"at {self.edge} and {self.other}"
        left_out = "" if self.void is None else f", without those from {self.void} on"
        return f"cut {cut} of each {self.period} ticks{left_out}"
