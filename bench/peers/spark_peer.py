"""Spark Structured Streaming, in an environment of its own: `python spark_peer.py TASK DATA OUT`; OUT `-` drops the answers.

DATA is a folder of Parquet files of 65,536 readings each; every file is a micro-batch.
"""

import json
import os
import sys
import tempfile
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def filtered(road):
    return road.where("temp < 50 AND vibration > 20").select("tick", "site", "vibration"), "append"


def per_site(road):
    timed = road.withColumn("ts", f.timestamp_millis("tick")).withWatermark("ts", "0 seconds")
    groups = timed.groupBy(f.window("ts", "10 minutes", "1 minute"), "site")
    said = groups.agg(f.min("vibration"), f.max("vibration"), f.avg("vibration"), f.count("*"))
    return said.select(f.unix_millis("window.end"), *said.columns[1:]), "append"


TASKS = {"W1": filtered, "W2": per_site}


def main(task, data, out):
    cores = os.cpu_count()
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.sql.shuffle.partitions", cores)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    schema = "tick BIGINT, site BIGINT, time BIGINT, temp BIGINT, vibration DOUBLE"
    road = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(data)
    said, mode = TASKS[task](road)
    with tempfile.TemporaryDirectory() as state:
        writer = said.writeStream.outputMode(mode).trigger(availableNow=True).option("checkpointLocation", state)
        if out == "-":
            writer = writer.format("noop")
        else:
            writer = writer.format("csv").option("path", out)
        start = time.perf_counter()
        writer.start().awaitTermination()
        seconds = time.perf_counter() - start
    spark.stop()
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
