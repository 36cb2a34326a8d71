"""StateAggregate: the base of the aggregates whose states merge, with everything that does not depend on the function.

A state consists of cells (arrays with one entry per group) and of exact sums. An aggregate names its own in `cells` and
`sums`; the base class keeps, copies, merges, saves and loads them.
"""

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from acquisition.arrays import AnyArray, BoolArray, IntArray
from innet.aggregates.exact_sums import FLOAT_ORIGIN, INTEGER_ORIGIN, ExactSums
from innet.aggregates.identity_memo import IdentityMemo
from innet.aggregates.protocol import Answers, EvaluableAggregate, Order

CellType: TypeAlias = tuple[type, object]
"""(numpy type, the entry of an empty group)."""
SegmentReduction: TypeAlias = Callable[[np.ufunc, AnyArray, Any], AnyArray]
"""`reduce(ufunc, array, start)` folds each segment of an array with the ufunc, beginning with `start`."""


@dataclass(slots=True)
class AggregateState:
    """The states of `n_groups` groups: the cells and the exact sums of an aggregate, by name."""

    n_groups: int
    cells: dict[str, AnyArray]
    sums: dict[str, ExactSums]

    def map_arrays(self, change: Callable[[AnyArray], AnyArray]) -> "AggregateState":
        """Return the state whose arrays are `change` of these arrays: a selection of groups, or a copy."""
        cells = {name: change(cell) for name, cell in self.cells.items()}
        n_groups = len(next(iter(cells.values())))
        sums = {name: sums.map_arrays(change, n_groups) for name, sums in self.sums.items()}
        return AggregateState(n_groups, cells, sums)


def _joined(*arrays: AnyArray) -> AnyArray:
    return np.concatenate(arrays)


@dataclass(frozen=True, slots=True)
class _Scatter:
    """Puts the entries of an array at the positions `into` of a longer one."""

    length: int
    dtype: type
    blank: object
    into: IntArray = field(compare=False)

    def __call__(self, array: AnyArray) -> AnyArray:
        longer: AnyArray = np.full(self.length, self.blank, self.dtype)
        longer[self.into] = array
        return longer


class StateAggregate(EvaluableAggregate):
    """The base of the mergeable aggregates, which add `cells`, `_fold`, `merge`, `finalize` and `layout`.

    `update`, `undo`, `merge` and `grow` change a state in place. The other methods return a new state, which may share
    arrays with others and must not be changed.
    """

    is_mergeable = True
    sums: tuple[str, ...] = ()
    """The names of its exact sums."""

    @property
    @abstractmethod
    def cells(self) -> Mapping[str, CellType]:
        """By name, the cells of a state."""

    @property
    def folds(self) -> Mapping[str, np.ufunc] | None:
        """By cell, the ufunc that merges two entries; None if a cell does not merge on its own."""
        return None

    @property
    def on_motes(self) -> bool:
        """Whether motes can compute it: they compute with integers, and scaled values are integers (semantics 13)."""
        return self.type in ("integer", "scaled")

    # --- computing ---------------------------------------------------------------------------------------------------

    def init(self, n_groups: int) -> AggregateState:
        """Return the state of empty groups."""
        cells: dict[str, AnyArray] = {n: np.full(n_groups, blank, dtype) for n, (dtype, blank) in self.cells.items()}
        return AggregateState(n_groups, cells, self._no_sums(n_groups))

    def _no_sums(self, n_groups: int) -> dict[str, ExactSums]:
        return {name: ExactSums(n_groups, self._origin) for name in self.sums}

    @property
    def _origin(self) -> int:
        return FLOAT_ORIGIN if self.type == "float" else INTEGER_ORIGIN

    def update(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        weights: IntArray | None = None,
        order: Order | None = None,
    ) -> None:
        """Fold rows into a state. COUNT(*) is COUNT with neither `values` nor `valid`."""
        if weights is not None and not self.can_undo:
            if (weights < 0).any():
                raise ValueError(f"{self.name} cannot retract a row")
            weights = None
        if valid is not None and not valid.all():
            groups = groups[valid]
            values = None if values is None else values[valid]
            weights = None if weights is None else weights[valid]
            order = None if order is None else (order[0][valid], order[1][valid])
        if len(groups):
            self._fold(state, groups, values, weights, order)

    def aggregate_rows(
        self,
        counts: IntArray,
        groups: IntArray | None,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
        memo: IdentityMemo | None = None,
    ) -> AggregateState:
        """Return the state of rows: `init` and `update` in one. `counts` has the number of rows of each group.

        Without `groups`, each row is a group of its own. States made with the same `memo` may share arrays, also with
        `values`.
        """
        state = self.init(len(counts))
        groups = np.arange(len(counts)) if groups is None else groups
        self.update(state, groups, values, valid, None, order)
        return state

    @abstractmethod
    def merge(self, state: AggregateState, other: AggregateState, into: IntArray) -> None:
        """Fold group g of `other` into group into[g] of `state`; several may go into one."""

    @abstractmethod
    def finalize(self, state: AggregateState) -> Answers:
        """Return the answer of each group (semantics 5.6). The state can be used further."""

    def combine(self, state: AggregateState, other: AggregateState, memo: IdentityMemo | None = None) -> AggregateState:
        """Return a new state that merges both, group by group."""
        folds = self.folds
        if folds is None:
            both = self.concatenate([state])
            self.merge(both, other, np.arange(state.n_groups))
            return both
        memo = memo or IdentityMemo()
        cells: dict[str, AnyArray] = {
            name: memo(folds[name], cell, other.cells[name]) for name, cell in state.cells.items()
        }
        sums = {name: sums.combine(other.sums[name], partial(memo, np.add)) for name, sums in state.sums.items()}
        return AggregateState(state.n_groups, cells, sums)

    def scatter(self, state: AggregateState, n_groups: int, into: IntArray, memo: IdentityMemo) -> AggregateState:
        """Return the state of `n_groups` groups that has group g of `state` as group into[g]; the others are empty."""
        cells: dict[str, AnyArray] = {
            name: memo(_Scatter(n_groups, dtype, blank, into), state.cells[name])
            for name, (dtype, blank) in self.cells.items()
        }
        limb = _Scatter(n_groups, np.int64, 0, into)
        return AggregateState(
            n_groups, cells, {name: sums.map_arrays(limb, n_groups) for name, sums in state.sums.items()}
        )

    def reduce_segments(
        self, state: AggregateState, n_groups: int, most: int, reduce: SegmentReduction
    ) -> AggregateState:
        """Return the state of `n_groups` segments, each of at most `most` groups of `state`. Needs `folds`."""
        if self.folds is None:
            raise TypeError(f"the cells of {self.name} do not merge one by one")
        folds = self.folds
        cells = {name: reduce(folds[name], state.cells[name], blank) for name, (_, blank) in self.cells.items()}
        sums = {name: sums.reduce_segments(n_groups, most, reduce) for name, sums in state.sums.items()}
        return AggregateState(n_groups, cells, sums)

    def undo(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
    ) -> None:
        """Retract rows that were folded in."""
        self.update(state, groups, values, valid, np.full(len(groups), -1))

    def evaluate(
        self,
        n_groups: int,
        groups: IntArray,
        values: AnyArray | None = None,
        valid: BoolArray | None = None,
        order: Order | None = None,
    ) -> Answers:
        state = self.init(n_groups)
        self.update(state, groups, values, valid, None, order)
        return self.finalize(state)

    @abstractmethod
    def _fold(
        self,
        state: AggregateState,
        groups: IntArray,
        values: AnyArray | None,
        weights: IntArray | None,
        order: Order | None,
    ) -> None:
        """Fold at least one row into a state; all rows have a value."""

    # --- housekeeping ------------------------------------------------------------------------------------------------

    def grow(self, state: AggregateState, n_groups: int) -> None:
        """Append empty groups to a state, up to `n_groups`. Copies the arrays, so callers grow by a factor."""
        for name, (dtype, blank) in self.cells.items():
            more: AnyArray = np.full(n_groups - state.n_groups, blank, dtype)
            state.cells[name] = np.concatenate([state.cells[name], more])
        for sums in state.sums.values():
            sums.grow(n_groups)
        state.n_groups = n_groups

    def take(self, state: AggregateState, positions: IntArray | BoolArray) -> AggregateState:
        """Return the state of the groups at `positions` (numbers or a mask), in that order."""
        return state.map_arrays(lambda column: column[positions])

    def concatenate(self, states: Sequence[AggregateState], memo: IdentityMemo | None = None) -> AggregateState:
        """Return the state of all groups, one state after the other. With `memo` it may share arrays."""
        columns = {name: [s.cells[name] for s in states] for name in self.cells}
        cells = {name: memo(_joined, *of) if memo else _joined(*of) for name, of in columns.items()}
        sums = {name: ExactSums.concatenate([s.sums[name] for s in states]) for name in self.sums}
        return AggregateState(sum(s.n_groups for s in states), cells, sums)

    def dump(self, state: AggregateState) -> dict[str, AnyArray]:
        """Return a state as arrays by name. Equal knowledge gives equal arrays, however it was gathered."""
        dumped = {name: cell.copy() for name, cell in state.cells.items()}
        for name, sums in state.sums.items():
            dumped[f"{name}.limbs"], dumped[f"{name}.digits"] = sums.dump()
        return dumped

    def load(self, dumped: Mapping[str, AnyArray]) -> AggregateState:
        """Return the state that `dump` wrote."""
        cells = {name: dumped[name].copy() for name in self.cells}
        sums = {
            name: ExactSums.load(dumped[f"{name}.limbs"], dumped[f"{name}.digits"], self._origin) for name in self.sums
        }
        return AggregateState(len(next(iter(cells.values()))), cells, sums)

    def nbytes(self, state: AggregateState) -> int:
        """Bytes of the arrays of a state, strings included."""
        size = sum(sums.nbytes for sums in state.sums.values())
        for cell in state.cells.values():
            size += cell.nbytes
            if cell.dtype == object:
                size += sum(map(sys.getsizeof, cell.tolist()))
        return size


def as_mergeable(aggregate: EvaluableAggregate) -> StateAggregate:
    """Return the aggregate as one with states. TypeError if it is holistic."""
    if not isinstance(aggregate, StateAggregate):
        raise TypeError(f"{aggregate.name} keeps no state that merges")
    return aggregate
