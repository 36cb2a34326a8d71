"""PartialBatch: partials made in the network, as columns, and as cells of the window engine.

A partial says of its slice, group and states what `SliceFolder.cells` would say of its readings. It does not say which reading
entered the stream first. So groups stand in the order of their first contributor, and an aggregation that shows the order of
its groups takes no partials (planner/pushdown.py).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import Selection, Vector
from basestation.execution.columns.tuples import concatenate_vectors
from innet.aggregates import create_mote_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import EMPTY_FIELDS, make_state

if TYPE_CHECKING:  # an engine that takes readings alone starts faster without frames and programs
    from innet.payload import PartialColumns


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """Partials of one fold, each delivered in clock tick `arrival`.

    `bare` masks those of readings in no group: their keys are null, their states blank. `first` is the position of the first
    contributor among the sites of the fold; 0 if that is not known. `readings` counts the readings of each partial. `kinds` are
    the aggregates of `states`.
    """

    arrival: IntArray
    slice: IntArray
    bare: BoolArray
    first: IntArray
    readings: IntArray
    keys: tuple[Vector, ...]
    kinds: tuple[str, ...]
    states: tuple[AggregateState, ...]

    @classmethod
    def from_frames(cls, partials: "PartialColumns", arrival: int) -> "PartialBatch":
        """Make a batch of partials that came in frames, all in one clock tick."""
        shape, count, whole = partials.shape, len(partials.slice), partials.whole
        bare = np.arange(count) >= whole
        first = partials.contributors.argmax(axis=1) if shape.has_bitmap else np.zeros(count, np.int64)
        none = np.zeros(count - whole, np.int64)
        keys = tuple(
            Vector(np.append(partials.key[:, i], none), np.append(~partials.null[:, i], none > 0))
            for i in range(shape.keys)
        )
        blanks = [make_state(kind, [EMPTY_FIELDS[kind]] * (count - whole)) for kind in shape.kinds]
        states = tuple(map(_concatenate_states, shape.kinds, zip(partials.states(), blanks, strict=True)))
        arrivals = np.full(count, arrival, np.int64)
        return cls(arrivals, partials.slice, bare, first, partials.readings, keys, shape.kinds, states)

    @classmethod
    def concatenate(cls, parts: list["PartialBatch"]) -> "PartialBatch":
        """Concatenate at least one batch."""
        if len(parts) == 1:
            return parts[0]
        keys = tuple(concatenate_vectors(of) for of in zip(*(part.keys for part in parts), strict=True))
        states = tuple(map(_concatenate_states, parts[0].kinds, zip(*(part.states for part in parts), strict=True)))
        return cls(
            np.concatenate([part.arrival for part in parts]),
            np.concatenate([part.slice for part in parts]),
            np.concatenate([part.bare for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.readings for part in parts]),
            keys,
            parts[0].kinds,
            states,
        )

    @property
    def marks(self) -> tuple[()]:
        """None: no punctuation stands before a partial."""
        return ()

    def __len__(self) -> int:
        return len(self.slice)

    def take(self, which: Selection) -> "PartialBatch":
        """Return the partials at positions, in a slice, or under a mask."""
        states = tuple(state.map_arrays(lambda array: array[which]) for state in self.states)
        return PartialBatch(
            self.arrival[which],
            self.slice[which],
            self.bare[which],
            self.first[which],
            self.readings[which],
            tuple(key.take(which) for key in self.keys),
            self.kinds,
            states,
        )


def _concatenate_states(kind: str, states: Iterable[AggregateState]) -> AggregateState:
    return create_mote_aggregate(kind).concatenate(list(states))
