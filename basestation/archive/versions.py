"""Versions of a stored extent, as rows of an archive: all rows of a version have the tick from which on it holds."""

from collections.abc import Mapping

import numpy as np

from acquisition.batch import Batch, dtype_of, unit_weights
from acquisition.extent import Extent
from basestation.algebra.vector import Vector


def batch_of_version(extent: Extent, tick: int, columns: Mapping[str, Vector]) -> Batch:
    """The rows of a version. One row of nulls with weight 0 stands for a version without rows."""
    count = len(next(iter(columns.values()))) if columns else 0
    weight = unit_weights(count) if count else np.zeros(1, np.int64)
    ticks, site = np.full(len(weight), tick, np.int64), np.zeros(len(weight), np.int64)
    if count == 0:
        values = {attribute.name: np.zeros(1, dtype_of(attribute)) for attribute in extent.schema}
        return Batch(ticks, site, ticks, weight, values, {name: np.zeros(1, bool) for name in values})
    valid = {name: vector.valid for name, vector in columns.items() if vector.valid is not None}
    return Batch(ticks, site, ticks, weight, {name: vector.values for name, vector in columns.items()}, valid)
