"""Statistics of recorded readings, for the placement of queries on motes."""

from collections.abc import Mapping

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent
from innet.operators.column_evaluation import ValueColumn
from innet.placement.statistics import CountedStatistics, ExtentReadings


def collect_statistics(batches: Mapping[str, Batch], catalog: Catalog) -> CountedStatistics:
    """Statistics of batches by extent name. Only attributes with integer multiples count: motes compute with no others."""
    return CountedStatistics.of(
        {name: observe_batch(batch.take(batch.weight > 0), catalog.extents[name]) for name, batch in batches.items()}
    )


def observe_batch(batch: Batch, extent: Extent) -> ExtentReadings:
    """Sites, ticks and integer columns of the readings of one extent."""
    lanes = {
        attribute.name: _lane(batch, attribute.name)
        for attribute in extent.schema
        if attribute.name in batch.columns and (attribute.type.whole or attribute.scale is not None)
    }
    return ExtentReadings(batch.site.astype(np.int64), batch.tick, lanes)


def _lane(batch: Batch, name: str) -> ValueColumn:
    values = batch.columns[name]
    return ValueColumn.of(values.astype(np.int64), batch.valid.get(name, np.ones(len(values), bool)))
