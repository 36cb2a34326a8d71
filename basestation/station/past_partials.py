"""Past partials: the partials in an archive that answer past windows of a query, and their way through the journal."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.batch import Batch
from acquisition.extent import Extent
from basestation.algebra.vector import Vector
from basestation.archive.layout import arrow_schema, batch_of, conform
from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import read_listed
from basestation.archive.partials import (
    FOLD,
    INTERVAL,
    KEYS,
    READINGS,
    SITES,
    STATES,
    STREAM,
    TICKS,
    describe_stream,
    name_state,
    partial_extent,
)
from basestation.archive.transfer import in_delivery_order
from basestation.controller.requirements import split_plan
from basestation.controller.world import World
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from innet.aggregates.state_fields import EMPTY_FIELDS, make_state
from innet.operators.acquire import find_acquires
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression
from innet.placement.fold_sharing import SUMS

NUMBER = 1
"""Of the fold in the engine of a past."""


@dataclass(frozen=True, slots=True)
class PastPartials:
    """Partials for the past of a query, as its aggregation takes them, and the number of the fold of each in frames."""

    source: PartialSource
    partials: PartialBatch
    folds: IntArray


def find_foldable(plan: Plan, world: World) -> PartialSource | None:
    """The aggregation of a query that motes could fold if it did not begin in the past; None where it reads anything else of motes."""
    live = replace(plan, options=replace(plan.options, since=None, since_ago=None))
    found = split_plan(live, rewrite(live)[0].root, world)
    if len(found.fold_candidates) != 1 or found.readings:
        return None
    [candidate] = found.fold_candidates
    if len(find_acquires(candidate.fold)) != 1:
        return None
    return PartialSource(candidate.node, candidate.fold, NUMBER, candidate.sources)


def read_partials(
    root: Path,
    files: Sequence[ArchiveFile],
    source: PartialSource,
    extents: Mapping[str, Extent],
    range_: range,
    tick_ms: int,
) -> Batch | None:
    """The archived partials of equal folds whose slices lie in a range of ticks, each as a row of the archive.

    Of each slice come the partials of one fold, of the one with most readings: others have the same readings. None for none. OSError
    names a file that is missing or damaged, ArchiveSchemaError one whose columns do not fit.
    """
    fold, declared = source.fold, extents[source.fold.extent]
    archived = partial_extent(declared.name)
    schema = arrow_schema(archived, tick_ms)
    chosen = [file for file in files if file.first < range_.stop and range_.start <= file.last]
    if not chosen:
        return None
    tables = [conform(read_listed(root, file), schema, file.name) for file in chosen]
    stream = describe_stream(fold, extents)
    whole = in_delivery_order(tables, range_.start, range_.stop - 1)
    found = batch_of(archived, whole.filter(pa.array(whole[STREAM].to_numpy(zero_copy_only=False) == stream)))
    columns = found.columns
    last = found.tick + (columns[TICKS] - 1) * columns[INTERVAL]
    is_known = last < range_.stop
    if declared.horizon is not None:
        is_known &= found.arrival - found.tick <= declared.horizon
    if declared.ahead is not None:
        is_known &= found.tick - found.arrival <= declared.ahead
    is_known &= np.array([not text or _has_states(fold, text) for text in columns[STATES]], bool)
    found = found.take(is_known)
    found = found.take(_of_fullest(found.tick, found.columns[FOLD], found.columns[READINGS]))
    if not len(found):
        return None
    kept = {name: found.columns[name] for name in (FOLD, INTERVAL, TICKS, READINGS, SITES, KEYS, STATES)}
    texts = {name: np.where(found.valid.get(name, True), kept[name], "") for name in (SITES, KEYS, STATES)}
    return replace(found, columns={**kept, **texts}, valid={})


def decode_partials(source: PartialSource, rows: Batch) -> PastPartials:
    """The rows that `read_partials` found, as an aggregation takes them, each as if it had come at the last due tick of its slice."""
    fold, columns = source.fold, rows.columns
    is_bare = np.array([not text for text in columns[STATES]], bool)
    first = [json.loads(text)[0] if text else 0 for text in columns[SITES]]
    keys = [json.loads(text) if text else [None] * len(fold.keys) for text in columns[KEYS]]
    states = [json.loads(text) if text else {} for text in columns[STATES]]
    vectors = tuple(_vector([row[at] for row in keys]) for at in range(len(fold.keys)))
    made = tuple(
        make_state(kind, [_fields(row, kind, value) if row else EMPTY_FIELDS[kind] for row in states])
        for kind, value in fold.states
    )
    slices = np.asarray(fold.slices.number(rows.tick), np.int64)
    last = rows.tick + (columns[TICKS] - 1) * columns[INTERVAL]
    found = PartialBatch(last, slices, is_bare, np.array(first, np.int64), columns[READINGS], vectors, fold.kinds, made)
    return PastPartials(source, found, columns[FOLD])


def select_read(batch: Batch, names: Sequence[str]) -> Batch:
    """Readings with a value of all these attributes: others were sent for other queries, or their sensors failed."""
    masks = [batch.valid[name] for name in names if name in batch.valid]
    return batch.take(np.logical_and.reduce(masks)) if masks else batch


def _vector(keys: Sequence[int | None]) -> Vector:
    values = np.array([key or 0 for key in keys], np.int64)
    return Vector(values, np.array([key is not None for key in keys], bool))


def _has_states(fold: Fold, text: str) -> bool:
    return all(any(f"{json.dumps(name)}: " in text for name in _names_of(kind, value)) for kind, value in fold.states)


def _fields(row: Mapping[str, Sequence[int]], kind: str, value: MoteExpression) -> tuple[int, ...]:
    """The fields of a state; those of COUNT begin those of SUM, and these those of VARIANCE."""
    name = next(name for name in _names_of(kind, value) if name in row)
    return tuple(row[name])[: len(EMPTY_FIELDS[kind])]


def _names_of(kind: str, value: MoteExpression) -> list[str]:
    """The names of the states that contain a state."""
    kinds = SUMS[SUMS.index(kind) :] if kind in SUMS else (kind,)
    return [name_state(each, value) for each in kinds]


def _of_fullest(slices: IntArray, folds: AnyArray, readings: AnyArray) -> BoolArray:
    """The partials of the fold that has most readings of their slice; of several such folds of that with the least number."""
    totals: dict[tuple[int, int], int] = {}
    pairs = list(zip(slices.tolist(), folds.tolist(), strict=True))
    for pair, count in zip(pairs, readings.tolist(), strict=True):
        totals[pair] = totals.get(pair, 0) + count
    best: dict[int, tuple[int, int]] = {}
    for (slice_, fold), count in totals.items():
        best[slice_] = max(best.get(slice_, (0, -256)), (count, -fold))
    return np.array([best[slice_][1] == -fold for slice_, fold in pairs], bool)
