"""W3 and W3s in DuckDB, to see whether numpy is the ceiling: vehicles meet readings, and windows look at eleven vehicles each."""

import duckdb
import numpy as np
import pyarrow as pa

from bench.answers import Windows
from bench.ceiling.w3_last_eleven import BACK, reading_of, vehicle_of
from bench.ceiling.w3_sensed import HeldBack
from bench.data import MINUTE

_READING, _VEHICLE = ("tick", "site", "time", "temp", "vibration"), ("tick", "site", "time", "number")


class DuckDB:
    FIRST = 1  # minutes from a reading to the first window over road that holds it

    def __init__(self, case, streams):
        self._connection = duckdb.connect()
        self._minute, self._vehicles = -1, 0
        self._kept = {"road": [np.empty(0, np.int64)] * 4 + [np.empty(0)], "traffic": [np.empty(0, np.int64)] * 4}

    def prepare(self, parts, last):
        return reading_of(parts), vehicle_of(parts), last

    def step(self, batch):
        reading, (tick, site, time), last = batch
        if reading is not None:
            self._add("road", reading)
        first, self._minute = self._minute + 1, last // MINUTE
        self._add("traffic", (tick, site, time, self._vehicles + 1 + np.arange(len(tick))))
        full = np.arange(first, self._minute + 1) * MINUTE
        ticks = np.concatenate([tick, full])
        latest = self._vehicles + np.concatenate([1 + np.arange(len(tick)), np.searchsorted(tick, full)])
        order = np.lexsort((latest, ticks))
        ticks, latest = ticks[order][latest[order] > 0], latest[order][latest[order] > 0]
        self._vehicles += len(tick)
        if not len(ticks):
            return []
        number = np.arange(len(ticks))
        windows = {"number": number, "latest": latest, "minute": ticks // MINUTE}
        self._connection.register("windows", pa.table(windows))
        for name, columns in (("road", _READING), ("traffic", _VEHICLE)):
            self._connection.register(name, pa.table(dict(zip(columns, self._kept[name], strict=True))))
        found = self._connection.execute(f"""
            WITH met AS MATERIALIZED (
                SELECT unnest(range(traffic.number, traffic.number + {BACK + 1})) AS latest,
                    road.tick // {MINUTE} AS minute, temp, vibration
                FROM road JOIN traffic ON road.site = traffic.site AND road."time" = traffic."time")
            SELECT windows.number AS number, min(temp) AS low, max(vibration) AS high
            FROM met JOIN windows USING (latest)
            WHERE windows.minute - met.minute >= {self.FIRST} AND windows.minute - met.minute <= {BACK}
            GROUP BY windows.number""").fetchnumpy()
        self._keep("road", self._kept["road"][0] >= (self._minute - BACK) * MINUTE)
        self._keep("traffic", self._kept["traffic"][3] > self._vehicles - BACK - 1)
        low, high, there = np.zeros(len(ticks), np.int64), np.zeros(len(ticks)), np.zeros(len(ticks), bool)
        low[found["number"]], high[found["number"]], there[found["number"]] = found["low"], found["high"], True
        return [Windows(ticks, np.arange(len(ticks) + 1), [(low, there), (high, there)])]

    def _add(self, name, columns):
        self._kept[name] = [np.concatenate(pair) for pair in zip(self._kept[name], columns, strict=True)]

    def _keep(self, name, mask):
        self._kept[name] = [column[mask] for column in self._kept[name]]


class SensedDuckDB(HeldBack, DuckDB):
    FIRST = 0


OTHERS = {"duckdb": DuckDB}
SENSED = {"duckdb": SensedDuckDB}
