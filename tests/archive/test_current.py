"""Current tuples of an archive, and what is staged beside them."""

import numpy as np

from acquisition.batch import Batch
from basestation.archive.current import read_current
from basestation.archive.numbering import TupleNumbers
from basestation.archive.parquet import ParquetArchive
from basestation.planner.catalog import read_schema

DOCK = read_schema("dock: pushed (weight:integer) late revise by 20 sec ahead 5 sec").extents["dock"]


def test_tuples_too_far_ahead_or_too_late_are_not_current(tmp_path):
    """
    tick   10   15   16 (6 ahead)   9 (21 late)   10
    clock  10   10   10             30            30
    """
    numbers, archive = TupleNumbers(), ParquetArchive(tmp_path, 1_000)
    tick, arrival, ones = np.array([10, 15, 16, 9, 10]), np.array([10, 10, 10, 30, 30]), np.ones(5, np.int64)
    batch = Batch(tick, 0 * ones, arrival, ones, {"weight": np.arange(1, 6)}, {})
    archive.settle(archive.stage(1, DOCK, numbers.number(DOCK, batch)))
    found = read_current(tmp_path, archive.adopt()[0], DOCK, 0, 100, 1_000)
    assert (found.tick.tolist(), found.columns["weight"].tolist()) == ([10, 10, 15], [1, 5, 2])
    assert found.arrival.tolist() == found.tick.tolist()


def test_settling_leaves_the_file_of_a_running_merge(tmp_path):
    archive, one = ParquetArchive(tmp_path, 1_000), np.ones(1, np.int64)
    for name in ("merge.parquet", "left.parquet"):
        (archive.staging / name).touch()
    archive.reserved.add("merge.parquet")
    archive.settle(
        archive.stage(1, DOCK, TupleNumbers().number(DOCK, Batch(one, 0 * one, one, one, {"weight": one}, {})))
    )
    assert [path.name for path in archive.staging.iterdir()] == ["merge.parquet"]
