"""Extents and the catalog: named relations of readings, pushed tuples or table rows.

An extent declares where its tuples come from and how late tuples are treated. It knows nothing about queries.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from acquisition.schema import Attribute, Schema, Type


class ExtentKind(Enum):
    """Where the tuples of an extent come from."""

    SENSED = "sensed"  # motes sample them on a schedule
    PUSHED = "pushed"  # other systems send them at any time
    STORED = "stored"  # rows of a table

    def __str__(self) -> str:
        return self.value


class LatePolicy(Enum):
    """How a time window treats a tuple that arrives after the window was answered (semantics 1.5)."""

    REVISE = "revise"
    APPEND = "append"
    DROP = "drop"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Extent:
    """One extent as declared. All durations are in ticks.

    Sensed extents: each site is sampled at the multiples of `interval`; `sites` are in declared order, None for every
    mote with the sensors. `wait` is how long windows wait for due readings. With LatePolicy.REVISE, answers are revised
    back to `horizon` (None: without limit). `ahead` limits how far ahead of the clock a tick may be (None: any
    distance). `source` is the file with the rows of a stored extent.
    """

    name: str
    kind: ExtentKind
    schema: Schema
    interval: int | None = None
    sites: tuple[int, ...] | None = ()
    wait: int = 0
    late: LatePolicy = LatePolicy.REVISE
    horizon: int | None = None
    ahead: int | None = None
    source: str | None = None

    @property
    def site_attribute(self) -> Attribute | None:
        """The attribute `site` of a sensed extent, which needs no sensor (semantics 1.4), or None."""
        found = self.schema.find("site")
        return found if self.kind is ExtentKind.SENSED and found and found.type is Type.INTEGER else None

    @property
    def time_attribute(self) -> Attribute | None:
        """The attribute `time` of a sensed extent, which is the tick and needs no sensor (semantics 1.4), or None."""
        found = self.schema.find("time")
        return found if self.kind is ExtentKind.SENSED and found and found.type.whole else None


@dataclass(frozen=True, slots=True)
class Catalog:
    """The extents that queries may name, and the length of a tick in milliseconds."""

    extents: Mapping[str, Extent]
    tick_ms: int = 1_000

    def __iter__(self) -> Iterator[Extent]:
        return iter(self.extents.values())

    def find(self, name: str) -> Extent | None:
        """Return the extent of that name, or None."""
        return self.extents.get(name)
