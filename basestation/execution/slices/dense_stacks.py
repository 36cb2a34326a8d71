"""Dense stacks: two stacks (`two_stacks.py`) of slices in which groups come and go: each slice is spread out to all groups.

A slice is spread out when it enters a window, and again when the cut moves behind it. Groups that are numbered later are
blank in the slices before, so there is room for some.
"""

from collections.abc import Callable

from basestation.execution.columns.cells import Cells
from basestation.execution.columns.growable_array import spare_length


class DenseStacks:
    """Knows slices by their Cells, which never change: where one was replaced, all are merged again."""

    def __init__(self) -> None:
        self._room = 0  # the number of groups that there is room for
        self._parts: list[Cells] = []  # the slices of the last window
        self._suffixes: list[
            Cells
        ] = []  # slices before the cut merged with all up to it; the last is the first slice's
        self._behind: Cells | None = None  # the slices behind the cut, merged

    def over(
        self,
        parts: list[Cells],
        width: int,
        spread: Callable[[Cells, int], Cells],
        combine: Callable[[Cells, Cells], Cells],
    ) -> Cells:
        """The cells of a window over slices, one for each of at least `width` groups; `parts` has at least one slice.

        `spread` spreads a slice out to a number of groups, `combine` merges two sets of cells group by group.
        """
        if width > self._room:
            self._room = spare_length(width)
            self._parts, self._suffixes, self._behind = [], [], None
        known = self._keep_known(parts)
        self._parts = parts
        if not self._suffixes:
            self._behind = None
            for part in reversed(parts):
                dense = spread(part, self._room)
                self._suffixes.append(combine(dense, self._suffixes[-1]) if self._suffixes else dense)
        else:
            for part in parts[known:]:
                dense = spread(part, self._room)
                self._behind = dense if self._behind is None else combine(self._behind, dense)
        front = self._suffixes[-1]
        return front if self._behind is None else combine(front, self._behind)

    def _keep_known(self, parts: list[Cells]) -> int:
        """How many of the parts, from the first on, were in the last window; slices before them are dropped."""
        lost = next((at for at, part in enumerate(self._parts) if part is parts[0]), len(self._parts))
        known = self._parts[lost:]
        if len(known) > len(parts) or any(a is not b for a, b in zip(known, parts, strict=False)):
            lost, known = len(self._parts), []
        del self._suffixes[max(len(self._suffixes) - lost, 0) :]
        return len(known)
