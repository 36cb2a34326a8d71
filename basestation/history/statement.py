"""SparkStatement: the text of one query in Spark SQL while it is written, as a chain of named parts (WITH), and what it depends on."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date

from acquisition.extent import Extent
from basestation.history.scalar_sql import ScalarCompiler


@dataclass(frozen=True, slots=True)
class ArchiveView:
    """The archive of an extent as Spark sees it: a view with the columns of the files.

    The view `name` of a stored extent has the rows of all versions, with `_version`, the first tick of each, and `_position` in it;
    `versions` are those ticks.
    """

    extent: Extent
    name: str
    versions: tuple[int, ...] = ()
    is_unique: Callable[[date, date], bool] = lambda first, last: False
    """Whether no reading or tuple of the days stands in the files twice, so that a statement need not look for copies."""
    is_corrected: bool = False
    """Whether the files hold corrections."""
    rows: int | None = None
    """At most so many stand in the files; None where that is not known."""
    largest: Mapping[str, int] = field(default_factory=dict)
    """By attribute, at least the absolute value of each that stands in the files: whole multiples of a scaled one."""


@dataclass(frozen=True, slots=True)
class Check:
    """A query that counts what Spark could not answer exactly; above zero, the statement is refused with the reason."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """The ticks of a query: windows from `start` to `until`. `first` is the first tick on record; one-off queries are asked at `ask`."""

    start: int
    until: int
    first: int
    ask: int


@dataclass(slots=True)
class SparkStatement:
    """The parts so far. `is_ordered`: the query reads indexes, rows or the order of tuples; `has_arrivals`: or arrivals. `is_limited`: it has FOR."""

    sources: Mapping[str, ArchiveView]
    span: HistoryRange
    scalars: ScalarCompiler
    prefix: str = ""
    is_ordered: bool = False
    has_arrivals: bool = False
    is_limited: bool = False
    parts: list[tuple[str, str]] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    entered: dict[str, str] = field(default_factory=dict)
    """By extent the part with its tuples and whether each is late, where that is judged."""

    def add(self, what: str, body: str) -> str:
        """Name a part; the name."""
        name = f"{self.prefix}{what}_{len(self.parts) + 1}"
        self.parts.append((name, body))
        return name

    def text(self, body: str) -> str:
        """A whole statement: a query over the parts, and those that it needs. Spark would analyze the others too, which takes long."""
        needed, kept = _words(body), list[str]()
        for name, part in reversed(self.parts):  # a part names only parts before it
            if name in needed:
                needed |= _words(part)
                kept.append(f"{name} AS (\n{part}\n)")
        listed = ",\n".join(reversed(kept))
        return f"WITH {listed}\n{body}" if listed else body


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


@dataclass(frozen=True, slots=True)
class StreamRelation:
    """A stream: a part with `_tick`, `_arr` (arrival), `_ord` (order within the arrival), `_idx`, `_sec` and its columns.

    `_idx`, the index, is there where the statement is ordered. `_sec` is the site, or the index, by which FIRST and LAST go.
    `is_append`: a window holds a tuple only from its arrival on. `extents` are those below; `is_converted`: it comes from windows.
    """

    name: str
    is_append: bool
    extents: frozenset[str]
    is_converted: bool = False


@dataclass(frozen=True, slots=True)
class Grid:
    """Windows at first, first + slide, … up to last; one at each tick."""

    first: int
    slide: int
    last: int

    @property
    def is_empty(self) -> bool:
        return self.last < self.first


@dataclass(frozen=True, slots=True)
class WindowRelation:
    """Windows: a part with `_w` (tick), `_n`, `_ord`, for FIRST and LAST `_tick` and `_sec`, and the columns of the tuples.

    The windows, empty ones too, are those of `grid`, or of the part `windows` with `_w` and `_n`, and `_t` in a loop. `order` says
    which parts of the relation carry `_tick` and `_sec`.
    """

    name: str
    windows: str
    grid: Grid | None
    extents: frozenset[str]
    has_order: bool = False
    has_t: bool = False
    most_rows: int | None = None
    """Of a window; None where it is not known."""
    loop: object | None = None
    """In a loop: its LoopRange; `_e` then numbers its windows."""
