"""Partials: aggregates that motes merged on their way, archived beside the readings of their extent, a row for each as it came.

`_tick` is the first due tick of the slice, which has `ticks` of them, `interval` ticks apart. A row stands for `readings` readings of the
sites in `sites`, which is null where a partial counts its contributors only. `stream` says which tuples were aggregated, and in which
slices and groups; `fold` is the number of the aggregation in frames. `keys` are the values of its group, and `states` has by
aggregate the integers of its state; both are null for readings in no group, which were filtered.
"""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from acquisition.arrays import AnyArray
from acquisition.batch import Batch, unit_weights
from acquisition.extent import Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type
from acquisition.ticks import grid_at_or_after
from innet.operators import MoteOperator, walk
from innet.operators.acquire import Acquire
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression
from innet.operators.slices import SlicePattern

if TYPE_CHECKING:
    from innet.payload import PartialColumns

PARTIALS = "partials"
"""The folder of partials."""
FOLD, STREAM, INTERVAL, TICKS, READINGS, SITES, KEYS, STATES = (
    "fold", "stream", "interval", "ticks", "readings", "sites", "keys", "states",
)  # fmt: skip
_SCHEMA = Schema(
    (
        Attribute(FOLD, Type.INTEGER),
        Attribute(STREAM, Type.STRING),
        Attribute(INTERVAL, Type.INTEGER),
        Attribute(TICKS, Type.INTEGER),
        Attribute(READINGS, Type.INTEGER),
        Attribute(SITES, Type.STRING),
        Attribute(KEYS, Type.STRING),
        Attribute(STATES, Type.STRING),
    )
)


def partial_extent(extent: str) -> Extent:
    """The extent under which an archive keeps the partials of an extent: `partials/lab`. Each row is a tuple of its own."""
    return Extent(f"{PARTIALS}/{extent}", ExtentKind.PUSHED, _SCHEMA)


def describe_stream(fold: Fold, extents: Mapping[str, Extent]) -> str:
    """The tuples, slices and groups of a fold; equal for folds whose partials are of the same things, whatever their states."""
    parts = [_describe(operator, extents) for operator in walk(fold.child)]
    return "; ".join(
        [f"of {fold.extent}", *parts, f"by {', '.join(map(str, fold.keys)) or 'nothing'}", fold.slices.label()]
    )


def _describe(operator: MoteOperator, extents: Mapping[str, Extent]) -> str:
    if not isinstance(operator, Acquire):
        return operator.label()
    declared = [extents[operator.extent].schema.find(name) for name in operator.sampled]
    sampled = ", ".join(f"{a.name} {a.type} scale {a.scale or 0} unit {a.unit or 'none'}" for a in declared if a)
    return f"{operator.extent} every {operator.interval} ticks ({sampled})"


def name_state(kind: str, value: MoteExpression) -> str:
    """The name of a state in `states`."""
    return f"{kind} {value}"


def batch_of_partials(fold: Fold, extents: Mapping[str, Extent], partials: "PartialColumns", arrival: int) -> Batch:
    """The partials of a fold that came in a clock tick, as rows of the archive."""
    count, whole, shape = len(partials.slice), partials.whole, partials.shape
    first, last = due_ticks(fold.slices, partials.slice, fold.interval)
    is_whole = np.arange(count) < whole
    names = [name_state(kind, value) for kind, value in fold.states]
    columns: dict[str, AnyArray] = {
        FOLD: np.full(count, shape.aggregation, np.int64),
        STREAM: _texts([describe_stream(fold, extents)] * count),
        INTERVAL: np.full(count, fold.interval, np.int64),
        TICKS: (last - first) // fold.interval + 1,
        READINGS: np.asarray(partials.readings, np.int64),
        SITES: _texts(_list_sites(partials)),
        KEYS: _texts([*_list_keys(partials), *[""] * (count - whole)]),
        STATES: _texts([*_list_states(names, partials), *[""] * (count - whole)]),
    }
    valid = {SITES: np.full(count, shape.has_bitmap), KEYS: is_whole, STATES: is_whole}
    site = np.zeros(count, np.int64)
    return Batch(first, site, np.full(count, arrival, np.int64), unit_weights(count), columns, valid)


def due_ticks(slices: SlicePattern, number: AnyArray, interval: int) -> tuple[AnyArray, AnyArray]:
    """The first and the last due tick of each slice."""
    first = np.maximum(grid_at_or_after(slices.begin(number), interval), 0)
    return first, grid_at_or_after(slices.begin(number + 1), interval) - interval


def _list_sites(partials: "PartialColumns") -> list[str]:
    if not partials.shape.has_bitmap:
        return [""] * len(partials.slice)
    slots = np.array(partials.shape.slots)
    return [json.dumps(sorted(slots[who].tolist())) for who in partials.contributors.astype(bool)]


def _list_keys(partials: "PartialColumns") -> list[str]:
    rows = zip(partials.key.tolist(), partials.null.tolist(), strict=True)
    return [json.dumps([None if no else key for key, no in zip(*row, strict=True)]) for row in rows]


def _list_states(names: Sequence[str], partials: "PartialColumns") -> list[str]:
    if not names:
        return ["{}"] * partials.whole
    states = [zip(*(field.tolist() for field in fields), strict=True) for fields in partials.fields]
    return [json.dumps(dict(zip(names, row, strict=True))) for row in zip(*states, strict=True)]


def _texts(texts: Sequence[str]) -> AnyArray:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found
