"""Starts a local Spark session that is small enough for a gateway, logs only errors and writes only to our folder."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from basestation.archive.spark.java import SparkUnavailableError, find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Measured on two cores: the serial collector and the first compiler only take a second off the start of a session.
# Spark refuses heaps below 450 MB.
HEAP = "512m"


def start_session(state: Path, cores: int = 2) -> "SparkSession":
    """A local session with its scratch files in `state`. Raises SparkUnavailableError, which names the missing part."""
    java = find_java()
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise SparkUnavailableError(f"history needs PySpark ({error}): pip install 'moteloom[history]'") from error
    os.environ["JAVA_HOME"] = str(java)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.driver.memory": HEAP,
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.default.parallelism": str(cores),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.warehouse.dir": str(state / "spark" / "warehouse"),
        "spark.local.dir": str(state / "spark" / "scratch"),
    }
    builder = SparkSession.builder.master(f"local[{cores}]").appName("moteloom")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
