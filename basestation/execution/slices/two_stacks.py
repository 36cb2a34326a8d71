"""Two stacks: consecutive windows over slices that all have the same groups, each merged from two bundles of states.

The slices of a window are cut in two. Before the cut, each slice is kept merged with all that follow it up to the cut;
behind the cut, all are kept as one. The next window, which has lost slices in front and gained some at its end, is the
merge of the first and the last. When no slice is left before the cut, the cut moves to the end, and all slices are merged
again from there: three merges for each slice, however many slices a window has.
"""

from collections.abc import Callable
from itertools import pairwise

from basestation.execution.columns.cells import Cells
from innet.aggregates.state_bundle import StateBundle, can_merge


class TwoStacks:
    """Knows slices by their Cells, which never change: where one was replaced, all are merged again."""

    def __init__(self) -> None:
        self._parts: list[Cells] = []  # the slices of the last window, each as it came
        self._bundles: list[StateBundle] = []
        self._suffixes: list[
            StateBundle
        ] = []  # slices before the cut merged with all up to it; the last is the first slice's
        self._behind: StateBundle | None = None  # the slices behind the cut, merged

    def over(self, parts: list[Cells], bundle: Callable[[Cells], StateBundle | None]) -> StateBundle | None:
        """The bundle of a window over slices, a part for each; None where not all of them have the same groups.

        `bundle` makes the bundle of the states of Cells, if they have one.
        """
        known = self._keep_known(parts)
        if not _have_equal_groups(parts[max(known - 1, 0) :]):
            return None
        bundles = self._bundles.copy()
        for part in parts[known:]:
            found = bundle(part)
            if found is None or (bundles and found.form != bundles[0].form):
                return None
            bundles.append(found)
        if not can_merge(bundles):
            return None
        new = bundles[len(self._bundles) :]
        self._parts, self._bundles = parts, bundles
        if not self._suffixes:
            self._cut()
        else:
            for each in new:
                self._behind = each if self._behind is None else self._behind.combine(each)
        return self._suffixes[-1] if self._behind is None else self._suffixes[-1].combine(self._behind)

    def _keep_known(self, parts: list[Cells]) -> int:
        """How many of the parts, from the first on, were in the last window; the others of that window are dropped."""
        lost = next((at for at, part in enumerate(self._parts) if part is parts[0]), len(self._parts))
        known = self._parts[lost:]
        if len(known) > len(parts) or any(a is not b for a, b in zip(known, parts, strict=False)):
            lost, known = len(self._parts), []
        self._parts, self._bundles = known, self._bundles[lost:]
        del self._suffixes[max(len(self._suffixes) - lost, 0) :]
        return len(known)

    def _cut(self) -> None:
        self._behind = None
        for each in reversed(self._bundles):
            self._suffixes.append(each.combine(self._suffixes[-1]) if self._suffixes else each)


def _have_equal_groups(parts: list[Cells]) -> bool:
    """Whether each part is one slice, and all have the same groups in one order of entry."""
    return all(0 < part.width == len(part) for part in parts) and all(b.follows(a) for a, b in pairwise(parts))
