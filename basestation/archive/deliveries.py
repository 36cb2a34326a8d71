"""Deliveries: what came for an extent, with its corrections, as an archive has it, for an engine that takes it again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import BY_KEY, Batch, empty_batch
from acquisition.extent import Extent, ExtentKind
from basestation.archive.layout import arrow_schema, batch_of, conform
from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import read_listed
from basestation.archive.transfer import in_delivery_order

NO_TUPLE = np.iinfo(np.int64).max
"""In `replaces` of a correction whose tuple is not among those that were read."""


def read_deliveries(
    root: Path, files: Sequence[ArchiveFile], extent: Extent, first: int, last: int, tick_ms: int
) -> Batch:
    """The deliveries and corrections with first <= tick <= last in their order, each with the clock tick of its arrival.

    A correction has in `replaces` BY_KEY for a reading, and for a pushed tuple its place among those here that an extent takes, from 1.
    OSError names a file that is missing or damaged, ArchiveSchemaError one whose columns do not fit.
    """
    schema = arrow_schema(extent, tick_ms)
    chosen = [file for file in files if file.first <= last and first <= file.last]
    if not chosen:
        return empty_batch(extent.schema)
    table = in_delivery_order([conform(read_listed(root, file), schema, file.name) for file in chosen], first, last)
    found = batch_of(extent, table)
    index, revision = (table[name].to_numpy().astype(np.int64) for name in ("_index", "_revision"))
    columns = dict(found.columns)
    for name, mask in found.valid.items():
        if columns[name].dtype == object:  # an engine has a string where a null stands, too
            columns[name] = np.where(mask, columns[name], "")
    return replace(found, columns=columns, replaces=_find_replaced(extent, found, index, revision))


def _find_replaced(extent: Extent, batch: Batch, index: IntArray, revision: IntArray) -> IntArray:
    replaced = np.zeros(len(batch), np.int64)
    if extent.kind is ExtentKind.SENSED:
        replaced[(revision > 0) & (index == 0)] = BY_KEY
        return replaced
    is_taken = revision == 0
    if extent.ahead is not None:
        is_taken &= batch.tick - batch.arrival <= extent.ahead
    place, corrected = np.cumsum(is_taken), set(index[revision > 0].tolist())
    latest: dict[tuple[int, int], int] = {}  # after a restore an index may come again, with another tick
    for at in np.flatnonzero(np.isin(index, list(corrected))):
        key = int(index[at]), int(batch.tick[at])
        if revision[at]:
            replaced[at] = latest.get(key, NO_TUPLE)
        elif is_taken[at]:
            latest[key] = int(place[at])
    return replaced
