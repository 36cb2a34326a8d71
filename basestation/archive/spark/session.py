"""The Spark session: local, small enough for a gateway, quiet, and with everything it writes in a folder of ours."""

import os
import sys
from pathlib import Path

from basestation.archive.spark.java import SparkUnavailableError, find_java

# Measured on two cores: the serial collector and the first compiler only take a second off the start of a session.
# Spark refuses heaps below 450 MB.
HEAP = "512m"


def start_session(state: Path, cores: int = 2):
    """A local session; `state` is where its scratch files go. SparkUnavailable says what is missing."""
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
