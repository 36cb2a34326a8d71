"""StateBundle: the states of several aggregates of the same groups, as arrays that each merge by one ufunc.

States share arrays, such as a count; a bundle has each array once. Bundles of one form merge array by array, without
a look at the meaning of each.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from acquisition.arrays import AnyArray
from innet.aggregates.exact_sums import HEADROOM, ExactSums
from innet.aggregates.state import AggregateState, StateAggregate


class SumForm(NamedTuple):
    """An exact sum: its name, its origin, and (limb, position of its array) of each limb."""

    name: str
    origin: int
    limbs: tuple[tuple[int, int], ...]


class StateForm(NamedTuple):
    """The arrays of one state: (name, position of its array) of each cell, and its sums."""

    cells: tuple[tuple[str, int], ...]
    sums: tuple[SumForm, ...]


class BundleForm(NamedTuple):
    """The ufunc that merges each array, and the form of each state. Bundles of equal forms can merge."""

    folds: tuple[np.ufunc, ...]
    states: tuple[StateForm, ...]


@dataclass(frozen=True, slots=True)
class StateBundle:
    """The arrays of several states. No digit of a sum is larger in magnitude than `bound`."""

    form: BundleForm
    arrays: list[AnyArray]
    bound: int

    def combine(self, other: "StateBundle") -> "StateBundle":
        """Merge two bundles, group by group. They have one form, and `can_merge` holds of them."""
        folds = zip(self.form.folds, self.arrays, other.arrays, strict=True)
        arrays: list[AnyArray] = [fold(mine, others) for fold, mine, others in folds]
        return StateBundle(self.form, arrays, self.bound + other.bound)

    def states(self) -> list[AggregateState]:
        """Return the states. They share arrays, and must not be changed."""
        n_groups, found = len(self.arrays[0]), []
        for form in self.form.states:
            cells = {name: self.arrays[at] for name, at in form.cells}
            sums = {
                name: ExactSums.of(n_groups, origin, {limb: self.arrays[at] for limb, at in limbs}, self.bound)
                for name, origin, limbs in form.sums
            }
            found.append(AggregateState(n_groups, cells, sums))
        return found


def bundle_states(aggregates: Sequence[StateAggregate], states: Sequence[AggregateState]) -> StateBundle | None:
    """Bundle the state of each aggregate; None if the cells of one do not merge on their own."""
    folds: list[np.ufunc] = []
    arrays: list[AnyArray] = []
    places: dict[tuple[np.ufunc, int], int] = {}
    forms: list[StateForm] = []
    bound = 0

    def place(fold: np.ufunc, array: AnyArray) -> int:
        """Return the position of an array, which is appended if it is new."""
        at = places.setdefault((fold, id(array)), len(arrays))
        if at == len(arrays):
            folds.append(fold)
            arrays.append(array)
        return at

    for aggregate, state in zip(aggregates, states, strict=True):
        if (fold_of := aggregate.folds) is None:
            return None
        cells = tuple((name, place(fold_of[name], cell)) for name, cell in state.cells.items())
        sums = []
        for name, exact in state.sums.items():
            limbs = tuple((limb, place(np.add, exact.columns[limb])) for limb in sorted(exact.columns))
            sums.append(SumForm(name, exact.origin, limbs))
            bound = max(bound, exact.bound)
        forms.append(StateForm(cells, tuple(sums)))
    return StateBundle(BundleForm(tuple(folds), tuple(forms)), arrays, bound)


def can_merge(bundles: Sequence[StateBundle]) -> bool:
    """Whether all bundles can merge into one: their digits have headroom for the sums."""
    return sum(bundle.bound for bundle in bundles) <= HEADROOM
