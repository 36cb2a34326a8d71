"""Batches: the tuples of one extent as columns, the unit of data from the uplink to the archive.

A batch may hold one reading or ten million. An attribute with a scale k is stored as whole multiples of 10^-k (int64)
until a value leaves the station; see `values_of`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from acquisition.schema import Attribute, Schema, Type

BY_KEY = -1
"""In `replaces`: the tuple replaces the reading with its tick and site."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Tuples as columns of equal length.

    `tick` is the time stamp of a tuple, `site` the mote that measured it, `arrival` the clock tick of its delivery to
    the base station. `weight` is +1 for a tuple that exists, -1 for a retracted one, 0 for a reading that a mote
    filtered, which has no columns. `valid` has a mask for each column with nulls. `replaces` is the index of the tuple
    that each tuple corrects, 0 for a new one, BY_KEY for a reading that it names by its own tick and site. The masks
    `states_tick` and `states_site` tell where a tuple that names another by its index states that one's tick and site;
    where they are absent none does. `marks` are (position, value): opaque values before the tuple at a
    position, or after the last.
    """

    tick: IntArray
    site: IntArray
    arrival: IntArray
    weight: IntArray
    columns: Mapping[str, AnyArray]
    valid: Mapping[str, BoolArray] = field(default_factory=dict)
    replaces: IntArray | None = None
    marks: tuple[tuple[int, object], ...] = ()
    states_tick: BoolArray | None = None
    states_site: BoolArray | None = None

    def __post_init__(self) -> None:
        arrays = {"site": self.site, "arrival": self.arrival, "weight": self.weight, **self.columns}
        arrays |= {f"validity of {name}": mask for name, mask in self.valid.items()}
        for name in ("replaces", "states_tick", "states_site"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        for name, array in arrays.items():
            if len(array) != len(self.tick):
                raise ValueError(f"expected {len(self.tick)} entries in {name}, as in tick; found {len(array)}")

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: IntArray | BoolArray | slice) -> "Batch":
        """Return the tuples at the given positions, under the mask, or in the slice."""
        if isinstance(which, np.ndarray) and which.dtype == bool:
            if which.all():
                return self
            which = np.flatnonzero(which)
        taken: dict[int, AnyArray] = {}  # one array may stand for several columns, and goes on doing so

        def of(array: AnyArray) -> AnyArray:
            if isinstance(which, slice):
                return array[which]
            if array.strides == (0,):  # one value stands for all
                return np.broadcast_to(array[:1], len(which))
            if id(array) not in taken:
                taken[id(array)] = array.take(which, 0)
            return taken[id(array)]

        return Batch(
            of(self.tick),
            of(self.site),
            of(self.arrival),
            of(self.weight),
            {name: of(column) for name, column in self.columns.items()},
            {name: of(mask) for name, mask in self.valid.items()},
            None if self.replaces is None else of(self.replaces),
            self._marks(which) if self.marks else (),
            None if self.states_tick is None else of(self.states_tick),
            None if self.states_site is None else of(self.states_site),
        )

    def _marks(self, which: AnyArray | slice) -> tuple[tuple[int, object], ...]:
        """Return the marks of some tuples: each stays before its tuple, or after the last."""
        if isinstance(which, slice):  # a mark outside the slice belongs to another part
            first, behind, _ = which.indices(len(self))
            end = behind + (behind == len(self))
            return tuple((position - first, value) for position, value in self.marks if first <= position < end)
        kept = np.arange(len(self))[which]
        places = [np.flatnonzero(kept >= position) for position, _ in self.marks]
        return tuple(
            (int(at[0]) if len(at) else len(kept), value) for at, (_, value) in zip(places, self.marks, strict=True)
        )


def unit_weights(count: int) -> IntArray:
    """Return the weights of `count` tuples that exist; the array is read-only and takes the memory of one value."""
    return np.broadcast_to(np.int64(1), count)


def dtype_of(attribute: Attribute) -> np.dtype[Any]:
    """Return the numpy type in which a batch stores an attribute."""
    if attribute.type is Type.STRING:
        return np.dtype(object)
    return np.dtype(np.int64 if attribute.type.whole or attribute.scale is not None else np.float64)


def values_of(column: AnyArray, scale: int | None) -> AnyArray:
    """Return the values of a column: for a scaled one, the double nearest to each multiple (semantics 13)."""
    # Both operands are exact doubles up to 2^53 and 10^22, and IEEE division rounds correctly.
    return column if scale is None else column / 10.0**scale


def empty_batch(schema: Schema) -> Batch:
    """Return a batch without tuples that has the columns of a schema."""
    none = np.empty(0, np.int64)
    return Batch(none, none, none, none, {a.name: np.empty(0, dtype_of(a)) for a in schema})


def add_missing_columns(schema: Schema, batch: Batch) -> Batch:
    """The batch with all columns of the schema in order; a column that was not sampled is null."""
    columns, valid = {}, {}
    for a in schema:
        if a.name in batch.columns:
            columns[a.name] = batch.columns[a.name]
            if a.name in batch.valid:
                valid[a.name] = batch.valid[a.name]
        else:
            columns[a.name] = np.zeros(len(batch), dtype_of(a))
            valid[a.name] = np.zeros(len(batch), bool)
    return Batch(batch.tick, batch.site, batch.arrival, batch.weight, columns, valid)


def concatenate(batches: Sequence[Batch]) -> Batch:
    """Return the tuples of all batches in order: at least one batch, all with the same columns."""
    first = batches[0]
    if len(batches) == 1:
        return first
    masked = {name for batch in batches for name in batch.valid}
    has_replaces = any(batch.replaces is not None for batch in batches)
    stated = [
        np.concatenate(
            [np.zeros(len(batch), bool) if mask is None else mask for batch, mask in zip(batches, masks, strict=True)]
        )
        if any(mask is not None for mask in masks)
        else None
        for masks in ([batch.states_tick for batch in batches], [batch.states_site for batch in batches])
    ]
    return Batch(
        np.concatenate([batch.tick for batch in batches]),
        np.concatenate([batch.site for batch in batches]),
        np.concatenate([batch.arrival for batch in batches]),
        np.concatenate([batch.weight for batch in batches]),
        {name: np.concatenate([batch.columns[name] for batch in batches]) for name in first.columns},
        {name: np.concatenate([mask_of(batch, name) for batch in batches]) for name in masked},
        np.concatenate([replaced_indexes(batch) for batch in batches]) if has_replaces else None,
        tuple((start + position, value) for start, batch in _start_offsets(batches) for position, value in batch.marks),
        *stated,
    )


def _start_offsets(batches: Sequence[Batch]) -> list[tuple[int, Batch]]:
    """Return each batch with the position of its first tuple among those of all batches."""
    ends = np.cumsum([len(batch) for batch in batches]).tolist()
    return list(zip([0, *ends[:-1]], batches, strict=True))


def mask_of(batch: Batch, name: str) -> BoolArray:
    """Return which values of a column are not null."""
    mask = batch.valid.get(name)
    return np.ones(len(batch), bool) if mask is None else mask


def replaced_indexes(batch: Batch) -> IntArray:
    """Return the index of the tuple that each tuple corrects, 0 for none, BY_KEY for a reading named by its key."""
    return np.zeros(len(batch), np.int64) if batch.replaces is None else batch.replaces
