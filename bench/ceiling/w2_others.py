"""W2 in Polars and in DuckDB, to see whether numpy is the ceiling. Both add up two words for each double, as numpy does."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from bench.answers import Windows
from bench.ceiling.exact import REST, TOP, means
from bench.data import MINUTE

REACH = 10  # minutes


class _Waiting:
    """Readings are kept for ten minutes, and answered when a minute is over."""

    def __init__(self, case, streams):
        self._kept = None
        self._answered = -1  # the minute of the last window that was answered

    def step(self, batch):
        table, last = batch
        self._kept = table if self._kept is None else self._joined(self._kept, table)
        first, minute = self._answered, last // MINUTE
        if first == minute:
            return []
        self._answered = minute
        tick, *columns = self._answer(first + 1, minute)
        self._kept = self._from((minute - REACH + 1) * MINUTE)
        ticks = np.arange(first + 1, minute + 1) * MINUTE
        bounds = np.append(np.searchsorted(tick, ticks), len(tick))
        site, low, high, counts, *words = columns
        columns = [site, low, high, means(*words, counts), counts]
        return [Windows(ticks, bounds, [(column, None) for column in columns])]


class Polars(_Waiting):
    _VALUE = pl.col("vibration")
    _HIGH = (_VALUE * 2.0**TOP).round(0)
    _WORDS = (
        _HIGH.cast(pl.Int64).alias("top"),
        ((_VALUE * 2.0**TOP - _HIGH) * 2.0**REST).cast(pl.Int64).alias("rest"),
    )

    def prepare(self, parts, last):
        road = parts["road"]
        table = {"tick": road.tick, "site": road.columns["site"], "vibration": road.columns["vibration"]}
        return pl.DataFrame(table).with_columns(pl.col("tick").set_sorted()), last

    def _joined(self, kept, table):
        return pl.concat([kept, table.with_columns(*self._WORDS) if "top" in kept.columns else table])

    def _from(self, tick):
        return self._kept.filter(pl.col("tick") >= tick)

    def _answer(self, first, last):
        if "top" not in self._kept.columns:
            self._kept = self._kept.with_columns(*self._WORDS)
        said = (
            self._kept.with_columns(pl.col("tick").set_sorted())
            .group_by_dynamic(
                "tick",
                every=f"{MINUTE}i",
                period=f"{REACH * MINUTE}i",
                offset=f"{-(REACH - 1) * MINUTE}i",
                closed="left",
                label="right",
                group_by="site",
            )
            .agg(
                self._VALUE.min().alias("low"),
                self._VALUE.max().alias("high"),
                pl.len().cast(pl.Int64).alias("readings"),
                pl.col("top").sum(),
                pl.col("rest").sum(),
            )
            .filter(pl.col("tick").is_between(first * MINUTE, last * MINUTE))
            .sort("tick")
        )
        return [said[name].to_numpy() for name in ("tick", "site", "low", "high", "readings", "top", "rest")]


class DuckDB(_Waiting):
    _QUERY = f"""
        WITH words AS (SELECT tick, site, vibration, round_even(vibration * {2**TOP}::DOUBLE, 0) AS top FROM road),
        minutes AS (
            SELECT tick // {MINUTE} AS minute, site, min(vibration) AS low, max(vibration) AS high, count(*) AS readings,
                sum(top::BIGINT)::BIGINT AS top,
                sum(((vibration * {2**TOP}::DOUBLE - top) * {2**REST}::DOUBLE)::BIGINT)::BIGINT AS rest
            FROM words GROUP BY ALL)
        SELECT (minute + late) * {MINUTE} AS tick, site, min(low) AS low, max(high) AS high,
            sum(readings)::BIGINT AS readings, sum(top)::BIGINT AS top, sum(rest)::BIGINT AS rest
        FROM minutes, range(1, {REACH + 1}) AS behind(late)
        WHERE minute + late BETWEEN ? AND ? GROUP BY ALL ORDER BY 1"""

    def __init__(self, case, streams):
        super().__init__(case, streams)
        self._connection = duckdb.connect()

    def prepare(self, parts, last):
        road = parts["road"]
        table = {"tick": road.tick, "site": road.columns["site"], "vibration": road.columns["vibration"]}
        return pa.table(table), last

    def _joined(self, kept, table):
        return pa.concat_tables([kept, table])

    def _from(self, tick):
        ticks = self._kept.column("tick").to_numpy()
        return self._kept.slice(int(np.searchsorted(ticks, tick))).combine_chunks()

    def _answer(self, first, last):
        self._connection.register("road", self._kept)
        said = self._connection.execute(self._QUERY, [first, last]).fetchnumpy()
        return [said[name] for name in ("tick", "site", "low", "high", "readings", "top", "rest")]


OTHERS = {"polars": Polars, "duckdb": DuckDB}
