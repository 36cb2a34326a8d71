"""Kept: the joined tuples of an inner node of a plan, as state: probed like an input, grown by what came since.

What is new of each member probes the others within the node, in the plan's order: those before it with all that is there,
those after it with what was there already, so that nothing is put together twice. Tuples that no window can hold together
are not kept; one of which a member is gone is dead.
"""

import numpy as np

from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.joins.probe_span import make_probe_span
from basestation.execution.joins.state_module import StateModule
from basestation.execution.joins.tuple_store import NEVER


class GrowthBounds:
    """What may be put together when a node grows: of each member positions below a limit, and ticks not too far apart."""

    def __init__(self, sides, limits):
        self._sides, self._limits = sides, limits

    def range(self, rows, i):
        return make_probe_span(*self._range(rows, i))

    def _range(self, rows, i):
        left, right = np.full(len(rows), -NEVER), np.full(len(rows), NEVER)
        for j, positions in rows.at.items():
            low, high = self._apart(i, j)
            ticks = self._sides[j].held.ticks(positions)
            if low is not None:
                left, right = np.maximum(left, ticks + low), np.minimum(right, ticks + high)
        return left, right

    def wanted(self, rows, place):
        return ()

    def _apart(self, i, j):
        """The least and the most that the tick of a tuple of i is above that of one of j in any combination."""
        a, b = self._sides[i].span, self._sides[j].span
        return (None, None) if a is None or b is None else (a[0] - b[1], a[1] - b[0])

    def held(self, rows, which, found):
        rows = rows.take(which).beside(found)
        mask = np.ones(len(rows), bool)
        for i in found:
            mask &= rows.at[i] < self._limits[i]
            left, right = self._range(rows, i)
            ticks = self._sides[i].held.ticks(rows.at[i])
            mask &= (left <= ticks) & (ticks <= right)
        return rows.take(mask)


class MaterializedNode:
    """The state of one node of a join's plan."""

    def __init__(self, node, join):
        self.node, self._join = node, join
        self.generation = 0
        self._begin([])

    def _begin(self, generations):
        self._generations, self._modules = generations, {}
        self._seen = dict.fromkeys(self.node, 0)
        self._at = {i: GrowableArray(np.empty(0, np.int64)) for i in self.node}
        self.generation += 1

    @property
    def count(self):
        return len(self._at[self.node[0]].values)

    def refresh(self):
        """Take in what the members hold by now."""
        sides = self._join.sides
        helds = {i: sides[i].held for i in self.node}
        generations = [held.generation for held in helds.values()]
        if generations != self._generations:
            self._begin(generations)
        limits = dict(self._seen)
        for i, held in helds.items():
            new = np.arange(self._seen[i], held.count)
            limits[i] = held.count
            if not len(new):
                continue
            new = new if held.all_live else new[held.living(new)]
            growth = GrowthBounds(sides, limits)
            rows = self._join.begun(i, new)
            rows = self._join.through(rows, self._join.plan.probes_inside(i, self.node), growth)
            for j, at in self._at.items():
                at.extend(rows.at[j])
        self._seen = limits

    # --- what a module asks ------------------------------------------------------------------------------------------

    def module(self, key):
        if key not in self._modules:
            self._modules[key] = StateModule(self, key)
        return self._modules[key]

    def ticks(self, positions):
        first = self.node[0]
        return self._join.sides[first].held.ticks(self._at[first].values[positions])

    @property
    def all_live(self):
        return all(self._join.sides[i].held.all_live for i in self.node)

    def living(self, positions):
        mask = np.ones(len(positions), bool)
        for i, at in self._at.items():
            mask &= self._join.sides[i].held.living(at.values[positions])
        return mask

    def vectors(self, key, positions):
        """`key` has pairs of a member and an expression over what it holds."""
        return [self._join.sides[i].held.vectors([e], self._at[i].values[positions])[0] for i, e in key]

    def spread(self, place, positions):
        """The positions of the members' tuples."""
        return {i: at.values[positions] for i, at in self._at.items()}
