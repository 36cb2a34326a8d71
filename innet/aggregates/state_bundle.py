"""Bundle: the states of several aggregates of the same groups as arrays that fold one by one. What states share is there once.

Bundles of one form become one without a look at what each array is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from innet.aggregates.exact_sums import HEADROOM, ExactSums
from innet.aggregates.protocol import MergeableAggregate
from innet.aggregates.state import AggregateState


@dataclass(frozen=True, slots=True)
class StateBundle:
    form: tuple
    """The folds; and of each state its cells and its sums, by name, with the places of their arrays."""
    arrays: list[np.ndarray]
    bound: int
    """No digit of a sum is larger."""

    def merged(self, other: "StateBundle") -> "StateBundle":
        """Group by group of both, which have one form and `fit`."""
        folds = zip(self.form[0], self.arrays, other.arrays, strict=True)
        return StateBundle(self.form, [fold(mine, others) for fold, mine, others in folds], self.bound + other.bound)

    def states(self) -> list[AggregateState]:
        """They share arrays, and are not to be changed."""
        n_groups, found = len(self.arrays[0]), []
        for cells, sums in self.form[1]:
            of = {name: self.arrays[at] for name, at in cells}
            exact = {
                name: ExactSums.of(n_groups, origin, {limb: self.arrays[at] for limb, at in limbs}, self.bound)
                for name, origin, limbs in sums
            }
            found.append(AggregateState(n_groups, of, exact))
        return found


def bundle_states(made: Sequence[MergeableAggregate], states: Sequence[AggregateState]) -> StateBundle | None:
    """The states of some aggregates; None where the cells of one do not fold one by one."""
    folds, arrays, places, form, bound = [], [], {}, [], 0

    def place(fold, array):
        at = places.setdefault((fold, id(array)), len(arrays))
        if at == len(arrays):
            folds.append(fold)
            arrays.append(array)
        return at

    for each, state in zip(made, states, strict=True):
        if (fold_of := each.folds) is None:
            return None
        cells = tuple((name, place(fold_of[name], cell)) for name, cell in state.cells.items())
        sums = []
        for name, exact in state.sums.items():
            limbs = tuple((limb, place(np.add, exact.columns[limb])) for limb in sorted(exact.columns))
            sums.append((name, exact.origin, limbs))
            bound = max(bound, exact.bound)
        form.append((cells, tuple(sums)))
    return StateBundle((tuple(folds), tuple(form)), arrays, bound)


def can_merge(bundles: Sequence[StateBundle]) -> bool:
    """Whether all can be made one: digits have room for their sums."""
    return sum(bundle.bound for bundle in bundles) <= HEADROOM
