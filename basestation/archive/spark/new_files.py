"""New files: the Parquet files of a folder that no earlier run has seen, by Spark's Structured Streaming with a checkpoint."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.archive.spark.session import report_failures

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LONGEST_AGE = "36500d"
"""Spark leaves out new files that are older than the newest one by more than this: by default a week, as copies of a station that was away are."""


def take_new_files(
    session: "SparkSession", pattern: str, schema: str, checkpoint: Path, take: Callable[["DataFrame"], None]
) -> None:
    """Give `take` the rows of files that match `pattern` and are new. It is given them again where a run ends before it returns."""
    failures: list[Exception] = []

    def take_batch(batch: "DataFrame", number: int) -> None:
        try:
            take(batch)
        except Exception as why:  # Spark would report it as a failure of Python, with the stack as text
            failures.append(why)
            raise

    with report_failures():
        reader = session.readStream.schema(schema).option("pathGlobFilter", "part-*.parquet")
        stream = reader.option("maxFileAge", LONGEST_AGE).parquet(pattern)
        writer = stream.writeStream.foreachBatch(take_batch).trigger(availableNow=True)
        running = writer.option("checkpointLocation", str(checkpoint)).start()
        try:
            running.awaitTermination()
        except Exception:
            if failures:
                raise failures[0] from None
            raise
        finally:
            running.stop()
