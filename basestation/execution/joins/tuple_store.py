"""Tuple store: the tuples of one stream that windows may still reach, held once, however many modules index them.

A tuple keeps its position until `generation` changes: then removed and evicted tuples have been cleared away, and indexes
begin anew.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from basestation.algebra.dictionary_vector import Dictionary, DictionaryVector
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Expression
from basestation.algebra.expressions import columns_of
from basestation.algebra.vector import Vector, constant, take_at
from basestation.execution import thresholds
from basestation.execution.columns.growable_array import GrowableArray
from basestation.execution.columns.integer_arrays import as_slice
from basestation.execution.columns.tuples import Tuples
from basestation.execution.joins.state_module import KeyPart, StateModule

_REPEATS = {"arrival": "tick", "place": "ident"}
_CONSTANTS = {"part": 0, "rank": 0, "append": False}
_OPTIONAL = (*_REPEATS, *_CONSTANTS)
"""System columns that repeat another column, or one value, in most streams: they are stored only where they don't."""
NEVER = 2**62


def _is_usual(name: str, tuples: Tuples) -> bool:
    column: AnyArray = getattr(tuples, name)
    if name in _REPEATS:
        return column is getattr(tuples, _REPEATS[name])
    return bool(column.strides == (0,) and column[0] == _CONSTANTS[name])


class TupleStore:
    """An IndexedSource (`state_module.py`) of tuples; `none` are no tuples, with all columns."""

    def __init__(self, none: Tuples) -> None:
        self.generation = 0
        self._looked_up: tuple[IntArray | slice, IntArray | slice] | None = (
            None  # positions, and as a slice if they are
        )
        self._modules: dict[tuple[KeyPart, ...], StateModule] = {}
        self._start(none)

    def _start(self, tuples: Tuples) -> None:
        stored = [name for name in _OPTIONAL if len(tuples) and not _is_usual(name, tuples)]
        self._system = {name: GrowableArray(getattr(tuples, name)) for name in ("ident", "tick", *stored)}
        self._values = {id: GrowableArray(v.values) for id, v in tuples.columns.items()}
        masked = [(id, v.valid) for id, v in tuples.columns.items() if v.valid is not None and len(tuples)]
        self._valid = {id: GrowableArray(valid) for id, valid in masked}
        self._alive = GrowableArray(np.ones(len(tuples), bool))
        self._dictionaries: dict[int, Dictionary] = {}  # columns of strings
        self._dead, self.count = 0, len(tuples)
        self._check_appends()

    def _check_appends(self) -> None:
        self.has_late_appends = "append" in self._system and bool(self._system["append"].values.any())
        """Whether tuples are in windows from their arrival on (3.6)."""

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_dictionaries": {}, "_looked_up": None}

    # --- build, remove, evict ----------------------------------------------------------------------------------------

    def build(self, tuples: Tuples) -> None:
        """Add tuples."""
        if not len(tuples):
            return
        for name in _OPTIONAL:
            if name not in self._system and not _is_usual(name, tuples):
                self._system[name] = GrowableArray(self.system_column(name, np.arange(self.count)))
        for name, held in self._system.items():
            held.extend(getattr(tuples, name))
        for id, vector in tuples.columns.items():
            if vector.valid is not None and id not in self._valid:
                self._valid[id] = GrowableArray(np.ones(self.count, bool))
            if id in self._valid:
                self._valid[id].extend(vector.validity)
            self._values[id].extend(vector.values)
        self._dictionaries = {}
        self._alive.extend(constant(True, len(tuples)))
        self.count += len(tuples)
        self._check_appends()

    def replace_all(self, tuples: Tuples) -> None:
        """Hold these tuples instead of all others."""
        self._start(tuples)
        self._forget_positions()

    def remove(self, idents: IntArray) -> None:
        """Remove tuples by their numbers. A corrected tuple is removed and built again."""
        if len(idents):
            self._drop(np.isin(self._system["ident"].values, idents))

    def evict(self, before: int) -> None:
        """Remove the tuples before a tick."""
        early = self._system["tick"].values < before
        count = np.count_nonzero(early)
        self._drop(slice(count) if early[:count].all() else early)  # mostly they are the first ones

    def remove_at(self, ticks: Sequence[int]) -> None:
        """Remove the tuples at some ticks."""
        if len(ticks):
            self._drop(np.isin(self._system["tick"].values, ticks))

    def _drop(self, which: BoolArray | slice) -> None:
        alive = self._alive.values
        self._dead += int(np.count_nonzero(alive[which]))
        alive[which] = False
        if self._dead > thresholds.DEAD_TUPLES and thresholds.DEAD_SHARE * self._dead > self.count:
            self._clear()

    def _clear(self) -> None:
        """Give the live tuples new positions."""
        alive = self._alive.values
        first = int(alive.argmax()) if self._dead < self.count else self.count
        # Mostly the first ones are dead. The rest is copied: a view would keep the memory of all.
        kept = slice(first, None) if first == self._dead else alive
        self._system = {name: GrowableArray(held.values[kept].copy()) for name, held in self._system.items()}
        self._values = {id: GrowableArray(held.values[kept].copy()) for id, held in self._values.items()}
        self._valid = {id: GrowableArray(held.values[kept].copy()) for id, held in self._valid.items()}
        self._alive = GrowableArray(np.ones(self.count - self._dead, bool))
        self._dictionaries = {}
        self._dead, self.count = 0, len(self._alive)
        self._check_appends()
        self._forget_positions()

    def _forget_positions(self) -> None:
        self.generation += 1
        self._looked_up = None
        self._modules = {key: module for key, module in self._modules.items() if module.is_used}
        for module in self._modules.values():
            module.begin()

    # --- tuples at positions -----------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of live tuples."""
        return self.count - self._dead

    def _at(self, array: AnyArray, positions: IntArray | slice) -> AnyArray:
        """The entries at positions; consecutive ones are not copied."""
        if isinstance(positions, slice):
            return array[positions]
        if (
            self._looked_up is None or positions is not self._looked_up[0]
        ):  # mostly several columns at the same positions
            self._looked_up = positions, as_slice(positions)
        return take_at(array, self._looked_up[1])

    def system_column(self, name: str, positions: IntArray) -> AnyArray:
        """A system column of tuples: ident, tick, arrival, …"""
        if name in self._system:
            return self._at(self._system[name].values, positions)
        if name in _REPEATS:
            return self.system_column(_REPEATS[name], positions)
        return constant(_CONSTANTS[name], len(positions))

    def ticks(self, positions: IntArray | slice) -> IntArray:
        return self._at(self._system["tick"].values, positions)

    def live(self, positions: IntArray | slice) -> BoolArray:
        return self._at(self._alive.values, positions)

    @property
    def all_live(self) -> bool:
        return self._dead == 0

    def column(self, id: int, positions: IntArray | slice) -> Vector:
        """A column of tuples at positions; strings are taken as codes of a dictionary."""
        valid = self._valid.get(id)
        values = self._values[id].values
        if values.dtype == object and not isinstance(positions, slice):
            if id not in self._dictionaries:
                self._dictionaries[id] = Dictionary(values, None if valid is None else valid.values)
            return DictionaryVector(self._dictionaries[id], positions)
        return Vector(self._at(values, positions), None if valid is None else self._at(valid.values, positions))

    def vectors(self, key: Sequence[KeyPart], positions: IntArray | slice) -> list[Vector]:
        """Expressions over the held columns, or columns by their ids, of tuples at positions."""
        computed = [part for part in key if isinstance(part, Expression)]
        needed = {c.id for e in computed for c in columns_of(e)}
        length = positions.stop - positions.start if isinstance(positions, slice) else len(positions)
        evaluation = Evaluation({id: self.column(id, positions) for id in needed}, length)
        found = []
        for part in key:
            if isinstance(part, Expression):
                found.append(evaluation.of(part))
            elif isinstance(part, int):
                found.append(self.column(part, positions))
            else:
                raise TypeError(f"expected a part of a key of one input, found {part!r}")
        return found

    def by_input(self, place: tuple[int, ...], positions: IntArray) -> dict[int, IntArray]:
        """The positions by input, as a materialized node gives them."""
        return {place[0]: positions}

    def held_idents(self) -> IntArray:
        """The numbers of the tuples that are held."""
        every = np.arange(len(self._alive))
        return np.asarray(self.system_column("ident", every[self._alive.values]), np.int64)

    def module(self, key: Sequence[KeyPart]) -> StateModule:
        """The state module for a key; there is one for each key."""
        key = tuple(key)
        if key not in self._modules:
            self._modules[key] = StateModule(self, key)
        return self._modules[key]
