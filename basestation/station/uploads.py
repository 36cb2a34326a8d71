"""Uploads: tuples and tables that clients send, as the journal keeps them, and how a station takes them.

push     tuples of a pushed extent, delivered in the tick of the entry      load   a version of a stored extent, valid from then on
recall   tuples of the archive, for the past of the query that the next entry starts, resumes or puts in the place of another
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from acquisition.arrays import AnyArray, BoolArray
from acquisition.batch import Batch, unit_weights
from acquisition.extent import ExtentKind
from acquisition.sources.arrow_arrays import (
    codes_of,
    mask_to_arrow,
    mask_to_numpy,
    numbers_to_arrow,
    numbers_to_numpy,
    strings_to_arrow,
)
from acquisition.sources.pushed_tuples import PushedTuples
from basestation.algebra.vector import Vector
from basestation.station.journal import Upload
from basestation.station.service import Station

PUSH, LOAD, RECALL = "push", "load", "recall"
KIND_OF = {ExtentKind.PUSHED: PUSH, ExtentKind.STORED: LOAD}
_TICK, _SITE, _ARRIVAL, _WEIGHT, _REPLACES = "_tick", "_site", "_arrival", "_weight", "_replaces"


ReadPast = Callable[[str | int, int], list[Upload]]
"""The entries to take before a query with a text begins, or the one with a number runs again, at a time in ms."""


def no_past(query: str | int, now_ms: int) -> list[Upload]:
    """Without an archive, a query begins at the earliest where the log of the engine does."""
    return []


def encode_tuples(tuples: PushedTuples) -> bytes:
    """The tuples as an Arrow stream: a column of values and one of their validity for each attribute and the tick."""
    return _encode({_TICK: tuples.tick, **tuples.columns}, {**tuples.valid, _TICK: tuples.has_tick})


def encode_recalled(batch: Batch) -> bytes:
    """Tuples of the archive, in the same way, with their sites; deliveries in their order also with all that a delivery has."""
    system: dict[str, AnyArray] = {_TICK: batch.tick, _SITE: batch.site}
    if batch.replaces is not None:
        system |= {_ARRIVAL: batch.arrival, _WEIGHT: batch.weight, _REPLACES: batch.replaces}
    return _encode({**system, **batch.columns}, batch.valid)


def _encode(columns: Mapping[str, AnyArray], masks: Mapping[str, BoolArray]) -> bytes:
    arrays: dict[str, Any] = {}
    for name, values in columns.items():
        valid = masks.get(name)
        arrays[f"value {name}"] = (
            strings_to_arrow(values.tolist()) if values.dtype == object else numbers_to_arrow(values)
        )
        if valid is not None:
            arrays[f"valid {name}"] = mask_to_arrow(valid)
    table, sink = pa.table(arrays), pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
    with pa.ipc.new_stream(sink, table.schema, options=options) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def apply_upload(upload: Upload, station: Station) -> None:
    """Deliver the tuples, or load the table."""
    values, valid = _decode(upload.columns)
    if upload.kind == RECALL:
        tick, site = values.pop(_TICK), values.pop(_SITE)
        arrival, weight = values.pop(_ARRIVAL, tick), values.pop(_WEIGHT, unit_weights(len(tick)))
        replaces = values.pop(_REPLACES, None)
        station.recall(upload.extent, Batch(tick, site, arrival, weight, values, valid, replaces))
        return
    if upload.kind == LOAD:
        columns = {name: Vector(array, valid.get(name)) for name, array in values.items() if name != _TICK}
        station.load(upload.extent, columns, upload.now_ms)
        return
    tick, has_tick = values.pop(_TICK), valid.pop(_TICK)
    station.push(upload.extent, np.where(has_tick, tick, -1), values, valid, upload.now_ms)


def _decode(body: bytes) -> tuple[dict[str, AnyArray], dict[str, BoolArray]]:
    with pa.ipc.open_stream(pa.BufferReader(body)) as stream:
        table = stream.read_all().combine_chunks()
    values: dict[str, AnyArray] = {}
    valid: dict[str, BoolArray] = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        what, _, attribute = name.partition(" ")
        array = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        if what == "valid":
            valid[attribute] = mask_to_numpy(array)
        elif pa.types.is_string(array.type):
            codes, words = codes_of(array)
            values[attribute] = np.array([*words, ""], object)[codes]
        else:
            values[attribute] = numbers_to_numpy(array)
    return values, valid


def describe_tables(station: Station) -> dict[str, list[tuple[int, int]]]:
    """By stored extent, (first tick, number of rows) of each version."""
    stored = [extent.name for extent in station.world.catalog if extent.kind is ExtentKind.STORED]
    return {name: station.engine.table_versions(name) for name in stored}
