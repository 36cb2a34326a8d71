"""State fields: aggregate states as the integers that motes keep and send, and back.

A mote handles one group at a time, with integers only. The functions here do for one group what the aggregate objects
do for columns: `merge_fields` of two states' fields gives the fields of `merge`, and so on. The tests hold both
together. The fields of an aggregate are those of its layout, in that order.
"""

from collections.abc import Callable, Sequence

import numpy as np

from acquisition.arrays import AnyArray
from innet.aggregates import create_mote_aggregate, mote_layout
from innet.aggregates.exact_sums import HALF, INTEGER_ORIGIN, LIMB_BITS, ExactSums
from innet.aggregates.state import AggregateState

Fields = tuple[int, ...]
"""The fields of one state."""
MASK = (1 << LIMB_BITS) - 1

EMPTY_FIELDS: dict[str, Fields] = {
    "COUNT": (0,), "SUM": (0, 0), "VARIANCE": (0, 0, 0), "MIN": (0, 0), "MAX": (0, 0),
    "FIRST": (0, 0, 0, 0), "LAST": (0, 0, 0, 0),
}  # fmt: skip
"""The state of a group without values, by aggregate."""


def make_fields(kind: str, value: int, tick: int, site: int) -> Fields:
    """Return the state of a group with one value, measured by `site` at `tick`."""
    match kind:
        case "COUNT":
            return (1,)
        case "SUM":
            return (1, value)
        case "VARIANCE":
            return (1, value, value * value)
        case "MIN" | "MAX":
            return (1, value)
    return (1, tick, site, value)


def merge_fields(kind: str, a: Fields, b: Fields) -> Fields:
    """Merge two states of one group."""
    if kind in ("COUNT", "SUM", "VARIANCE"):
        return tuple(left + right for left, right in zip(a, b, strict=True))
    if not (a[0] and b[0]):
        return a if a[0] else b
    return _BETTER[kind](a, b)


_BETTER: dict[str, Callable[[Fields, Fields], Fields]] = {
    "MIN": min,
    "MAX": max,
    "FIRST": lambda a, b: b if b[1:3] < a[1:3] else a,
    "LAST": lambda a, b: b if b[1:3] >= a[1:3] else a,
}


def make_state(kind: str, rows: Sequence[Fields]) -> AggregateState:
    """Return the state of many groups, one per row of fields."""
    aggregate, layout = create_mote_aggregate(kind), mote_layout(kind)
    columns: list[tuple[int, ...]] = list(zip(*rows, strict=True)) or [() for _ in layout]
    named = dict(zip((field.name for field in layout), columns, strict=True))
    named["second"] = named.get("site", ())
    state = aggregate.init(len(rows))
    for name, cell in state.cells.items():
        cell[:] = named[name]
    if "seen" in state.cells:
        blank, seen = aggregate.init(len(rows)).cells, state.cells["seen"]
        for name, cell in state.cells.items():
            cell[~seen] = blank[name][~seen]
    for name in state.sums:
        state.sums[name] = _sums_of(named[name])
    return state


def extract_fields(kind: str, state: AggregateState) -> list[Fields]:
    """Return the fields of each group of a state."""
    columns: list[list[int]] = []
    for field in mote_layout(kind):
        if field.name in state.sums:
            totals, exponent = state.sums[field.name].to_integers(np.arange(state.n_groups))
            columns.append([total << exponent for total in totals])
        else:
            cell = state.cells["second" if field.name == "site" else field.name]
            values: AnyArray = np.where(state.cells.get("seen", np.True_), cell, 0)
            columns.append(values.tolist())
    return [tuple(int(n) for n in row) for row in zip(*columns, strict=True)]


def _sums_of(totals: Sequence[int]) -> ExactSums:
    """Return integers of up to 96 bits as sums, with the digits that `ExactSums.carry` would leave."""
    digits: list[list[int]] = []
    left = list(totals)
    while any(left):
        digits.append([((total + HALF) & MASK) - HALF for total in left])
        left = [(total - digit) >> LIMB_BITS for total, digit in zip(left, digits[-1], strict=True)]
    shape = len(digits), len(totals)
    return ExactSums.load(np.arange(len(digits)), np.array(digits, np.int64).reshape(shape), INTEGER_ORIGIN)
