"""Counting: batches of readings that somebody has recorded -> what the placement of queries may count in them."""

from collections.abc import Mapping

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import Catalog, Extent
from innet.operators.column_evaluation import Lane
from innet.placement.statistics import Counted, Observed


def counted(batches: Mapping[str, Batch], catalog: Catalog) -> Counted:
    """Of extents by name. Only attributes of whole multiples: motes compute with no others."""
    return Counted.of(
        {name: observed(batch.take(batch.weight > 0), catalog.find(name)) for name, batch in batches.items()}
    )


def observed(batch: Batch, extent: Extent) -> Observed:
    """Of one extent."""
    lanes = {
        attribute.name: _lane(batch, attribute.name)
        for attribute in extent.schema
        if attribute.name in batch.columns and (attribute.type.whole or attribute.scale is not None)
    }
    return Observed(batch.site.astype(np.int64), batch.tick, lanes)


def _lane(batch: Batch, name: str) -> Lane:
    values = batch.columns[name]
    return Lane.of(values.astype(np.int64), batch.valid.get(name, np.ones(len(values), bool)))
