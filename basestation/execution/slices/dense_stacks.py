"""Dense stacks: sliding aggregation over slices in which groups come and go, at about the same cost for each window.

As with two stacks (`two_stacks.py`), each slice before a cut is kept merged with all that follow it up to the cut, and those behind the
cut are kept as one. Here a slice is spread out to all groups before it is merged, which costs more than merging does. So the
slices before the next cut are merged little by little while windows still use the present one:

    slices     [ before the cut ][ before the next cut ][ new ones
    kept as    a suffix each     suffixes, as they come  one
                                 [ one                       ]

Groups that are numbered later are blank in the slices before, so there is room for some.
"""

from collections.abc import Callable

from basestation.execution.columns.cells import Cells
from basestation.execution.columns.growable_array import spare_length

Spread = Callable[[Cells, int], Cells]
"""Spreads a slice out to a number of groups."""
Combine = Callable[[Cells, Cells], Cells]
"""Merges two sets of cells group by group."""


class DenseStacks:
    """Knows slices by their Cells, which never change: where one was replaced, all are merged again."""

    def __init__(self) -> None:
        self._room = 0  # the number of groups that there is room for
        self._clear()

    def _clear(self) -> None:
        self._parts: list[Cells] = []  # the slices of the last window
        self._suffixes: list[
            Cells
        ] = []  # slices before the cut merged with all up to it; the last is the first slice's
        self._behind: Cells | None = None  # the slices behind the cut, merged
        self._target = 0  # how many slices lie between the cut and the next cut; 0: there is no next cut yet
        self._next_suffixes: list[Cells] = []  # of these slices, the last first
        self._next_behind: Cells | None = None  # the slices behind the next cut, merged

    def over(self, parts: list[Cells], width: int, spread: Spread, combine: Combine) -> Cells:
        """The cells of a window over slices, one for each of at least `width` groups; `parts` has at least one slice."""
        if width > self._room:
            self._room = spare_length(width)
            self._clear()
        known = self._keep_known(parts)
        self._parts = parts
        for part in parts[known:] if known else ():
            dense = spread(part, self._room)
            self._behind = dense if self._behind is None else combine(self._behind, dense)
            if self._target:
                self._next_behind = dense if self._next_behind is None else combine(self._next_behind, dense)
        behind = len(parts) - len(self._suffixes)
        if not self._target and len(self._suffixes) <= behind:
            self._target = behind
        if self._target:
            self._merge_next(spread, combine)
        front = self._suffixes[-1]
        return front if self._behind is None else combine(front, self._behind)

    def _merge_next(self, spread: Spread, combine: Combine) -> None:
        """Merge some slices before the next cut: so many that all are merged when no slice is left before the present one."""
        front, left = len(self._suffixes), self._target - len(self._next_suffixes)
        for _ in range(-(-left // front) if front else left):
            part = self._parts[front + self._target - 1 - len(self._next_suffixes)]
            dense = spread(part, self._room)
            self._next_suffixes.append(combine(dense, self._next_suffixes[-1]) if self._next_suffixes else dense)
        if not front:
            self._suffixes, self._next_suffixes = self._next_suffixes, []
            self._behind, self._next_behind = self._next_behind, None
            self._target = 0

    def _keep_known(self, parts: list[Cells]) -> int:
        """How many of the parts, from the first on, were in the last window; slices before them are dropped."""
        lost = next((at for at, part in enumerate(self._parts) if part is parts[0]), len(self._parts))
        known = self._parts[lost:]
        if len(known) > len(parts) or any(a is not b for a, b in zip(known, parts, strict=False)):
            known = []
        if not known or lost > len(self._suffixes):
            self._clear()
            return 0
        del self._suffixes[len(self._suffixes) - lost :]
        return len(known)
