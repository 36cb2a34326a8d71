"""Starts a local Spark session that is small enough for a gateway, logs only errors and writes only to our folder."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.archive.spark.java import SparkUnavailableError, find_java
from gateway.errors import MoteloomError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession as SparkSession

# Measured on two cores: the serial collector and the first compiler only take a second off the start of a session.
# Spark refuses heaps below 450 MB.
HEAP = "512m"


class SparkFailedError(MoteloomError):
    """Spark could not run a statement; the message is Spark's own, without its stack."""


NEEDED_MB = 900
"""Less available memory than this, and Spark would push the station into swap: it is not started."""


def start_session(state: Path, cores: int = 2, heap: str = HEAP) -> "SparkSession":
    """A local session with its scratch files, and what Java prints, in `state`. SparkUnavailableError names the missing part."""
    java = find_java()
    available = _available_mb()
    if available is not None and available < NEEDED_MB:
        raise SparkUnavailableError(
            f"Spark needs {NEEDED_MB} MB of free memory, and {available} MB are available; ask on another machine with a copy of the archive"
        )
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailableError(f"history needs PySpark ({error}): pip install 'moteloom[history]'") from error
    os.environ["JAVA_HOME"] = str(java)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": heap,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.default.parallelism": str(cores),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreMissingFiles": "false",  # a day that was compacted meanwhile is read again, never left out
        "spark.sql.ansi.enabled": "false",  # integers wrap around and a division by zero is null (semantics 14)
        "spark.sql.parquet.aggregatePushdown": "false",
        "spark.sql.warehouse.dir": str(state / "spark" / "warehouse"),
        "spark.local.dir": str(state / "spark" / "scratch"),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("moteloom")
    for name, value in options.items():
        builder = builder.config(name, value)
    state.mkdir(parents=True, exist_ok=True)
    log = state / "spark.log"
    try:
        with _stderr_into(log):
            return builder.getOrCreate()
    except Exception as error:  # py4j and pyspark have no common base
        said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        reason = next((line for line in said if "rror" in line), said[-1] if said else str(error))
        raise SparkUnavailableError(f"Spark does not start: {reason.strip()}") from error


@contextmanager
def report_failures() -> Iterator[None]:
    """Raise SparkFailedError where Spark fails inside."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = re.search(r"\[[A-Z][A-Z0-9_.]+\][^\n]*", str(error))  # a class of Spark's errors, and its message
        reason = found.group(0) if found else str(error).split("\n", 1)[0].strip() or type(error).__name__
        raise SparkFailedError(f"Spark failed: {reason}") from error


@contextmanager
def _stderr_into(path: Path) -> Iterator[None]:
    """Let processes that start meanwhile, and this one, write standard error to a file: Java prints warnings at every start."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with path.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _available_mb() -> int | None:
    """The memory that new programs can use; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable:")), None)
