"""Per-tick revisions: what corrections in a step of many clock ticks changed in the windows of a block, tick by tick.

A block can tell this if its windows are one sequence of slices whose stream tracks versions, and all that is done above
them is done row by row. Other blocks take a step of their own for each clock tick with a correction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expressions import Attr
from basestation.algebra.node import PlanNode
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.window_batch import WindowBatch
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.interfaces import WindowSource
from basestation.execution.relational import row_operators
from basestation.execution.relational.window_delta import diff_doubtful_windows, find_mixed_windows
from basestation.execution.slices.slice_windows import SliceWindows


@dataclass(frozen=True, slots=True)
class PerTickRevisions:
    """First answers and revisions of windows, in the order in which they are given, as of each clock tick.

    A revision that changes nothing has no rows.
    """

    windows: WindowCombinations  # a window that is revised several times is in it as often
    clock: IntArray
    first: BoolArray  # whether it is a first answer
    added: WindowContents
    removed: WindowContents
    versions: TupleVersions
    whole: Callable[[IntArray], tuple[WindowContents, WindowContents]]
    """Called with positions of revisions: returns (all rows after each of them, all rows before it)."""


def make_per_tick_reviser(
    node: PlanNode, inputs: Sequence[WindowSource], leaves: tuple[PlanNode, ...]
) -> "PerTickReviser | None":
    """The PerTickReviser of a block with this tree; None where it cannot have one."""
    source = inputs[0]
    if len(inputs) != 1 or not isinstance(source, SliceWindows) or not source.stream.tracks_versions:
        return None
    below = node
    while isinstance(below, WindowSelect | WindowProject):
        below = below.child
    return PerTickReviser(node, source, leaves[0]) if below is leaves[0] else None


class PerTickReviser:
    """Computes PerTickRevisions of a block: `node` is its tree, `leaf` the node in it that the windows stand for."""

    def __init__(self, node: PlanNode, windows: SliceWindows, leaf: PlanNode) -> None:
        self._node, self._windows = node, windows
        # If all columns of a group are in the answer, rows that differ in the slices differ in the answer, too.
        self._shows_all = set(_find_plain(node, leaf).values()) == {column.id for column in leaf.columns}

    @property
    def now(self) -> bool:
        """Whether a tuple was corrected in this step."""
        return self._windows.versions is not None

    def revise(self, windows: WindowCombinations, given: WindowBatch, new: int) -> PerTickRevisions:
        """The revisions of windows of a block, in order, of which the last `new` are new; `given` are those of the input."""
        revisions, added, removed = self._windows.revise(given, new)
        added, removed = self._evaluate(self._node, added), self._evaluate(self._node, removed)
        whole = partial(self._find_whole, given, new)
        if not self._shows_all:
            came, went = diff_both_ways(added, removed)
            added, removed = added.take(came), removed.take(went)
            doubtful = np.flatnonzero((find_mixed_windows(added) | find_mixed_windows(removed)) & ~revisions.first)
            if len(doubtful):
                added, removed = diff_doubtful_windows(added, removed, doubtful, *whole(doubtful))
        versions = self._windows.versions
        if versions is None:
            raise RuntimeError("expected corrections in this step, found none")
        of = windows.take(revisions.window)
        return PerTickRevisions(of, revisions.clock, revisions.first, added, removed, versions, whole)

    def _find_whole(self, given: WindowBatch, new: int, items: IntArray) -> tuple[WindowContents, WindowContents]:
        """All rows after some revisions, and before them."""
        after, before = self._windows.whole(given, new, items)
        return self._evaluate(self._node, after), self._evaluate(self._node, before)

    def _evaluate(self, node: PlanNode, frame: WindowContents) -> WindowContents:
        """The rows of the block, from those of slices."""
        match node:
            case WindowSelect(predicate=predicate, child=child):
                return row_operators.select(self._evaluate(child, frame), predicate)
            case WindowProject(outputs=outputs, child=child):
                return row_operators.project(self._evaluate(child, frame), outputs)
        return frame


def _find_plain(node: PlanNode, leaf: PlanNode) -> dict[int, int]:
    """{column of a node: the column of the leaf that it repeats}, for columns that repeat one."""
    match node:
        case WindowSelect(child=child):
            return _find_plain(child, leaf)
        case WindowProject(outputs=outputs, child=child):
            below = _find_plain(child, leaf)
            plain = [(c.id, e.column.id) for c, e in outputs if isinstance(e, Attr)]
            return {to: below[of] for to, of in plain if of in below}
    return {column.id: column.id for column in leaf.columns}
