"""Batch: the columnar tuples of one extent, the unit of data from here to the archive.

One reading or ten million: the same arrays. An attribute with a scale k is held as whole multiples of 10^-k (int64)
until somebody outside is told a value; see `evaluate_argument`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from acquisition.schema import Attribute, Schema, Type


@dataclass(frozen=True, slots=True)
class Batch:
    """Tuples as columns of equal length.

    `tick` is what a tuple is about, `site` who measured it, `arrival` the clock tick in which it was delivered to the
    base station. `weight` is +1 for a tuple that is there, -1 for one that no longer is, and 0 for a reading that a mote
    has filtered, of which nothing else is known. A name that is absent from `valid` has no nulls.
    """

    tick: np.ndarray
    site: np.ndarray
    arrival: np.ndarray
    weight: np.ndarray
    columns: Mapping[str, np.ndarray]
    valid: Mapping[str, np.ndarray] = field(default_factory=dict)
    replaces: np.ndarray | None = None  # the index of the tuple that each one corrects, 0 where it is a new one
    marks: tuple[tuple[int, object], ...] = ()
    """(position, value): what stands before the tuple at a position, or behind all; whoever put it there knows what it is."""

    def __post_init__(self) -> None:
        arrays = {"site": self.site, "arrival": self.arrival, "weight": self.weight, **self.columns}
        arrays |= {f"validity of {name}": mask for name, mask in self.valid.items()}
        if self.replaces is not None:
            arrays["replaces"] = self.replaces
        for name, array in arrays.items():
            if len(array) != len(self.tick):
                raise ValueError(f"{name} has {len(array)} entries, tick has {len(self.tick)}")

    def __len__(self) -> int:
        return len(self.tick)

    def take(self, which: np.ndarray) -> "Batch":
        """The tuples at the positions, or under the mask, given."""
        if isinstance(which, np.ndarray) and which.dtype == bool:
            if which.all():
                return self
            which = np.flatnonzero(which)
        taken: dict[int, np.ndarray] = {}  # an array that stands for several columns goes on doing so

        def of(array: np.ndarray) -> np.ndarray:
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
        )

    def _marks(self, which: np.ndarray) -> tuple[tuple[int, object], ...]:
        """A mark stays with the tuple that it stands before; behind all it stays behind all that is there."""
        if isinstance(which, slice):  # a part: what stands elsewhere belongs to another
            first, behind, _ = which.indices(len(self))
            end = behind + (behind == len(self))
            return tuple((position - first, value) for position, value in self.marks if first <= position < end)
        kept = np.arange(len(self))[which]
        places = [np.flatnonzero(kept >= position) for position, _ in self.marks]
        return tuple(
            (int(at[0]) if len(at) else len(kept), value) for at, (_, value) in zip(places, self.marks, strict=True)
        )


def unit_weights(count: int) -> np.ndarray:
    """The weight of so many tuples that are there: one value stands for all."""
    return np.broadcast_to(np.int64(1), count)


def dtype_of(attribute: Attribute) -> np.dtype:
    """How the values of an attribute are held in a batch."""
    if attribute.type is Type.STRING:
        return np.dtype(object)
    return np.dtype(np.int64 if attribute.type.whole or attribute.scale is not None else np.float64)


def values_of(column: np.ndarray, scale: int | None) -> np.ndarray:
    """A column as the values it stands for: the double nearest to each multiple (SEMANTICS 13)."""
    # Both operands are exact doubles up to 2^53 and 10^22, and IEEE division rounds correctly.
    return column if scale is None else column / 10.0**scale


def empty_batch(schema: Schema) -> Batch:
    """No tuples, with the columns of a schema."""
    none = np.empty(0, np.int64)
    return Batch(none, none, none, none, {a.name: np.empty(0, dtype_of(a)) for a in schema})


def concatenate(batches: Sequence[Batch]) -> Batch:
    """The tuples of all batches, one after another; at least one, all with the same columns."""
    first = batches[0]
    if len(batches) == 1:
        return first
    masked = {name for batch in batches for name in batch.valid}
    return Batch(
        np.concatenate([batch.tick for batch in batches]),
        np.concatenate([batch.site for batch in batches]),
        np.concatenate([batch.arrival for batch in batches]),
        np.concatenate([batch.weight for batch in batches]),
        {name: np.concatenate([batch.columns[name] for batch in batches]) for name in first.columns},
        {name: np.concatenate([mask_of(batch, name) for batch in batches]) for name in masked},
        None
        if all(batch.replaces is None for batch in batches)
        else np.concatenate([replaced_indexes(b) for b in batches]),
        tuple((first + position, value) for first, batch in _start_offsets(batches) for position, value in batch.marks),
    )


def _start_offsets(batches: Sequence[Batch]) -> list[tuple[int, Batch]]:
    """Each batch, and where its tuples begin among those of all."""
    ends = np.cumsum([len(batch) for batch in batches]).tolist()
    return list(zip([0, *ends[:-1]], batches, strict=True))


def mask_of(batch: Batch, name: str) -> np.ndarray:
    """Which values of a column are there."""
    mask = batch.valid.get(name)
    return np.ones(len(batch), bool) if mask is None else mask


def replaced_indexes(batch: Batch) -> np.ndarray:
    """The index that each tuple replaces, 0 for none."""
    return np.zeros(len(batch), np.int64) if batch.replaces is None else batch.replaces
