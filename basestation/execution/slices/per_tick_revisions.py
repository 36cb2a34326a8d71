"""Per-tick revisions: what corrections in a step of many clock ticks changed in the windows of a block, tick by tick.

A block can tell this if its rows are those of one sequence of slices whose stream tracks versions; outputs project and
select them. Other blocks take a step of their own for each clock tick with a correction.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.node import PlanNode
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.window_batch import WindowBatch
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.interfaces import WindowSource
from basestation.execution.slices.slice_windows import SliceWindows


@dataclass(frozen=True, slots=True)
class PerTickRevisions:
    """First answers and revisions of windows, in the order in which they are given, as of each clock tick.

    A revision that changes nothing has no rows. `range` is the number of the range of the windows, None where they have one.
    """

    range: int | None
    at: IntArray  # the position of each window among those that were asked for
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
    """The PerTickReviser of a block with this tree; None where it cannot have one: its rows must be those of slices."""
    source = inputs[0]
    if node is not leaves[0] or not isinstance(source, SliceWindows) or not source.stream.tracks_versions:
        return None
    return PerTickReviser(source)


class PerTickReviser:
    """Computes PerTickRevisions of a block that has all rows of the windows of slices."""

    def __init__(self, windows: SliceWindows) -> None:
        self._windows = windows

    @property
    def now(self) -> bool:
        """Whether a tuple was corrected in this step."""
        return self._windows.versions is not None

    def revise(self, windows: WindowCombinations, given: WindowBatch, new: int) -> list[PerTickRevisions]:
        """The revisions of windows of a block, in order, of which the last `new` are new; `given` are those of the input.

        One for each range that the windows have.
        """
        versions = self._windows.versions
        if versions is None:
            raise RuntimeError("expected corrections in this step, found none")
        found = []
        for number, which, ranged in self._windows.by_range(given):
            revisions, added, removed = self._windows.revise(ranged, new, number)
            at = which[revisions.window]
            whole = partial(self._windows.whole, ranged, new, number)
            found.append(
                PerTickRevisions(
                    number, at, windows.take(at), revisions.clock, revisions.first, added, removed, versions, whole
                )
            )
        return found
