"""The two ways to read a stored extent: Scan at regular ticks (figure 5), Once at the query's start (semantics 2.6).

The history of a stream is a stored extent too (semantics 10.7).
"""

from dataclasses import dataclass

from acquisition.extent import Extent
from basestation.algebra.expression import Column
from basestation.algebra.node import WindowNode


@dataclass(frozen=True, slots=True)
class Scan(WindowNode):
    """A window with the newest version of the table at 0, interval, 2 interval, …"""

    extent: Extent
    interval: int
    attributes: tuple[Column, ...]
    history: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.attributes


@dataclass(frozen=True, slots=True)
class Once(WindowNode):
    """The table at the start of the query; in a loop, at the tick of each window (semantics 10.8)."""

    extent: Extent
    attributes: tuple[Column, ...]
    history: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.attributes
