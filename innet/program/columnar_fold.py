"""Gathered: what tables hold when the readings of many motes and ticks are merged, all of it at once.

Made with the aggregate objects themselves, columnar; one by one, `innet.program.table_memory` gives the same.
"""

from dataclasses import dataclass

import numpy as np

from innet.aggregates import create_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import extract_fields
from innet.operators.column_evaluation import Mask
from innet.partials import Partial, PartialShape
from innet.program.batch_interpreter import SampleColumns, TableColumns

WIDEST = 1 << 62


@dataclass(frozen=True, slots=True)
class FoldedColumns:
    """One row for each place, slice and group. `bare` rows are of readings in no group; their states are blank."""

    shape: PartialShape
    place: np.ndarray
    slice: np.ndarray
    bare: Mask
    keys: tuple[np.ndarray, ...]
    keys_there: tuple[Mask, ...]
    who: list[int]
    readings: np.ndarray
    states: tuple[AggregateState, ...]

    def __len__(self) -> int:
        return len(self.place)

    def partials(self) -> list[tuple[int, Partial]]:
        """Each as a Partial, with its place."""
        fields = [extract_fields(kind, state) for kind, state in zip(self.shape.kinds, self.states, strict=True)]
        found = []
        for i in range(len(self)):
            group: tuple = ()
            states = None
            if not self.bare[i]:
                pairs = zip(self.keys, self.keys_there, strict=True)
                group = tuple(int(key[i]) if there[i] else None for key, there in pairs)
                states = tuple(rows[i] for rows in fields)
            partial = Partial(int(self.slice[i]), self.who[i], int(self.readings[i]), group, states)
            found.append((int(self.place[i]), partial))
        return found


def fold_columns(shape: PartialShape, columns: SampleColumns, folded: TableColumns, place: np.ndarray) -> FoldedColumns:
    """Merge all readings that belong to the table; readings of one `place` (a mote, a message) go together."""
    which = np.flatnonzero(folded.marked | folded.entered)
    in_group = folded.entered[which]
    tick, site, place = columns.tick[which], columns.site[which], place[which]
    parts = [place, shape.slices.number(tick), ~in_group]
    for key in folded.keys:
        there = key.valid[which] & in_group
        parts += [there, np.where(there, key.values[which], 0)]
    first, group = _grouped([part.astype(np.int64) for part in parts])
    rows = [part[first] for part in parts]
    states = []
    for number, kind in enumerate(shape.kinds):
        aggregate = create_aggregate(kind, "integer")
        state = aggregate.init(len(first))
        for at, mask, lane in folded.folds:
            if at == number:
                mask = mask[which] & in_group
                order = tick[mask], site[mask]
                aggregate.update(state, group[mask], lane.values[which][mask], None, None, order)
        states.append(state)
    readings = np.bincount(group, minlength=len(first))
    keys, there = tuple(rows[4::2]), tuple(row.astype(bool) for row in rows[3::2])
    who = _who(shape, group, site, readings)
    return FoldedColumns(shape, rows[0], rows[1], rows[2].astype(bool), keys, there, who, readings, tuple(states))


def _grouped(columns: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each combination of values, in order of the values, and which combination each row has."""
    code, width = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if width * span > WIDEST:  # numbered anew, there are no more than rows
            code, width = np.unique(code, return_inverse=True)[1], len(code)
        if width * span > WIDEST:
            column, low, span = np.unique(column, return_inverse=True)[1], 0, len(column)
        code, width = code * span + (column - low), width * span
    _, first, group = np.unique(code, return_index=True, return_inverse=True)
    return first, group


def _who(shape: PartialShape, group: np.ndarray, site: np.ndarray, readings: np.ndarray) -> list[int]:
    """The contributors of each group: their bits, or how many entries there are."""
    if not shape.has_bitmap:
        return readings.tolist()
    slots = np.array(shape.slots, np.int64)
    by_site = np.argsort(slots)
    slot = by_site[np.searchsorted(slots[by_site], site)]
    who = [0] * len(readings)
    for found in np.unique(group * len(slots) + slot).tolist():
        of_group, bit = divmod(found, len(slots))
        who[of_group] |= 1 << bit
    return who
