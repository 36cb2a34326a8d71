"""Versions of a table as they go to the archive."""

import numpy as np

from basestation.algebra.vector import Vector
from basestation.archive.versions import batch_of_version
from basestation.planner.catalog import read_schema

ROOMS = read_schema("rooms: stored (site:integer, name:string)").extents["rooms"]


def test_version_without_rows_is_a_row_without_weight():
    for columns in ({}, {"site": Vector(np.empty(0, np.int64)), "name": Vector(np.empty(0, object))}):
        batch = batch_of_version(ROOMS, 7, columns)
        assert (batch.tick.tolist(), batch.weight.tolist()) == ([7], [0])
    batch = batch_of_version(ROOMS, 8, {"site": Vector(np.array([1, 2])), "name": Vector(np.array(["a", "b"], object))})
    assert (batch.tick.tolist(), batch.weight.tolist()) == ([8, 8], [1, 1])
