"""W1 in Polars and in DuckDB, to see whether numpy is the ceiling."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from bench.answers import Tuples

_COLUMNS = ("time", "site", "temp", "vibration")


class Polars:
    def __init__(self, case, streams):
        self._taken = 0
        self._wanted = (pl.col("temp") < 50) & (pl.col("vibration") > 20)

    def prepare(self, parts, last):
        road = parts["road"]
        return pl.DataFrame({"tick": road.tick, **{name: road.columns[name] for name in _COLUMNS}})

    def step(self, batch):
        kept = batch.with_row_index("index", self._taken + 1).filter(self._wanted)
        self._taken += len(batch)
        if not len(kept):
            return []
        index = kept["index"].to_numpy().astype(np.int64)
        columns = [(kept[name].to_numpy(), None) for name in ("time", "site", "vibration")]
        return [Tuples(kept["tick"].to_numpy(), index, columns)]


class DuckDB:
    def __init__(self, case, streams):
        self._taken = 0
        self._connection = duckdb.connect()

    def prepare(self, parts, last):
        road = parts["road"]
        return pa.table({"tick": road.tick, **{name: road.columns[name] for name in _COLUMNS}})

    def step(self, batch):
        index = self._taken + 1 + np.arange(len(batch))
        self._taken += len(batch)
        self._connection.register("road", batch.append_column("number", pa.array(index)))
        kept = self._connection.execute(
            'SELECT tick, number, "time", site, vibration FROM road WHERE temp < 50 AND vibration > 20'
        ).fetchnumpy()
        if not len(kept["tick"]):
            return []
        return [Tuples(kept["tick"], kept["number"], [(kept[name], None) for name in ("time", "site", "vibration")])]


OTHERS = {"polars": Polars, "duckdb": DuckDB}
