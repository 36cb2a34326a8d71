"""Columnar fold: the partials of many motes and ticks, merged at once.

It uses the aggregate objects on columns; `innet.program.table_memory` gives the same result partial by partial.
"""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import IntArray
from innet.aggregates import create_mote_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import extract_fields
from innet.operators.column_evaluation import Mask
from innet.partials import Key, Partial, PartialShape
from innet.program.batch_interpreter import SampleColumns, TableColumns

WIDEST = 1 << 62
"""The largest product of value ranges that fits into a combined code."""


@dataclass(frozen=True, slots=True)
class FoldedColumns:
    """Partials as columns: one row per place, slice and group. `bare` rows account for filtered readings; their states are empty.

    `place` is the caller's key of rows that merge, such as a mote or a message. `keys` and `keys_there` have the group keys and
    their validity. `contributors` has the contributors of each row, as in `Partial`.
    """

    shape: PartialShape
    place: IntArray
    slice: IntArray
    bare: Mask
    keys: tuple[IntArray, ...]
    keys_there: tuple[Mask, ...]
    contributors: list[int]
    readings: IntArray
    states: tuple[AggregateState, ...]

    def __len__(self) -> int:
        """The number of partials."""
        return len(self.place)

    def partials(self) -> list[tuple[int, Partial]]:
        """Return (place, partial) of each row."""
        fields = [extract_fields(kind, state) for kind, state in zip(self.shape.kinds, self.states, strict=True)]
        found = []
        for i in range(len(self)):
            group: Key = ()
            states = None
            if not self.bare[i]:
                pairs = zip(self.keys, self.keys_there, strict=True)
                group = tuple(int(key[i]) if there[i] else None for key, there in pairs)
                states = tuple(rows[i] for rows in fields)
            partial = Partial(int(self.slice[i]), self.contributors[i], int(self.readings[i]), group, states)
            found.append((int(self.place[i]), partial))
        return found


def fold_columns(shape: PartialShape, columns: SampleColumns, folded: TableColumns, place: IntArray) -> FoldedColumns:
    """Merge all readings of a table; readings of one slice, group and `place` go together."""
    which = np.flatnonzero(folded.marked | folded.entered)
    in_group = folded.entered[which]
    tick, site, place = columns.tick[which], columns.site[which], place[which]
    slices = shape.slices.number(tick)
    keys_there = [key.valid[which] & in_group for key in folded.keys]
    keys = [np.where(there, key.values[which], 0) for key, there in zip(folded.keys, keys_there, strict=True)]
    pairs = (part for there, key in zip(keys_there, keys, strict=True) for part in (there.astype(np.int64), key))
    first, group = _grouped([place.astype(np.int64), slices, (~in_group).astype(np.int64), *pairs])
    states = []
    for number, kind in enumerate(shape.kinds):
        aggregate = create_mote_aggregate(kind)
        state = aggregate.init(len(first))
        for at, mask, column in folded.folds:
            if at == number:
                mask = mask[which] & in_group
                order = tick[mask], site[mask]
                aggregate.update(state, group[mask], column.values[which][mask], None, None, order)
        states.append(state)
    readings = np.bincount(group, minlength=len(first))
    return FoldedColumns(
        shape,
        place[first],
        slices[first],
        ~in_group[first],
        tuple(key[first] for key in keys),
        tuple(there[first] for there in keys_there),
        _contributors(shape, group, site, readings),
        readings,
        tuple(states),
    )


def _grouped(columns: list[IntArray]) -> tuple[IntArray, IntArray]:
    """Return (first, group): the first row of each combination of values, ordered by value, and the combination of each row."""
    code, width = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if width * span > WIDEST:  # renumbered, there are at most as many codes as rows
            code, width = np.unique(code, return_inverse=True)[1], len(code)
        if width * span > WIDEST:
            column, low, span = np.unique(column, return_inverse=True)[1], 0, len(column)
        code, width = code * span + (column - low), width * span
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def _contributors(shape: PartialShape, group: IntArray, site: IntArray, readings: IntArray) -> list[int]:
    """Return the contributors of each group: a bitmap, or the number of readings."""
    if not shape.has_bitmap:
        return [int(count) for count in readings]
    slots = np.array(shape.slots, np.int64)
    by_site = np.argsort(slots)
    slot = by_site[np.searchsorted(slots[by_site], site)]
    found = [0] * len(readings)
    for pair in np.unique(group * len(slots) + slot).tolist():
        of_group, bit = divmod(pair, len(slots))
        found[of_group] |= 1 << bit
    return found
