"""Current tuples: those of an extent as continuous queries see them now, from deliveries and corrections of its archive (semantics 12.2)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from acquisition.arrays import IntArray
from acquisition.batch import Batch, empty_batch, unit_weights
from acquisition.extent import Extent, ExtentKind
from basestation.archive.layout import arrow_schema, batch_of, conform
from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import read_listed


def read_current(
    root: Path, files: Sequence[ArchiveFile], extent: Extent, first: int, last: int, tick_ms: int
) -> Batch:
    """The tuples of a `late revise` extent with first <= tick <= last, as if each had been delivered at its tick, in their order.

    OSError names a file that is missing or damaged, ArchiveSchemaError one whose columns do not fit.
    """
    schema = arrow_schema(extent, tick_ms)
    chosen = [file for file in files if file.first <= last and first <= file.last]
    tables = [conform(read_listed(root, file), schema, file.name) for file in chosen]
    if not tables:
        return empty_batch(extent.schema)
    table = pa.concat_tables(tables).combine_chunks()
    tick = table["_tick"].to_numpy()
    table = table.filter(pa.array((tick >= first) & (tick <= last)))
    found = batch_of(extent, table.take(pa.array(_find_current(table, extent))))
    columns = dict(found.columns)
    for name, mask in found.valid.items():
        if columns[name].dtype == object:  # an engine has a string where a null stands, too
            columns[name] = np.where(mask, columns[name], "")
    return replace(found, columns=columns, arrival=found.tick, weight=unit_weights(len(found)))


def _find_current(table: pa.Table, extent: Extent) -> IntArray:
    """The row with the current values of each tuple, by tick and the order of delivery.

    The rows of a key stand in the order of clock ticks, in each deliveries first. Those from a delivery or INSERT to the next DELETE are one tuple.
    """
    tick, site, index, arrival, weight, revision = (
        table[name].to_numpy().astype(np.int64)
        for name in ("_tick", "_site", "_index", "_arrival", "_weight", "_revision")
    )
    is_sensed, horizon = extent.kind is ExtentKind.SENSED, extent.horizon or 0
    taken = weight != 0
    if extent.ahead is not None:
        taken &= tick - arrival <= extent.ahead
    if is_sensed:
        taken &= (tick % (extent.interval or 1) == 0) & np.isin(site, list(extent.sites or ()))
    # A pushed tuple without an index was imported, and is never corrected.
    who = site if is_sensed else np.where(index > 0, index, -1 - np.arange(len(index)))
    order: IntArray = np.lexsort((index, revision, revision > 0, arrival, who, tick))
    order = order[taken[order]]
    if not len(order):
        return order
    is_new = np.append(True, (np.diff(tick[order]) != 0) | (np.diff(who[order]) != 0))
    if is_sensed:
        is_new |= np.append(False, weight[order][:-1] < 0)
    else:
        again = np.append(False, (np.diff(arrival[order]) == 0) & (revision[order][1:] == 0)) & ~is_new
        is_new |= (revision[order] == 0) & ~again  # the index of a tuple comes again after a restore of the station
    tuple_of = np.cumsum(is_new) - 1
    first = order[is_new]
    seen = is_new | ((revision[order] > 0) & (tick[order] >= arrival[order] - horizon))
    last = first.copy()
    last[tuple_of[seen]] = order[seen]  # of several the last one stays
    kept = (weight[first] > 0) & (arrival[first] - tick[first] <= horizon) & (weight[last] > 0)
    found: IntArray = last[kept][np.lexsort((index[first[kept]], arrival[first[kept]], tick[first[kept]]))]
    return found
