"""Materialized nodes: the joined tuples of an inner node of a join plan, as state that is probed like an input.

New tuples of each member probe the other members of the node in the plan's order: members before it with all tuples, members
after it with those that were there already, so that no row is joined twice. Rows that no window can contain together are not
kept. A row of which a member was removed is dead.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.vector import Vector
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.joins.join_inputs import JoinInput
from basestation.execution.joins.join_plan import JoinPlan, Place
from basestation.execution.joins.joined_rows import JoinedRows
from basestation.execution.joins.probe_span import ProbeSpan, make_probe_span
from basestation.execution.joins.state_module import KeyPart, StateModule
from basestation.execution.joins.tuple_store import NEVER
from basestation.execution.joins.window_bounds import ProbeBounds


class ProbingJoin(Protocol):
    """A join as its materialized nodes see it."""

    @property
    def inputs(self) -> Sequence[JoinInput]:
        """The inputs of the join, in the order of FROM."""

    @property
    def plan(self) -> JoinPlan:
        """The plan by which it joins them now."""

    def start_rows(self, i: int, positions: IntArray) -> JoinedRows:
        """Return tuples of one input as rows, of no window in particular."""

    def probe_all(self, rows: JoinedRows, order: Sequence[Place], bounds: ProbeBounds) -> JoinedRows:
        """Return rows after they have probed places, one after another."""


class GrowthBounds:
    """Bounds for a node that grows: of each member positions below a limit, and ticks that are not too far apart."""

    def __init__(self, inputs: Sequence[JoinInput], limits: Mapping[int, int]) -> None:
        self._inputs, self._limits = inputs, limits

    def range(self, rows: JoinedRows, i: int) -> ProbeSpan:
        return make_probe_span(*self._range(rows, i))

    def _range(self, rows: JoinedRows, i: int) -> tuple[IntArray, IntArray]:
        left, right = np.full(len(rows), -NEVER), np.full(len(rows), NEVER)
        for j, positions in rows.at.items():
            distance = self._distance(i, j)
            ticks = self._inputs[j].store.ticks(positions)
            if distance is not None:
                left, right = np.maximum(left, ticks + distance[0]), np.minimum(right, ticks + distance[1])
        return left, right

    def wanted(self, rows: JoinedRows, place: Place) -> Sequence[tuple[KeyPart, Vector]]:
        return ()

    def _distance(self, i: int, j: int) -> tuple[int, int] | None:
        """The least and the greatest difference of the ticks of a tuple of i and one of j in one combination."""
        a, b = self._inputs[i].span, self._inputs[j].span
        return None if a is None or b is None else (a[0] - b[1], a[1] - b[0])

    def extend(self, rows: JoinedRows, which: IntArray | slice, found: dict[int, IntArray]) -> JoinedRows:
        rows = rows.take(which).with_tuples(found)
        mask = np.ones(len(rows), bool)
        for i in found:
            mask &= rows.at[i] < self._limits[i]
            left, right = self._range(rows, i)
            ticks = self._inputs[i].store.ticks(rows.at[i])
            mask &= (left <= ticks) & (ticks <= right)
        return rows.take(mask)


class MaterializedNode:
    """The state of one node of a plan; an IndexedSource (`state_module.py`)."""

    def __init__(self, node: Place, join: ProbingJoin) -> None:
        self.node, self._join = node, join
        self.generation = 0
        self._begin([])

    def _begin(self, generations: list[int]) -> None:
        """Start again with no rows; `generations` are those of the members."""
        self._generations = generations
        self._modules: dict[tuple[KeyPart, ...], StateModule] = {}
        self._seen = dict.fromkeys(self.node, 0)  # by member, how many positions were joined
        self._at = {i: GrowableArray(np.empty(0, np.int64)) for i in self.node}
        self.generation += 1

    @property
    def count(self) -> int:
        return len(self._at[self.node[0]].values)

    def refresh(self) -> None:
        """Join the tuples that members hold by now."""
        inputs = self._join.inputs
        stores = {i: inputs[i].store for i in self.node}
        generations = [store.generation for store in stores.values()]
        if generations != self._generations:
            self._begin(generations)
        limits = dict(self._seen)
        for i, store in stores.items():
            new = np.arange(self._seen[i], store.count)
            limits[i] = store.count
            if not len(new):
                continue
            new = new if store.all_live else new[store.live(new)]
            bounds = GrowthBounds(inputs, limits)
            rows = self._join.start_rows(i, new)
            rows = self._join.probe_all(rows, self._join.plan.probes_inside(i, self.node), bounds)
            for j, at in self._at.items():
                at.extend(rows.at[j])
        self._seen = limits

    # --- an IndexedSource --------------------------------------------------------------------------------------------

    def module(self, key: Sequence[KeyPart]) -> StateModule:
        """The state module for a key; there is one for each key."""
        key = tuple(key)
        if key not in self._modules:
            self._modules[key] = StateModule(self, key)
        return self._modules[key]

    def ticks(self, positions: IntArray | slice) -> IntArray:
        first = self.node[0]
        return self._join.inputs[first].store.ticks(self._at[first].values[positions])

    @property
    def all_live(self) -> bool:
        return all(self._join.inputs[i].store.all_live for i in self.node)

    def live(self, positions: IntArray | slice) -> BoolArray:
        members = [self._join.inputs[i].store.live(at.values[positions]) for i, at in self._at.items()]
        mask: BoolArray = np.logical_and.reduce(members)
        return mask

    def vectors(self, key: Sequence[KeyPart], positions: IntArray | slice) -> list[Vector]:
        """The values of parts of a key, each with the member that has it."""
        found = []
        for part in key:
            if not isinstance(part, tuple):
                raise TypeError(f"expected a part of a key with its input, found {part!r}")
            i, held = part
            found += self._join.inputs[i].store.vectors([held], self._at[i].values[positions])
        return found

    def by_input(self, place: Place, positions: IntArray) -> dict[int, IntArray]:
        """The positions of the tuples of the members."""
        return {i: at.values[positions] for i, at in self._at.items()}
