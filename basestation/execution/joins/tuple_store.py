"""Held: the tuples of one stream that windows may still reach, once, however many modules index them.

A tuple has a position, which it keeps until `generation` changes: then what was taken back or evicted has been cleared
away, and whoever remembers positions begins anew.
"""

import numpy as np

from basestation.algebra.dictionary_vector import Dictionary, DictionaryVector
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector, constant, take_at
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.integer_arrays import as_slice
from basestation.execution.joins.state_module import StateModule

_REPEATS = {"arrival": "tick", "place": "ident"}
_ONE = {"part": 0, "rank": 0, "append": False}
_SYSTEM = (*_REPEATS, *_ONE)
"""What repeats another column or is one value in most streams: it is held where that is not so."""
NEVER = 2**62
_CLEAR, _SHARE = 64, 3
"""With fewer dead tuples than this, clearing away is not worth the while; nor with fewer than one in so many."""


def _usual(name, tuples):
    column = getattr(tuples, name)
    if name in _REPEATS:
        return column is getattr(tuples, _REPEATS[name])
    return column.strides == (0,) and column[0] == _ONE[name]


class TupleStore:
    """Begins with `none`: no tuples, with all columns."""

    def __init__(self, none):
        self.generation = 0
        self._ids = tuple(none.columns)
        self._looked = None, None  # positions that were asked for, and they as a slice if they are one
        self._modules = {}
        self._start(none)

    def _start(self, tuples):
        more = [name for name in _SYSTEM if len(tuples) and not _usual(name, tuples)]
        self._system = {name: GrowableArray(getattr(tuples, name)) for name in ("ident", "tick", *more)}
        self._values = {id: GrowableArray(v.values) for id, v in tuples.columns.items()}
        masked = [(id, v.valid) for id, v in tuples.columns.items() if v.valid is not None and len(tuples)]
        self._valid = {id: GrowableArray(valid) for id, valid in masked}
        self._alive = GrowableArray(np.ones(len(tuples), bool))
        self._texts = {}  # columns of strings, as they are
        self._dead, self.count = 0, len(tuples)
        self._look()

    def _look(self):
        """Whether tuples are in windows from their arrival on (3.6)."""
        self.has_late_appends = "append" in self._system and bool(self._system["append"].values.any())

    def __getstate__(self):
        return vars(self) | {"_texts": {}, "_looked": (None, None)}

    # --- what comes and goes -----------------------------------------------------------------------------------------

    def build(self, tuples):
        if not len(tuples):
            return
        for name in _SYSTEM:
            if name not in self._system and not _usual(name, tuples):
                self._system[name] = GrowableArray(self.of(name, np.arange(self.count)))
        for name, grown in self._system.items():
            grown.extend(getattr(tuples, name))
        for id, vector in tuples.columns.items():
            if vector.valid is not None and id not in self._valid:
                self._valid[id] = GrowableArray(np.ones(self.count, bool))
            if id in self._valid:
                self._valid[id].extend(vector.validity)
            self._values[id].extend(vector.values)
        self._texts = {}
        self._alive.extend(constant(True, len(tuples)))
        self.count += len(tuples)
        self._look()

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
        early = self._system["tick"].values < before
        count = np.count_nonzero(early)
        self._drop(slice(count) if early[:count].all() else early)  # mostly they are the first ones

    def remove_at(self, ticks):
        """Let go of the tuples at some ticks."""
        if len(ticks):
            self._drop(np.isin(self._system["tick"].values, ticks))

    def _drop(self, which):
        """Those in a slice or under a mask are dead."""
        alive = self._alive.values
        self._dead += np.count_nonzero(alive[which])
        alive[which] = False
        if self._dead > _CLEAR and _SHARE * self._dead > self.count:
            self._clear()

    def _clear(self):
        """Give the living new positions."""
        alive = self._alive.values
        first = int(alive.argmax()) if self._dead < self.count else self.count
        # Mostly the first ones are dead. What is kept is copied: it would hold on to the memory of all.
        kept = slice(first, None) if first == self._dead else alive
        self._system = {name: GrowableArray(grown.values[kept].copy()) for name, grown in self._system.items()}
        self._values = {id: GrowableArray(grown.values[kept].copy()) for id, grown in self._values.items()}
        self._valid = {id: GrowableArray(grown.values[kept].copy()) for id, grown in self._valid.items()}
        self._alive = GrowableArray(np.ones(self.count - self._dead, bool))
        self._texts = {}
        self._dead, self.count = 0, len(self._alive)
        self._look()
        self._forget_positions()

    def _forget_positions(self):
        self.generation += 1
        self._looked = None, None
        self._modules = {key: module for key, module in self._modules.items() if module.used}
        for module in self._modules.values():
            module.begin()

    # --- what is asked -----------------------------------------------------------------------------------------------

    def __len__(self):
        """How many tuples live."""
        return self.count - self._dead

    def _at(self, array, positions):
        """What stands at positions, or in a slice; positions that follow each other are one, and no copy is made."""
        if isinstance(positions, slice):
            return array[positions]
        if positions is not self._looked[0]:  # of the same ones several columns are asked for, mostly
            self._looked = positions, as_slice(positions)
        return take_at(array, self._looked[1])

    def of(self, name, positions):
        """What the system knows of tuples: ident, tick, arrival, …"""
        if name in self._system:
            return self._at(self._system[name].values, positions)
        return self.of(_REPEATS[name], positions) if name in _REPEATS else constant(_ONE[name], len(positions))

    def ticks(self, positions):
        return self._at(self._system["tick"].values, positions)

    def living(self, positions):
        return self._at(self._alive.values, positions)

    @property
    def all_live(self):
        return self._dead == 0

    def column(self, id, positions):
        """A column of tuples at positions; strings are left where they are."""
        valid = self._valid.get(id)
        values = self._values[id].values
        if values.dtype == object and not isinstance(positions, slice):
            if id not in self._texts:
                self._texts[id] = Dictionary(values, None if valid is None else valid.values)
            return DictionaryVector(self._texts[id], positions)
        return Vector(self._at(values, positions), None if valid is None else self._at(valid.values, positions))

    def vectors(self, expressions, positions):
        """Expressions over the columns, or columns as they are held by their ids, of tuples at positions."""
        computed = [e for e in expressions if not isinstance(e, int)]
        needed = {c.id for e in computed for c in columns_of(e)}
        length = positions.stop - positions.start if isinstance(positions, slice) else len(positions)
        evaluation = Evaluation({id: self.column(id, positions) for id in needed}, length)
        return [self.column(e, positions) if isinstance(e, int) else evaluation.of(e) for e in expressions]

    def spread(self, place, positions):
        """The positions by input, as a kept node gives them."""
        return {place[0]: positions}

    def module(self, key):
        """The state module for a key; there is one for each."""
        if key not in self._modules:
            self._modules[key] = StateModule(self, key)
        return self._modules[key]
