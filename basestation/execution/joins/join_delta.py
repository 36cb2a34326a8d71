"""Join delta: the rows that a window over a join has and another has not (semantics 6.1), from tuples that came or went.

Rows are counted where the first of their tuples came. Rows of which all tuples stayed are never joined, unless the order of
what is left depends on them: then rows are looked up that could have the values of what is left.
"""

from collections.abc import Sequence

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.expressions import Attr
from basestation.algebra.node import PlanNode
from basestation.algebra.window_project import WindowProject
from basestation.execution import thresholds
from basestation.execution.columns.window_batch import RepeatedWindows
from basestation.execution.columns.window_contents import WindowContents, factorize, subtract_contents
from basestation.execution.joins.join_operator import JoinOperator
from basestation.execution.joins.joined_rows import JoinedRows
from basestation.execution.joins.tick_ranges import TickRanges
from basestation.execution.relational.window_delta import (
    RowStep,
    apply_steps,
    find_mixed_windows,
    find_row_steps,
    restore_order,
)


class JoinDelta:
    """Differences of windows over a join, below selections and projections."""

    def __init__(self, join: JoinOperator, steps: Sequence[RowStep]) -> None:
        """`steps` are the selections and projections above the join, the lowest first."""
        self._join, self._steps = join, steps
        self._plain = self._trace_columns()

    def overlap(self, windows: Sequence[RepeatedWindows], first: IntArray, second: IntArray) -> bool:
        """Whether combinations at first[i] and second[i] share so many rows that it is worth not joining them.

        `windows` has for each input the windows of all combinations.
        """
        return self._join.shared_part(windows, first, second) > thresholds.DELTA_SHARE

    def except_all(self, windows: Sequence[RepeatedWindows], first: IntArray, second: IntArray) -> WindowContents:
        """The rows that combination first[i] has and second[i] has not, in order."""
        self._join.prepare(windows)
        all_reaches = self._join.reaches(windows)
        reaches, other = [reach.take(first) for reach in all_reaches], [reach.take(second) for reach in all_reaches]
        came = self._finish(self._join.rows_gained(reaches, other), len(first))
        if not len(came):
            return came
        went = self._finish(self._join.rows_gained(other, reaches), len(first))
        left = came.take(subtract_contents(came, went))
        doubtful = self._join.overlapping(reaches, other)
        if doubtful.any():
            doubtful &= find_mixed_windows(left)
        if not doubtful.any():
            return left
        return restore_order(left, doubtful, self._find_equal(left.take(doubtful[left.window]), doubtful, reaches))

    def _finish(self, rows: JoinedRows, windows: int) -> WindowContents:
        return apply_steps(self._join.to_contents(rows, windows), self._steps)

    def _find_equal(self, wanted: WindowContents, doubtful: BoolArray, reaches: Sequence[TickRanges]) -> WindowContents:
        """Rows of the doubtful windows: at least all with values of `wanted`.

        Plain columns of an input tell which of its tuples may have them; a column with nulls tells nothing.
        """
        values = {
            i: {held: wanted.columns[id] for id, held in outputs.items() if wanted.columns[id].validity.all()}
            for i, outputs in self._plain.items()
        }
        lead = max(values, key=lambda i: len(values[i]), default=None)
        if lead is None or not values[lead]:
            rows = self._join.all_rows([reach.only(doubtful) for reach in reaches])
            return self._finish(rows, wanted.windows)
        code, count = factorize([vector for of in values.values() for vector in of.values()], len(wanted))
        _, first = np.unique(wanted.window * count + code, return_index=True)
        values = {i: {held: vector.take(first) for held, vector in of.items()} for i, of in values.items()}
        rows = self._join.rows_with_values(lead, values, wanted.window[first], reaches)
        return self._finish(rows, wanted.windows)

    def _trace_columns(self) -> dict[int, dict[int, int]]:
        """{input: {output column: held column}} of the outputs that are plain columns of an input."""
        plain = {id: id for id in self._join.input_of}
        for node in self._steps:
            if isinstance(node, WindowProject):
                pairs = [(c.id, e.column.id) for c, e in node.outputs if isinstance(e, Attr)]
                plain = {id: plain[below] for id, below in pairs if below in plain}
        found: dict[int, dict[int, int]] = {}
        for id, below in plain.items():
            i = self._join.input_of[below]
            found.setdefault(i, {})[id] = self._join.inputs[i].ids[below]
        return found


def make_join_delta(node: PlanNode, join: JoinOperator) -> JoinDelta | None:
    """The JoinDelta of a block; None where there is more above its join than selections and projections."""
    steps = find_row_steps(node, join.node)
    return None if steps is None else JoinDelta(join, steps)
