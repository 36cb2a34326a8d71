"""History by hand: the queries of `bench.history` as DataFrames of Spark, by people who know that each reading is there once.

Readings come every minute from all sites and nothing is late, revised or missing. So a window of readings is a frame of rows, windows need no
grid, and float sums may be added in any order.
"""

from pathlib import Path
from typing import Any

DAY, MONTH = 86_400, 30 * 86_400


class SparkByHand:
    """A method for each task of `bench.history`; each gives a DataFrame."""

    def __init__(self, session: Any, folder: Path) -> None:
        self._session, self._folder = session, folder / "archive"

    def _read(self, extent: str) -> Any:
        return self._session.read.parquet(str(self._folder / f"extent={extent}"))

    def filter(self) -> Any:
        return self._read("road").where("temp < 50 AND vibration > 20").select("_tick", "_site", "vibration")

    def minutes(self) -> Any:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        window = Window.partitionBy("_site").orderBy("_tick").rangeBetween(-600, 0)
        found = [getattr(f, name)("vibration").over(window) for name in ("min", "max", "avg", "count")]
        return self._read("road").select("_site", "_tick", *found)

    def hours(self) -> Any:
        from pyspark.sql import functions as f

        hour = (f.ceil(f.col("_tick") / 3600) * 3600).alias("hour")
        found = [getattr(f, name)("vibration") for name in ("min", "max", "avg", "count")]
        return self._read("road").groupBy("_site", hour).agg(*found)

    def classes(self) -> Any:
        """How often each site has each class in the six minutes of a window; more than five minutes before are new rows."""
        from pyspark.sql import functions as f

        windows = (f.ceil(f.col("_tick") / 300) * 300).alias("w")
        begun = self._read("road").select("_site", "temp", "_tick", windows)
        # The reading on the edge is in two windows.
        both = begun.select("_site", "temp", "w").unionAll(
            begun.where("_tick % 300 = 0").select("_site", "temp", (f.col("w") + 300).alias("w"))
        )
        last = begun.agg(f.max(f.floor(f.col("_tick") / 300) * 300)).first()[0]
        table = self._session.table("e_classes").select("temp", "category")
        counts = (
            both.where(f.col("w") <= last).join(f.broadcast(table), "temp").groupBy("w", "_site", "category").count()
        )
        before = counts.select((f.col("w") + 300).alias("w"), "_site", "category", f.col("count").alias("was"))
        more = counts.join(before, ["w", "_site", "category"], "left").withColumn(
            "more", f.col("count") - f.coalesce("was", f.lit(0))
        )
        copies = f.explode(f.sequence(f.lit(1), f.col("more")))
        return more.where("more > 0").select("w", "_site", "category", copies.alias("copy"))

    def months(self) -> Any:
        from pyspark.sql import functions as f

        road = self._read("road").select("_tick", "_site", "vibration")
        old = road.select((f.col("_tick") + MONTH).alias("_tick"), "_site", f.col("vibration").alias("before"))
        return road.join(old, ["_tick", "_site"])


class DuckByHand:
    """The same in DuckDB: a method for each task gives SQL."""

    def __init__(self, folder: Path) -> None:
        self._files = f"read_parquet('{folder}/archive/extent=road/*/*.parquet')"
        self._classes = f"(SELECT * FROM read_csv('{folder}/classes.csv'))"

    def filter(self) -> str:
        return f"SELECT _tick, _site, vibration FROM {self._files} WHERE temp < 50 AND vibration > 20"

    def minutes(self) -> str:
        found = ", ".join(f"{name}(vibration) OVER w" for name in ("min", "max", "avg", "count"))
        frame = "PARTITION BY _site ORDER BY _tick RANGE BETWEEN 600 PRECEDING AND CURRENT ROW"
        return f"SELECT _site, _tick, {found} FROM {self._files} WINDOW w AS ({frame})"

    def hours(self) -> str:
        found = ", ".join(f"{name}(vibration)" for name in ("min", "max", "avg", "count"))
        return f"SELECT _site, ceil(_tick / 3600) * 3600 AS hour, {found} FROM {self._files} GROUP BY ALL"

    def classes(self) -> str:
        return f"""WITH counts AS (SELECT w, _site, category, count(*) AS n FROM (
            SELECT _site, temp, unnest(CASE WHEN _tick % 300 = 0 THEN [_tick, _tick + 300] ELSE [(_tick // 300 + 1) * 300] END) AS w
            FROM {self._files}) JOIN {self._classes} USING (temp) WHERE w <= (SELECT max(_tick // 300 * 300) FROM {self._files}) GROUP BY ALL)
            SELECT c.w, c._site, c.category, unnest(range(c.n - coalesce(p.n, 0))) FROM counts c
            LEFT JOIN counts p ON p.w = c.w - 300 AND p._site = c._site AND p.category = c.category WHERE c.n > coalesce(p.n, 0)"""

    def months(self) -> str:
        return f"""SELECT n._tick, n._site, n.vibration, o.vibration FROM {self._files} n
            JOIN {self._files} o ON n._tick = o._tick + {MONTH} AND n._site = o._site"""
