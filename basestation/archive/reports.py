"""Filter reports: the readings of an extent that motes filtered, archived beside its readings as keys alone. And the trees of an archive."""

from dataclasses import replace

from acquisition.extent import Catalog, Extent
from acquisition.schema import Schema
from basestation.archive.partials import PARTIALS, partial_extent

REPORTS = "reports"
TREES = ("archive", REPORTS, PARTIALS)
"""The folders of readings, of filter reports and of partials."""


def report_extent(extent: Extent) -> Extent:
    """The extent under which an archive keeps the filter reports of an extent: `reports/lab`, without attributes."""
    return replace(extent, name=f"{REPORTS}/{extent.name}", schema=Schema(()))


def archived_extent(catalog: Catalog, name: str) -> Extent:
    """The extent under which an archive keeps tuples, by the name of an extent, of its filter reports or of its partials."""
    tree, _, plain = name.rpartition("/")
    if tree == PARTIALS:
        return partial_extent(plain)
    return report_extent(catalog.extents[plain]) if tree else catalog.extents[plain]
