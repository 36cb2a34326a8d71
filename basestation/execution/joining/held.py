"""Held: the tuples of one stream that windows may still reach, once, however many modules index them.

A tuple has a position, which it keeps until `generation` changes: then what was taken back or evicted has been cleared
away, and whoever remembers positions begins anew.
"""

import numpy as np

from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector
from basestation.execution.grown import Grown
from basestation.execution.joining.module import StateModule

_SYSTEM = ("ident", "tick", "arrival", "part", "rank", "place", "append")
NEVER = 2**62
_CLEAR = 64
"""With fewer dead tuples than this, clearing away is not worth the while."""


class Held:
    """Begins with `none`: no tuples, with all columns."""

    def __init__(self, none):
        self.generation, self.count, self.appends = 0, 0, False
        self._ids = tuple(none.columns)
        self._modules = {}
        self._start(none)

    def _start(self, tuples):
        self._system = {name: Grown(getattr(tuples, name)) for name in _SYSTEM}
        self._values = {id: Grown(v.values) for id, v in tuples.columns.items()}
        self._valid = {id: Grown(v.valid) for id, v in tuples.columns.items() if v.valid is not None}
        self._alive = Grown(np.ones(len(tuples), bool))
        self._dead, self.count = 0, len(tuples)
        self.appends = bool(tuples.append.any())

    # --- what comes and goes -----------------------------------------------------------------------------------------

    def build(self, tuples):
        if not len(tuples):
            return
        for name in _SYSTEM:
            self._system[name].extend(getattr(tuples, name))
        for id, vector in tuples.columns.items():
            if vector.valid is not None and id not in self._valid:
                self._valid[id] = Grown(np.ones(self.count, bool))
            if id in self._valid:
                self._valid[id].extend(vector.there)
            self._values[id].extend(vector.values)
        self._alive.extend(np.ones(len(tuples), bool))
        self.count += len(tuples)
        self.appends = self.appends or bool(tuples.append.any())

    def begin_anew(self, tuples):
        """These tuples are there instead of all others."""
        self._start(tuples)
        self._forget_positions()

    def remove(self, idents):
        """Tuples are taken back, or corrected: the corrected ones are built anew."""
        if len(idents):
            self._drop(np.isin(self._system["ident"].values, idents))

    def evict(self, before):
        """Let go of the tuples before a tick."""
        self._drop(self._system["tick"].values < before)

    def remove_at(self, ticks):
        """Let go of the tuples at some ticks."""
        if len(ticks):
            self._drop(np.isin(self._system["tick"].values, ticks))

    def _drop(self, mask):
        alive = self._alive.values
        mask = mask & alive
        self._dead += int(mask.sum())
        alive[mask] = False
        if self._dead > _CLEAR and 2 * self._dead > self.count:
            self._clear()

    def _clear(self):
        """Give the living new positions."""
        kept = np.flatnonzero(self._alive.values)
        self._system = {name: Grown(grown.values[kept]) for name, grown in self._system.items()}
        self._values = {id: Grown(grown.values[kept]) for id, grown in self._values.items()}
        self._valid = {id: Grown(grown.values[kept]) for id, grown in self._valid.items()}
        self._alive = Grown(np.ones(len(kept), bool))
        self._dead, self.count = 0, len(kept)
        self.appends = bool(self._system["append"].values.any())
        self._forget_positions()

    def _forget_positions(self):
        self.generation += 1
        self._modules = {}  # those that are used are built again

    # --- what is asked -----------------------------------------------------------------------------------------------

    def __len__(self):
        """How many tuples live."""
        return self.count - self._dead

    def of(self, name, positions):
        """What the system knows of tuples: ident, tick, arrival, …"""
        return self._system[name].values[positions]

    def ticks(self, positions):
        return self._system["tick"].values[positions]

    def living(self, positions):
        return self._alive.values[positions]

    @property
    def all_live(self):
        return self._dead == 0

    def column(self, id, positions):
        valid = self._valid.get(id)
        return Vector(self._values[id].values[positions], None if valid is None else valid.values[positions])

    def vectors(self, expressions, positions):
        """Expressions over the columns, or columns as they are held by their ids, of tuples at positions."""
        computed = [e for e in expressions if not isinstance(e, int)]
        needed = {c.id for e in computed for c in columns_of(e)}
        evaluation = Evaluation({id: self.column(id, positions) for id in needed}, len(positions))
        return [self.column(e, positions) if isinstance(e, int) else evaluation.of(e) for e in expressions]

    def spread(self, place, positions):
        """The positions by input, as a kept node gives them."""
        return {place[0]: positions}

    def module(self, key):
        """The state module for a key; there is one for each."""
        if key not in self._modules:
            self._modules[key] = StateModule(self, key)
        return self._modules[key]
