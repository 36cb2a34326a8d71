"""Filter reports: the readings of an extent that motes filtered, archived beside its readings as keys alone."""

from dataclasses import replace

from acquisition.extent import Catalog, Extent
from acquisition.schema import Schema

REPORTS = "reports"
TREES = ("archive", REPORTS)
"""The folders of readings and of filter reports."""


def report_extent(extent: Extent) -> Extent:
    """The extent under which an archive keeps the filter reports of an extent: `reports/lab`, without attributes."""
    return replace(extent, name=f"{REPORTS}/{extent.name}", schema=Schema(()))


def archived_extent(catalog: Catalog, name: str) -> Extent:
    """The extent under which an archive keeps tuples, by the name of an extent or of its filter reports."""
    tree, _, plain = name.rpartition("/")
    return report_extent(catalog.extents[plain]) if tree else catalog.extents[plain]
