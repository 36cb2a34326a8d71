"""Counts the readings of an archive: the first and simplest historical query."""

from pathlib import Path
from typing import TYPE_CHECKING

from acquisition.extent import Extent
from basestation.archive.layout import extent_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def count_readings(session: "SparkSession", root: Path, extent: Extent, first: int, last: int) -> int:
    """The sum of the weights of the readings with first <= tick <= last."""
    from pyspark.sql import functions

    folder = extent_folder(root, extent.name)
    if not any(folder.glob("date=*/*.parquet")):
        return 0
    readings = session.read.parquet(str(folder)).where(functions.col("_tick").between(first, last))
    row = readings.agg(functions.sum("_weight")).first()
    return 0 if row is None else int(row[0] or 0)
