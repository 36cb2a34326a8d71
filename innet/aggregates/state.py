"""Partial: what the aggregates that merge have in common, which is all that does not depend on what they compute.

A state is made of cells (arrays with one entry per group) and of exact sums; an aggregate names its own in `cells` and
`sums`, and the housekeeping here serves them all.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from innet.aggregates.exact_sums import FLOAT_ORIGIN, INTEGER_ORIGIN, ExactSums
from innet.aggregates.protocol import StateField


@dataclass(slots=True)
class AggregateState:
    n_groups: int
    cells: dict[str, np.ndarray]
    sums: dict[str, ExactSums]

    def mapped(self, change: Callable) -> "AggregateState":
        """A state of other groups: what is chosen of each array, or a copy of it."""
        cells = {name: change(cell) for name, cell in self.cells.items()}
        n_groups = len(next(iter(cells.values())))
        return AggregateState(
            n_groups, cells, {name: sums.mapped(change, n_groups) for name, sums in self.sums.items()}
        )


class IdentityMemo:
    """Makes something of arrays once: states with an array in common, such as a count, go on having it in common."""

    def __init__(self) -> None:
        self._made: dict = {}

    def __call__(self, make: Callable, *arrays: np.ndarray) -> np.ndarray:
        key = make, *map(id, arrays)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make(*arrays), arrays  # which go on living, so that no other array gets their id
        return found[0]


def _joined(*arrays):
    return np.concatenate(arrays)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Puts the entries of an array where they belong in a longer one."""

    length: int
    dtype: object
    blank: object
    into: np.ndarray = field(compare=False)

    def __call__(self, array: np.ndarray) -> np.ndarray:
        longer = np.full(self.length, self.blank, self.dtype)
        longer[self.into] = array
        return longer


class StateAggregate:
    """The base of the aggregates that merge: they add `_fold`, `merge`, `finalize` and `layout`."""

    name = ""
    is_mergeable = True
    can_undo = False
    stretches = False
    sums: tuple[str, ...] = ()
    folds: Mapping[str, np.ufunc] | None = None
    """How two cells of one group become one, where each does by itself."""

    def __init__(self, type: str, scale: int | None = None) -> None:
        self.type, self.scale = type, scale

    @property
    def result(self) -> str:
        return self.type

    @property
    def cells(self) -> dict[str, tuple[object, object]]:
        """By name, the numpy type and what an empty group has there."""
        raise TypeError(f"{type(self).__name__} does not say its cells")

    @property
    def on_motes(self) -> bool:
        """Motes compute with integers; scaled values are (SEMANTICS 13)."""
        return self.type in ("integer", "scaled")

    def layout(self) -> tuple[StateField, ...] | None:
        raise TypeError(f"{type(self).__name__} does not say its layout")

    # --- computing ---------------------------------------------------------------------------------------------------

    def init(self, n_groups: int) -> AggregateState:
        cells = {name: np.full(n_groups, blank, dtype) for name, (dtype, blank) in self.cells.items()}
        return AggregateState(n_groups, cells, self._no_sums(n_groups))

    def _no_sums(self, n_groups) -> dict[str, ExactSums]:
        return {name: ExactSums(n_groups, self._origin) for name in self.sums}

    @property
    def _origin(self) -> int:
        return FLOAT_ORIGIN if self.type == "float" else INTEGER_ORIGIN

    def update(self, state, groups, values=None, valid=None, weights=None, order=None) -> None:
        if weights is not None and not self.can_undo:
            if (weights < 0).any():
                raise ValueError(f"{self.name} cannot take a row back")
            weights = None
        if valid is not None and not valid.all():
            groups = groups[valid]
            values = None if values is None else values[valid]
            weights = None if weights is None else weights[valid]
            order = None if order is None else tuple(key[valid] for key in order)
        if len(groups):
            self._fold(state, groups, values, weights, order)

    def folded(self, counts, groups, values=None, valid=None, order=None, once=None) -> AggregateState:
        """`init` and `update` in one, of as many groups as `counts` has, which are the rows of each.

        Where `groups` are None, each row is a group of its own. States that are made with the same `once` may share arrays, also
        with the values. They are not to be changed.
        """
        state = self.init(len(counts))
        groups = np.arange(len(counts)) if groups is None else groups
        self.update(state, groups, values, valid, None, order)
        return state

    def merged(self, state, other, once=None) -> AggregateState:
        """A new state: group by group of both. It may share arrays with them, and is not to be changed."""
        folds = self.folds
        if folds is None:
            both = self.concatenate([state])
            self.merge(both, other, np.arange(state.n_groups))
            return both
        once = once or IdentityMemo()
        cells = {name: once(folds[name], cell, other.cells[name]) for name, cell in state.cells.items()}
        sums = {name: sums.merged(other.sums[name], partial(once, np.add)) for name, sums in state.sums.items()}
        return AggregateState(state.n_groups, cells, sums)

    def spread(self, state, n_groups, into, once) -> AggregateState:
        """A new state of so many groups, of which each of `into` is one of `state`, and the others are empty.

        What is made with the same `once` may share arrays, and is not to be changed.
        """
        cells = {
            name: once(_Spread(n_groups, dtype, blank, into), state.cells[name])
            for name, (dtype, blank) in self.cells.items()
        }
        limb = _Spread(n_groups, np.int64, 0, into)
        return AggregateState(n_groups, cells, {name: sums.mapped(limb, n_groups) for name, sums in state.sums.items()})

    def together(self, state, n_groups, most, bring) -> AggregateState:
        """A new state of other groups, each of `most` of these at most, where `folds` are told.

        `bring` brings those of a cell together by a fold, beginning with what an empty group has there.
        """
        cells = {name: bring(self.folds[name], state.cells[name], blank) for name, (_, blank) in self.cells.items()}
        sums = {name: sums.together(n_groups, most, bring) for name, sums in state.sums.items()}
        return AggregateState(n_groups, cells, sums)

    def undo(self, state, groups, values=None, valid=None) -> None:
        self.update(state, groups, values, valid, np.full(len(groups), -1))

    def evaluate(self, n_groups, groups, values=None, valid=None, order=None):
        state = self.init(n_groups)
        self.update(state, groups, values, valid, None, order)
        return self.finalize(state)

    def _fold(self, state, groups, values, weights, order) -> None:
        """`update` for rows that are all there, and at least one."""
        raise TypeError(f"{type(self).__name__} does not fold")

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def grow(self, state: AggregateState, n_groups: int) -> None:
        for name, (dtype, blank) in self.cells.items():
            more = np.full(n_groups - state.n_groups, blank, dtype)
            state.cells[name] = np.concatenate([state.cells[name], more])
        for sums in state.sums.values():
            sums.grow(n_groups)
        state.n_groups = n_groups

    def take(self, state: AggregateState, positions: np.ndarray) -> AggregateState:
        return state.mapped(lambda column: column[positions])

    def concatenate(self, states: Sequence[AggregateState], once: IdentityMemo | None = None) -> AggregateState:
        """One state of the groups of all. What is made with the same `once` may share arrays, and is not to be changed."""
        cells = {name: [s.cells[name] for s in states] for name in self.cells}
        cells = {name: once(_joined, *of) if once else _joined(*of) for name, of in cells.items()}
        sums = {name: ExactSums.concatenate([s.sums[name] for s in states]) for name in self.sums}
        return AggregateState(sum(s.n_groups for s in states), cells, sums)

    def dump(self, state: AggregateState) -> dict[str, np.ndarray]:
        dumped = {name: cell.copy() for name, cell in state.cells.items()}
        for name, sums in state.sums.items():
            dumped[f"{name}.limbs"], dumped[f"{name}.digits"] = sums.dump()
        return dumped

    def load(self, dumped: Mapping[str, np.ndarray]) -> AggregateState:
        cells = {name: dumped[name].copy() for name in self.cells}
        sums = {
            name: ExactSums.load(dumped[f"{name}.limbs"], dumped[f"{name}.digits"], self._origin) for name in self.sums
        }
        return AggregateState(len(next(iter(cells.values()))), cells, sums)

    def nbytes(self, state: AggregateState) -> int:
        size = sum(sums.nbytes for sums in state.sums.values())
        for cell in state.cells.values():
            size += cell.nbytes
            if cell.dtype == object:
                size += sum(map(sys.getsizeof, cell.tolist()))
        return size
