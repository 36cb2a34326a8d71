"""After a restore a station rolls some deliveries again: merges and exports take each pushed tuple once."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from acquisition.batch import Batch
from basestation.archive.compaction import days_of_files, drop_repeated, merge_day
from basestation.archive.numbering import TupleNumbers
from basestation.archive.parquet import STAGING, ParquetArchive
from basestation.archive.transfer import export_readings
from basestation.planner.catalog import read_schema

EXTENT = read_schema("traffic: pushed (weight:integer, lane:string)").extents["traffic"]


def test_pushed_tuple_that_was_rolled_again_counts_once(tmp_path):
    """Two equal tuples of one delivery are two; the same index and arrival again is a copy."""
    numbers, archive = TupleNumbers(), ParquetArchive(tmp_path, 1_000)
    tick, ones = np.array([7, 7, 8]), np.ones(3, np.int64)
    lanes = np.array(["a", "a", ""], object)
    columns, valid = {"weight": 900 * ones, "lane": lanes}, {"lane": np.array([True, True, False])}
    numbered = numbers.number(EXTENT, Batch(tick, 0 * ones, tick, ones, columns, valid))
    for entry, part in enumerate([numbered, numbered.take([1, 2]), numbered.take([0])], 1):
        archive.settle([*archive.adopt()[0], *archive.stage(entry, EXTENT, part)])
    [day] = days_of_files(archive.adopt()[0])
    assert day.rows == 6
    assert export_readings(tmp_path, [day], 0, 9)["_tick"].to_pylist() == [7, 7, 8]
    merged = merge_day(tmp_path, day)
    assert merged.rows == 3
    assert pq.read_table(tmp_path / STAGING / merged.name)["_index"].to_pylist() == [1, 2, 3]


def test_imported_tuples_without_an_index_all_stay(tmp_path):
    archive, zeros = ParquetArchive(tmp_path, 1_000), np.zeros(2, np.int64)
    columns = {"weight": zeros, "lane": np.array(["a", "a"], object), "_index": zeros, "_revision": zeros}
    archive.settle(archive.stage(0, EXTENT, Batch(zeros, zeros, zeros, zeros + 1, columns, {})))
    [day] = days_of_files(archive.adopt()[0])
    assert export_readings(tmp_path, [day], 0, 9).num_rows == merge_day(tmp_path, day).rows == 2


def test_readings_of_a_tick_that_differ_all_stay():
    """A reading that came again has another index and arrival; one that differs in an attribute is another reading."""
    columns = {"_tick": [5] * 5 + [6], "_site": [3] * 6, "_index": range(1, 7), "_arrival": [5, 9, 9, 9, 12, 6]}
    table = pa.table({name: list(values) for name, values in columns.items()})
    temp, volt = [20.0, 20.0, 21.0, None, None, None], [1, 1, 1, 1, 2, 2]
    found = drop_repeated(table.append_column("temp", [temp]).append_column("volt", [volt]))
    assert found["_index"].to_pylist() == [1, 3, 4, 5, 6]
    assert drop_repeated(table)["_index"].to_pylist() == [1, 6]
