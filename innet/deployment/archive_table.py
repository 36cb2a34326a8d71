"""Archive table: how long a station keeps archived readings, from the table `[archive]` of a deployment.

[archive]
keep_days = 400
free_mb = 500

[archive.lab]
keep_days = 30
keep_mb = 2000
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gateway.toml import TomlTable

_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """The part of an extent that stays: its newest `days`, and no more than `bytes` of them. None is without limit."""

    days: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ArchiveSettings:
    """Limits by extent, those of all others, and the bytes of the disk that stay free."""

    default: KeepLimits = KeepLimits()
    by_extent: Mapping[str, KeepLimits] = field(default_factory=dict)
    free_bytes: int | None = None

    def limits(self, extent: str) -> KeepLimits:
        """The limits of an extent."""
        return self.by_extent.get(extent, self.default)


def read_archive_table(top: TomlTable) -> ArchiveSettings:
    """Read the table `archive` of a deployment. A table in it belongs to one extent; what it leaves out is as for all."""
    if (table := top.table("archive")) is None:
        return ArchiveSettings()
    default = _read_limits(table, KeepLimits())
    free = table.integer("free_mb", 1, 10**9, None)
    by_extent = {}
    for name, value in table.values.items():
        if isinstance(value, dict) and (inner := table.table(name)) is not None:
            by_extent[name] = _read_limits(inner, default)
            inner.close()
    table.close()
    return ArchiveSettings(default, by_extent, None if free is None else free * _MB)


def _read_limits(table: TomlTable, default: KeepLimits) -> KeepLimits:
    days = table.integer("keep_days", 1, 1_000_000, default.days)
    size = table.integer("keep_mb", 1, 10**9, None)
    return KeepLimits(days, default.bytes if size is None else size * _MB)
