"""Arrived: partials that were made in the network, as they reached the base station, and as cells of the window engine.

A partial says of its slice, group and states what `Folding.cells` would say of its readings. It does not say which
reading entered the stream first, so groups stand in the order of their first contributor; an aggregation whose groups'
order shows is not fed by partials (planner/split.py).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.columns.cells import Cells
from basestation.execution.columns.tuples import concatenate_vectors
from innet.aggregates import create_mote_aggregate
from innet.aggregates.state import AggregateState
from innet.aggregates.state_fields import EMPTY_FIELDS, make_state

if TYPE_CHECKING:  # an engine that is fed by readings alone starts without what frames and programs are made of
    from innet.payload import PartialColumns
    from innet.program.columnar_fold import FoldedColumns


@dataclass(frozen=True, slots=True)
class PartialBatch:
    """Partials of one fold, each with the clock tick of its `arrival`.

    `bare` ones are of readings in no group: their keys are null, and their states blank. `first` is the place of the first
    contributor among the sites of the fold; 0 where it is not told. `kinds` are those of the `states`.
    """

    arrival: np.ndarray
    slice: np.ndarray
    bare: np.ndarray
    first: np.ndarray
    readings: np.ndarray
    keys: tuple[Vector, ...]
    kinds: tuple[str, ...]
    states: tuple[AggregateState, ...]

    @classmethod
    def of(cls, partials: "PartialColumns", arrival: int) -> "PartialBatch":
        """Those that came in frames, all in one clock tick."""
        shape, count, whole = partials.shape, len(partials.slice), partials.whole
        bare = np.arange(count) >= whole
        first = partials.who.argmax(axis=1) if shape.has_bitmap else np.zeros(count, np.int64)
        none = np.zeros(count - whole, np.int64)
        keys = tuple(
            Vector(np.append(partials.key[:, i], none), np.append(~partials.null[:, i], none > 0))
            for i in range(shape.keys)
        )
        blanks = [make_state(kind, [EMPTY_FIELDS[kind]] * (count - whole)) for kind in shape.kinds]
        states = tuple(map(_joined, shape.kinds, zip(partials.states(), blanks, strict=True)))
        arrivals = np.full(count, arrival, np.int64)
        return cls(arrivals, partials.slice, bare, first, partials.readings, keys, shape.kinds, states)

    @classmethod
    def gathered(cls, found: "FoldedColumns", arrival: np.ndarray) -> "PartialBatch":
        """Those that were merged many at once, each in its own clock tick."""
        who = found.who if found.shape.has_bitmap else [1] * len(found)
        first = np.array([(bits & -bits).bit_length() - 1 for bits in who], np.int64)
        keys = tuple(map(Vector, found.keys, found.keys_there))
        kinds = found.shape.kinds
        return cls(arrival, found.slice, found.bare, first, found.readings, keys, kinds, found.states)

    @classmethod
    def together(cls, parts: list["PartialBatch"]) -> "PartialBatch":
        """All of all parts, one after another; at least one."""
        if len(parts) == 1:
            return parts[0]
        columns = (np.concatenate([getattr(part, name) for part in parts]) for name in _PLAIN)
        keys = tuple(concatenate_vectors(of) for of in zip(*(part.keys for part in parts), strict=True))
        states = tuple(map(_joined, parts[0].kinds, zip(*(part.states for part in parts), strict=True)))
        return cls(*columns, keys, parts[0].kinds, states)

    @property
    def marks(self) -> tuple:
        """Nothing stands before a partial."""
        return ()

    def __len__(self) -> int:
        return len(self.slice)

    def take(self, which) -> "PartialBatch":
        """Those at positions, in a slice, or under a mask."""
        columns = (getattr(self, name)[which] for name in _PLAIN)
        states = tuple(state.map_arrays(lambda array: array[which]) for state in self.states)
        return PartialBatch(*columns, tuple(key.take(which) for key in self.keys), self.kinds, states)


_PLAIN = ("arrival", "slice", "bare", "first", "readings")


def _joined(kind: str, states) -> AggregateState:
    return create_mote_aggregate(kind).concatenate(states)


def make_cells(arrived: PartialBatch, begins, numbers, node, sources, folding) -> Cells:
    """The cells of partials, none of them bare, for one SliceAggregation.

    `begins` are the first ticks of their slices, `numbers` what the engine calls those; `sources` say where the fold keeps
    the state of each aggregate. The folding is for no other aggregation: those are its own.
    """
    group = folding.groups.of(list(arrived.keys), len(arrived))
    rows = make_state("COUNT", [(count,) for count in arrived.readings.tolist()])
    states = {0: rows}
    for (_, aggregate), (_, at), source in zip(node.aggregates, folding.own, sources, strict=True):
        states[at] = _part_of(aggregate.name, rows if source is None else arrived.states[source])
    return folding.united(Cells(numbers, group, begins, arrived.first, [states[at] for at in sorted(states)]))


def _part_of(name: str, state: AggregateState) -> AggregateState:
    """The state of an aggregate out of one that knows more: counts are part of sums, and sums of variances."""
    wanted = create_mote_aggregate(name)
    cells = {cell: state.cells[cell].copy() for cell in wanted.cells}
    sums = {total: state.sums[total].take(np.arange(state.n_groups)) for total in wanted.sums}
    return AggregateState(state.n_groups, cells, sums)
