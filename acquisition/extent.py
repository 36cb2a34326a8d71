"""Extent: a named relation that readings, pushed tuples or rows belong to; Catalog: all of them.

An extent says where its tuples come from and how time treats them. It knows nothing about queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from acquisition.schema import Schema, Type


class ExtentKind(Enum):
    """Where the tuples of an extent come from."""

    SENSED = "sensed"  # pulled from motes on a schedule
    PUSHED = "pushed"  # sent at us whenever the source likes
    STORED = "stored"  # lies in a table

    def __str__(self):
        return self.value


class LatePolicy(Enum):
    """What a time window does with a tuple that comes after its window was answered (SEMANTICS 1.5)."""

    REVISE = "revise"
    APPEND = "append"
    DROP = "drop"

    def __str__(self):
        return self.value


@dataclass(frozen=True, slots=True)
class Extent:
    """One extent as declared. All durations are in ticks."""

    name: str
    kind: ExtentKind
    schema: Schema
    interval: int | None = None  # sensed: a site is sampled at 0, interval, 2 interval, …
    sites: tuple[int, ...] | None = ()  # sensed: in declared order; None: every mote that has the sensors
    wait: int = 0  # how long windows wait for what is due
    late: LatePolicy = LatePolicy.REVISE
    horizon: int | None = None  # late revise: how far back answers are corrected
    ahead: int | None = None  # how far ahead of the clock a tuple may be stamped; None: any distance
    source: str | None = None  # stored: the file that holds the rows

    @property
    def streams(self):
        return self.kind is not ExtentKind.STORED

    @property
    def site_attribute(self):
        """The attribute that is known without a sensor because it is the site (SEMANTICS 1.4), or None."""
        found = self.schema.find("site")
        return found if self.kind is ExtentKind.SENSED and found and found.type is Type.INTEGER else None

    @property
    def time_attribute(self):
        """The attribute that is known without a sensor because it is the tick (SEMANTICS 1.4), or None."""
        found = self.schema.find("time")
        return found if self.kind is ExtentKind.SENSED and found and found.type.whole else None


@dataclass(frozen=True, slots=True)
class Catalog:
    """The extents a query may name, and the length of a tick."""

    extents: Mapping[str, Extent]
    tick_ms: int = 1_000

    def __iter__(self):
        return iter(self.extents.values())

    def find(self, name):
        return self.extents.get(name)
