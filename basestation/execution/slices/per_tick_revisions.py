"""Following: how a block tells what tuples amended in a step of many clock ticks changed in its windows, tick by tick.

It can where its windows are one sequence of slices whose stream follows versions, and all that is done with them is done
row by row. Any other block looks at each clock tick in which something is amended by itself.
"""

from dataclasses import dataclass

import numpy as np

from basestation.algebra.expressions import Attr
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.window_combinations import WindowCombinations
from basestation.execution.columns.window_contents import WindowContents, diff_both_ways
from basestation.execution.relational import row_operators
from basestation.execution.slices.slice_windows import SliceWindows


@dataclass(frozen=True, slots=True)
class PerTickRevisions:
    """First answers and revisions of windows in the order in which they are given, as they were in each clock tick.

    A revision in which nothing differs has no rows.
    """

    windows: WindowCombinations  # one that is revised several times stands there as often
    clock: np.ndarray
    first: np.ndarray  # whether it is a first answer
    added: WindowContents
    removed: WindowContents
    versions: TupleVersions


def make_per_tick_reviser(node, inputs, leaves):
    """The Following of a block with this tree; None where it can not."""
    if len(inputs) != 1 or not isinstance(inputs[0], SliceWindows) or not inputs[0].stream.tracks_versions:
        return None
    below = node
    while isinstance(below, WindowSelect | WindowProject):
        below = below.child
    return PerTickReviser(node, inputs[0], leaves[0]) if below is leaves[0] else None


class PerTickReviser:
    def __init__(self, node, windows, leaf):
        self._node, self._windows, self._leaf = node, windows, leaf
        # Where all columns of a group are shown, rows that differ in the slices differ in the answer, and others too.
        self._tells_apart = set(_shown(node, leaf).values()) == {column.id for column in leaf.columns}

    @property
    def now(self):
        """Whether something was amended in this step that has to be told by clock ticks."""
        return self._windows.versions is not None

    def revise(self, windows, given, new):
        """The Followed of a block's windows, in order, of which the last `new` are new; `given` are those of the input."""
        found, *frames = self._windows.amended(given, new)
        added, removed = (self._of(self._node, frame) for frame in frames)
        if not self._tells_apart:
            came, went = diff_both_ways(added, removed)
            added, removed = added.take(came), removed.take(went)
        return PerTickRevisions(
            windows.take(found.window), found.clock, found.first, added, removed, self._windows.versions
        )

    def _of(self, node, frame):
        """What is done with what the slices hold."""
        match node:
            case WindowSelect(predicate=predicate, child=child):
                return row_operators.select(self._of(child, frame), predicate)
            case WindowProject(outputs=outputs, child=child):
                return row_operators.project(self._of(child, frame), outputs)
        return frame


def _shown(node, leaf):
    """{column of a node: the column of the leaf that it repeats}, for those that do."""
    match node:
        case WindowSelect(child=child):
            return _shown(child, leaf)
        case WindowProject(outputs=outputs, child=child):
            below, plain = _shown(child, leaf), [(c.id, e.column.id) for c, e in outputs if isinstance(e, Attr)]
            return {to: below[of] for to, of in plain if of in below}
    return {column.id: column.id for column in leaf.columns}
