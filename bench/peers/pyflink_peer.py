"""PyFlink SQL, in an environment of its own: `python pyflink_peer.py TASK DATA OUT`; OUT `-` drops the answers."""

import json
import os
import sys
import time

from pyflink.table import EnvironmentSettings, TableEnvironment

ROAD = """CREATE TABLE road (
  ms BIGINT, site BIGINT, `time` BIGINT, temp BIGINT, vibration DOUBLE,
  ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'csv')"""
Q1 = "SELECT ms, site, vibration FROM road WHERE temp < 50 AND vibration > 20"
PER_SITE = """SELECT CAST(EXTRACT(EPOCH FROM CAST(window_end AS TIMESTAMP(3))) AS BIGINT) * 1000, site,
  MIN(vibration), MAX(vibration), AVG(vibration), COUNT(*)
FROM TABLE(HOP(TABLE road, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTE))
GROUP BY window_start, window_end, site"""
TASKS = {
    "W1": (Q1, "a BIGINT, b BIGINT, c DOUBLE"),
    "W2": (PER_SITE, "a BIGINT, b BIGINT, c DOUBLE, d DOUBLE, e DOUBLE, f BIGINT"),
}


def main(task, data, out):
    query, columns = TASKS[task]
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    settings = tables.get_config()
    settings.set("parallelism.default", str(os.cpu_count()))
    settings.set("table.local-time-zone", "UTC")
    tables.execute_sql(ROAD.format(path=os.path.abspath(data)))
    kept = f"'connector' = 'filesystem', 'path' = '{os.path.abspath(out)}', 'format' = 'csv'"
    sink = "'connector' = 'blackhole'" if out == "-" else kept
    tables.execute_sql(f"CREATE TABLE said ({columns}) WITH ({sink})")
    start = time.perf_counter()
    tables.execute_sql(f"INSERT INTO said {query}").wait()
    print(json.dumps({"seconds": time.perf_counter() - start}))


if __name__ == "__main__":
    main(*sys.argv[1:])
