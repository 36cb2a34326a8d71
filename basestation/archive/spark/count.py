"""How many readings the archive holds: the first, and simplest, of the historical queries."""

from pathlib import Path

from acquisition.extent import Extent
from basestation.archive.layout import extent_folder


def count_readings(session, root: Path, extent: Extent, first: int, last: int) -> int:
    """The sum of the weights of the readings with first <= tick <= last."""
    from pyspark.sql import functions

    folder = extent_folder(root, extent.name)
    if not any(folder.glob("date=*/*.parquet")):
        return 0
    readings = session.read.parquet(str(folder)).where(functions.col("_tick").between(first, last))
    return readings.agg(functions.sum("_weight")).first()[0] or 0
