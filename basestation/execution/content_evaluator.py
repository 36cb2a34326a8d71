"""Content evaluator: what the windows of a block contain after everything that its SELECT does inside them."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from basestation.algebra.node import PlanNode
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution.columns.integer_arrays import rank_distinct
from basestation.execution.columns.window_batch import NO_WINDOW, expand_ranges
from basestation.execution.columns.window_combinations import WindowCombinations, merge_with_positions
from basestation.execution.columns.window_contents import WindowContents, diff_windows
from basestation.execution.counters import OperatorCounters
from basestation.execution.description import OperatorDescription, describe_step
from basestation.execution.interfaces import WindowSource
from basestation.execution.joins.join_delta import make_join_delta
from basestation.execution.joins.join_operator import JoinOperator
from basestation.execution.relational import row_operators, table_operators
from basestation.execution.relational.aggregation import aggregate
from basestation.execution.relational.sliding_delta import make_sliding_delta
from basestation.execution.relational.window_ranges import WindowRanges, aggregate_ranges, can_aggregate_ranges
from basestation.execution.slices.tagged_windows import TaggedSliceWindows
from basestation.execution.window_list import WindowList


class ContentEvaluator:
    """Computes the tree of window operators `node`; each of `leaves` stands for the input at its position.

    `join` computes the join in the tree, if there is one. Rows are counted in `counters`.
    """

    def __init__(
        self,
        node: PlanNode,
        inputs: Sequence[WindowSource],
        leaves: tuple[PlanNode, ...],
        join: JoinOperator | None,
        windows: WindowList,
        counters: OperatorCounters,
    ) -> None:
        self.node, self.join = node, join
        self._inputs, self._leaves, self._windows, self._counters = inputs, leaves, windows, counters
        self._sliding_delta = make_sliding_delta(node, leaves, inputs) if join is None else None
        self._join_delta = None if join is None else make_join_delta(node, join)

    @property
    def is_plain_join(self) -> bool:
        """Whether nothing is done with joined rows."""
        return self.join is not None and self.join.node is self.node

    def evaluate(self, windows: WindowCombinations) -> WindowContents:
        """The rows of windows, numbered by position; none for withdrawn windows."""
        contents = self._evaluate(self.node, windows)
        self._counters.rows_out += len(contents)
        return contents.take(~windows.withdrawn[contents.window]) if windows.withdrawn.any() else contents

    def evaluate_changed(
        self, windows: WindowCombinations, source: TaggedSliceWindows, by_group: bool
    ) -> WindowContents:
        """The rows of windows over a source alone, as far as the step may change them."""
        [batch] = self._windows.batches(windows)
        contents = source.changed_content(batch, by_group)
        self._counters.rows_out += len(contents)
        return contents

    def evaluate_ranges(self, windows: WindowCombinations) -> WindowRanges:
        """The joined rows, each once for all consecutive windows that contain it. Only of a plain join."""
        if self.join is None:
            raise TypeError("expected a join, found a block without one")
        ranges = self.join.stretched(self._windows.repeated(windows))
        self._counters.rows_out += len(ranges)
        return ranges

    def except_all(self, windows: WindowCombinations, others: WindowCombinations) -> WindowContents:
        """The rows that windows[i] has and others[i] has not, as bags and in order (6.1, 6.4); a NO_WINDOW has none."""
        both, mine, theirs = merge_with_positions(windows, others)
        if self._join_delta is not None:
            repeated = self._windows.repeated(both)
            if self._join_delta.overlap(repeated, mine, theirs):
                return self._join_delta.except_all(repeated, mine, theirs)
        elif self._sliding_delta is not None:
            [batch] = self._windows.batches(both)
            if self._sliding_delta.overlap(batch, mine, theirs):
                return self._sliding_delta.except_all(batch, mine, theirs)
        return diff_windows(self._evaluate_present(both), mine, theirs)

    def _evaluate_present(self, windows: WindowCombinations) -> WindowContents:
        """The rows of windows, of which some may be NO_WINDOW."""
        if int(windows.number.min()) != NO_WINDOW:
            return self.evaluate(windows)
        place = np.flatnonzero(windows.number != NO_WINDOW)
        contents = self.evaluate(windows.take(place))
        return replace(contents, windows=len(windows), window=place[contents.window])

    def _evaluate(self, node: PlanNode, windows: WindowCombinations) -> WindowContents:
        if self.join is not None and node is self.join.node:
            return self.join.frame(self._windows.repeated(windows))
        for place, leaf in enumerate(self._leaves):
            if leaf is node:
                return self._read_input(place, windows)
        match node:
            case WindowSelect(predicate=predicate, child=WindowCrossProduct(inputs=inputs)):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], (), predicate)
            case WindowSelect(predicate=predicate, child=child):
                return row_operators.select(self._evaluate(child, windows), predicate)
            case WindowProject(outputs=outputs, child=child):
                return row_operators.project(self._evaluate(child, windows), outputs)
            case WindowAggregation(child=child) if (
                self.join is not None and child is self.join.node and can_aggregate_ranges(node)
            ):
                return aggregate_ranges(self.join.stretched(self._windows.repeated(windows)), node)
            case WindowAggregation(child=child):
                return aggregate(self._evaluate(child, windows), node)
            case WindowCrossProduct(inputs=inputs):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], (), None)
            case WindowJoin(inputs=inputs, keys=keys, residual=residual):
                return row_operators.join([self._evaluate(i, windows) for i in inputs], keys, residual)
        if isinstance(node, table_operators.TABLE_NODES):
            return table_operators.evaluate(node, [self._evaluate(child, windows) for child in node.children])
        raise TypeError(f"expected a window operator, found {type(node).__name__}")

    def _read_input(self, place: int, windows: WindowCombinations) -> WindowContents:
        """The contents of the windows of one input. A window that is in several combinations is read once."""
        numbers, source = rank_distinct(windows.parts[:, place])
        found = self._inputs[place].content(self._windows.issued[place].of(numbers)) if len(numbers) else None
        if found is None:
            found = self._inputs[place].empty(len(numbers))
        self._counters.rows_in += len(found)
        if len(numbers) == len(windows) and (source[1:] > source[:-1]).all():
            return found
        bounds = found.bounds()
        counts = (bounds[1:] - bounds[:-1])[source]
        taken = found.take(expand_ranges(bounds[source], counts))
        window = np.repeat(np.arange(len(windows)), counts)
        return WindowContents(len(windows), window, taken.columns, taken.tick, taken.second)

    # --- EXPLAIN -----------------------------------------------------------------------------------------------------

    def describe(self, node: PlanNode) -> OperatorDescription:
        """The tree from a node down to the inputs, as the plan has it: with its subqueries, not with their results."""
        if self.join is not None and node is self.join.node:
            return self.join.describe()
        for place, leaf in enumerate(self._leaves):
            if leaf is node:
                return self._inputs[place].describe()
        parts = tuple(self.describe(child) for child in node.children)
        step = describe_step(node, parts)
        if step is not None:
            return step
        match node:
            case WindowCrossProduct():
                return OperatorDescription("product", "all combinations in a window", None, parts)
            case WindowJoin():
                return OperatorDescription("join", "hash join in each window", None, parts)
        name, how = table_operators.describe(node)
        return OperatorDescription(name, how, None, parts)

    def max_rows(self) -> int | None:
        """The most rows of one window at the declared rates; None where none is declared."""
        return self._max_rows(self.node)

    def _max_rows(self, node: PlanNode) -> int | None:
        for place, leaf in enumerate(self._leaves):
            if leaf is node:
                return self._inputs[place].max_rows
        counts = [self._max_rows(child) for child in node.children]
        if isinstance(node, WindowAggregation) and not node.groups:
            return 1
        product = 1
        for count in counts:
            if count is None:
                return None
            product *= count
        return product
