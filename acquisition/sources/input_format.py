"""How a recording is written where it differs from the system's own form: names of columns, times, a schedule that jitters."""

from dataclasses import dataclass, field

from acquisition.sources.csv_dialect import CsvDialect


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """How times are written in a column.

    `zone` is the zone of times without one, a name of the IANA database or an offset such as `+01:00`; None: UTC. Numbers count
    units of `unit_us` microseconds since 1970; None: their size tells seconds from ms, us, ns, and smaller ones are ticks.
    `pattern` is that of strptime; None: RFC 3339 or ISO 8601.
    """

    zone: str | None = None
    unit_us: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class InputFormat:
    """The form of a recording. `time_column` has the times of tuples, `site_column` the sites of readings; None: `_tick`, `_site`.

    With `site_prefix` each site has a column: the prefix and its number. A row then has a reading for each field that is not null.

    `snap` is the largest distance in ticks at which a reading is moved to the nearest tick of its schedule: 0 for none, None for
    less than half an interval. Up to `skip_bad` rows with wrong values are left out.
    """

    time_column: str | None = None
    site_column: str | None = None
    site_prefix: str | None = None
    time: TimeFormat = field(default_factory=TimeFormat)
    dialect: CsvDialect = field(default_factory=CsvDialect)
    snap: int | None = 0
    skip_bad: int = 0


PLAIN = InputFormat()
"""The form of the system."""
