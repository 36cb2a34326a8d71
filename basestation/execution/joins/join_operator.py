"""Join operator: a WindowJoin or WindowCrossProduct for many windows at once, by a plan over state modules.

Tuples of one input, or of a materialized node, that are in the windows probe the modules of the others in the plan's order,
always with the ranges of the windows. The order of rows is restored at the end: the first input slowest, each in the order of
its stream (6.4). So plans can be exchanged between two steps: what they materialize is built from what the inputs hold.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expressions import Attr, columns_of, conjuncts, substitute
from basestation.algebra.vector import Vector, constant
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect
from basestation.execution import thresholds
from basestation.execution.columns.integer_arrays import distinct, stable_argsort
from basestation.execution.columns.window_batch import RepeatedWindows
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.description import OperatorDescription
from basestation.execution.interfaces import Claims, View
from basestation.execution.joins.join_inputs import JoinInput
from basestation.execution.joins.join_plan import InvalidJoinPlanError, JoinPlan, Place, make_default_plan
from basestation.execution.joins.joined_rows import JoinedRows, concatenate_rows, rows_per_window
from basestation.execution.joins.materialized_node import MaterializedNode
from basestation.execution.joins.probe_span import make_probe_span
from basestation.execution.joins.state_module import KeyPart
from basestation.execution.joins.tick_ranges import TickRanges
from basestation.execution.joins.tuple_store import NEVER, TupleStore
from basestation.execution.joins.window_bounds import ProbeBounds, ValueBounds, WindowBounds, index_part
from basestation.execution.relational.window_ranges import WindowRanges

JoinNode = WindowJoin | WindowCrossProduct | WindowSelect
"""A join, a product, or a selection over a product."""
_ORDER = None
"""Stands among the columns in use for the order of rows."""


@dataclass(frozen=True, slots=True)
class JoinKey:
    """An equality between two inputs, with the side of each over held columns."""

    sides: dict[int, Expression]


class JoinOperator:
    """Computes the rows of a JoinNode over inputs in the order of FROM."""

    def __init__(self, node: JoinNode, inputs: Sequence[JoinInput], columns: Iterable[int], ordered: bool) -> None:
        """`columns` are the ids of the columns that are read; `ordered` says whether the order of rows counts."""
        product = node.child if isinstance(node, WindowSelect) else node
        if not isinstance(product, WindowJoin | WindowCrossProduct):
            raise TypeError(f"expected a join or a product, found {type(product).__name__}")
        self.node, self.inputs = node, inputs
        self.probes = 0
        """The number of rows that have probed."""
        self.input_of = {c.id: i for i, child in enumerate(product.inputs) for c in child.columns}
        """By the id of a column, the input that has it."""
        self._used: Counter[int | None] = Counter(columns)  # by how many readers a column, or _ORDER, is used
        self._used[_ORDER] += ordered
        keys = product.keys if isinstance(product, WindowJoin) else ()
        self._keys = [JoinKey({self._input_with(side): self._as_held(side) for side in key}) for key in keys]
        residual = node.predicate if isinstance(node, WindowSelect) else getattr(product, "residual", None)
        terms = () if residual is None else conjuncts(residual)
        self._terms = [(frozenset(self.input_of[c.id] for c in columns_of(term)), term) for term in terms]
        self.change_join_plan(make_default_plan(len(inputs), [tuple(key.sides) for key in self._keys]))

    def change_join_plan(self, plan: JoinPlan) -> None:
        """Continue with another plan. Raises InvalidJoinPlanError if it is none for this join."""
        if plan.inputs != len(self.inputs):
            raise InvalidJoinPlanError(f"expected a plan of {len(self.inputs)} inputs, found one of {plan.inputs}")
        transient = [i for node in plan.kept for i in node if not self.inputs[i].is_materializable]
        if transient:
            raise InvalidJoinPlanError(f"input {transient[0]} has no lasting state, so no node with it can be kept")
        self.plan = plan
        self._nodes = {node: MaterializedNode(node, self) for node in plan.kept}

    def show(self, view: View) -> Claims:
        """Provide what a view of the rows reads, until it is released."""
        used = [*view.column_ids, *([_ORDER] if view.ordered else ())]
        self._used.update(used)
        claims: Claims = [(self, used)]
        for each in self.inputs:
            claims += each.claim(view.predicate)
        return claims

    def release(self, what: Any) -> None:
        """End one use of columns."""
        self._used -= Counter(what)

    @property
    def state(self) -> dict[Place, int]:
        """{place: the number of tuples held}, of inputs and of materialized nodes."""
        inputs: dict[Place, int] = {(i,): len(each.store) for i, each in enumerate(self.inputs)}
        return inputs | {node: kept.count for node, kept in self._nodes.items()}

    def describe(self) -> OperatorDescription:
        """The join, above its inputs, for EXPLAIN."""
        parts = tuple(each.source.describe() for each in self.inputs)
        how = f"index probes {self.plan}" if self._keys else "all combinations in a window"
        return OperatorDescription("join" if self._keys else "product", how, None, parts)

    def tidy(self) -> None:
        """Drop what no later window can reach."""
        for each in self.inputs:
            each.tidy()

    def _input_with(self, expression: Expression) -> int:
        return next(self.input_of[c.id] for c in columns_of(expression))

    def _as_held(self, expression: Expression) -> Expression:
        """An expression over one input, over the columns as they are held."""
        ids = self.inputs[self._input_with(expression)].ids
        return substitute(expression, {c: Attr(_with_id(c, ids[c.id])) for c in columns_of(expression)})

    # --- windows -----------------------------------------------------------------------------------------------------

    def prepare(self, windows: Sequence[RepeatedWindows]) -> None:
        """Make sure that the tuples of windows, of each input, are held."""
        for each, of in zip(self.inputs, windows, strict=True):
            each.prepare(of.windows)

    def reaches(self, windows: Sequence[RepeatedWindows]) -> list[TickRanges]:
        """The ticks in the windows of each input."""
        return [_reach(each, of) for each, of in zip(self.inputs, windows, strict=True)]

    def frame(self, windows: Sequence[RepeatedWindows]) -> WindowContents:
        """The rows of combinations of windows; `windows` has for each input the window of each combination."""
        count = len(windows[0])
        if not count:
            return WindowContents(0, np.empty(0, np.int64), self._no_columns())
        self.prepare(windows)
        return self.to_contents(self.all_rows(self.reaches(windows)), count)

    def stretched(self, windows: Sequence[RepeatedWindows]) -> WindowRanges:
        """The same rows in no particular order, each once for consecutive combinations that contain it."""
        count, none = len(windows[0]), np.empty(0, np.int64)
        if not count:
            return WindowRanges(0, none, none, self._no_columns())
        self.prepare(windows)
        rows = self._join(self.reaches(windows))
        return WindowRanges(count, rows.first, rows.last, self._columns(rows))

    def _no_columns(self) -> dict[int, Vector]:
        return {id: v for each in self.inputs for id, v in each.none.columns.items()}

    def all_rows(self, reaches: Sequence[TickRanges]) -> JoinedRows:
        """All rows of combinations, each row for one combination."""
        return self._join(reaches).split_windows()

    def _join(self, reaches: Sequence[TickRanges]) -> JoinedRows:
        """All rows of combinations. Where consecutive windows overlap, a row in several of them is joined once."""
        lead = self._choose_lead(reaches)
        if _average_overlap(reaches[lead]) < thresholds.SHARED_WINDOWS:
            return self._join_from(lead, rows_per_window(np.arange(len(reaches[0])), {}), reaches)
        found = []
        for begin, end in _rising_runs(reaches):
            run = [reach.take(slice(begin, end)) for reach in reaches]
            rows = self._join_from(lead, JoinedRows(constant(0, 1), constant(end - begin - 1, 1), {}), run)
            found.append(rows.shift_windows(begin))
        return concatenate_rows(found)

    def _join_from(self, lead: int, rows: JoinedRows, reaches: Sequence[TickRanges]) -> JoinedRows:
        """All rows, starting from one input, or from the materialized node with it."""
        place, bounds = self.plan.widest(lead), WindowBounds(self.inputs, reaches)
        return self.probe_all(self.probe(rows, place, bounds), self.plan.probes_outside(lead, place), bounds)

    def _choose_lead(self, reaches: Sequence[TickRanges]) -> int:
        """The input from which rows are joined.

        An input that is held for this evaluation only comes first, so that no index of it has to be built. Among equals it is
        the first input, whose order is that of rows, unless another one has a fifth less tuples.
        """
        able = [i for i, each in enumerate(self.inputs) if each.can_lead] or list(range(len(self.inputs)))
        able = [i for i in able if not self.inputs[i].is_materializable] or able
        if len(able) == 1:
            return able[0]
        return min(able, key=lambda i: (4 if i == 0 else 5) * _count_tuples(self.inputs[i], reaches[i]))

    # --- differences of windows --------------------------------------------------------------------------------------

    def overlapping(self, reaches: Sequence[TickRanges], others: Sequence[TickRanges]) -> BoolArray:
        """A mask of the combinations in which every input has a tuple in both windows: only there a row may have stayed."""
        found = np.ones(len(reaches[0]), bool)
        for each, a, b in zip(self.inputs, reaches, others, strict=True):
            stayed = a.intersect(b)
            found &= each.store.module(()).count(make_probe_span(stayed.left, stayed.right)) > 0
        return found

    def shared_part(self, windows: Sequence[RepeatedWindows], first: IntArray, second: IntArray) -> float:
        """About which part of the rows of combinations first[i] is in second[i], too: estimated from a sample."""
        sample = slice(None, None, 1 + len(first) // thresholds.SAMPLED_WINDOWS)
        first, second, part = first[sample], second[sample], 1.0
        for each, of in zip(self.inputs, windows, strict=True):
            each.prepare(of.windows)
            reach = _reach(each, of)
            own = reach.take(first)
            stayed = own.intersect(reach.take(second))
            module = each.store.module(())
            whole = module.count(make_probe_span(own.left, own.right)).sum()
            part *= float(module.count(make_probe_span(stayed.left, stayed.right)).sum()) / max(1, int(whole))
            if not part:
                break
        return part

    def rows_gained(self, reaches: Sequence[TickRanges], others: Sequence[TickRanges]) -> JoinedRows:
        """The rows of combinations with a tuple that is not in the combination of `others`, each row once.

        A row is counted with the first input whose tuple came: those of inputs before it stayed, those after it are any.
        """
        stayed = [a.intersect(b) for a, b in zip(reaches, others, strict=True)]
        parts = []
        for i, each in enumerate(self.inputs):
            rows = self._filter(self._tuples_gained(each, i, reaches[i], others[i]), set())
            if len(rows):
                bounds = WindowBounds(self.inputs, [*stayed[:i], *reaches[i:]])
                parts.append(self.probe_all(rows, self.plan.orders[i], bounds))
        none = np.empty(0, np.int64)
        return concatenate_rows(parts) if parts else rows_per_window(none, dict.fromkeys(range(len(self.inputs)), none))

    def rows_with_values(
        self,
        i: int,
        values: Mapping[int, Mapping[int, Vector]],
        window: IntArray,
        reaches: Sequence[TickRanges],
    ) -> JoinedRows:
        """The rows of windows that have wanted values in columns, joined from input i, which has some of them.

        values[input][held column][j] is wanted in window[j]; no two j want the same.
        """
        bounds = ValueBounds(self.inputs, [reach.take(window) for reach in reaches], values)
        place = self.plan.widest(i)
        rows = self.probe(rows_per_window(np.arange(len(window)), {}), place, bounds)
        rows = self.probe_all(rows, self.plan.probes_outside(i, place), bounds)
        return rows_per_window(window[rows.first], rows.at)

    def _tuples_gained(self, each: JoinInput, i: int, reach: TickRanges, other: TickRanges) -> JoinedRows:
        """The tuples of one input that are in the windows and not in the others."""
        module = each.store.module(())
        if each.store.has_late_appends:
            window, at = module.probe([], make_probe_span(reach.left, reach.right))
            gained = each.inside(reach, window, at) & ~each.inside(other, window, at)
            return rows_per_window(window[gained], {i: at[gained]})
        empty = other.left > other.right
        pieces = [
            (reach.left, np.where(empty, reach.right, np.minimum(reach.right, other.left - 1))),
            (np.where(empty, reach.right + 1, np.maximum(reach.left, other.right + 1)), reach.right),
        ]
        windows, positions = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for left, right in pieces:
            nonempty = np.flatnonzero(left <= right)
            if len(nonempty):
                which, at = module.probe([], make_probe_span(left[nonempty], right[nonempty]))
                windows.append(nonempty[which])
                positions.append(at)
        return rows_per_window(np.concatenate(windows), {i: np.concatenate(positions)})

    # --- probing -----------------------------------------------------------------------------------------------------

    def start_rows(self, i: int, positions: IntArray) -> JoinedRows:
        """Tuples of one input as rows, of no window in particular."""
        return self._filter(rows_per_window(np.zeros(len(positions), np.int64), {i: positions}), set())

    def probe_all(self, rows: JoinedRows, order: Sequence[Place], bounds: ProbeBounds) -> JoinedRows:
        """Rows after they have probed places, one after another."""
        for number, place in enumerate(order):
            portions = self._split(rows, place, bounds)
            if len(portions) > 1:
                return concatenate_rows([self.probe_all(part, order[number:], bounds) for part in portions])
            rows = self.probe(rows, place, bounds)
        return rows

    def _split(self, rows: JoinedRows, place: Place, bounds: ProbeBounds) -> list[JoinedRows]:
        """Rows in portions, where a residual term but no key selects: not all combinations are made at once."""
        if len(rows) < 2 or not self._terms or any(self._ends(key, rows.at, place) for key in self._keys):
            return [rows]
        if bounds.wanted(rows, place):
            return [rows]
        combinations = int(self.source(place).module(()).count(bounds.range(rows, place[0])).sum())
        step = max(1, len(rows) * thresholds.JOIN_COMBINATIONS // max(1, combinations))
        return [rows.take(slice(at, at + step)) for at in range(0, len(rows), step)]

    def probe(self, rows: JoinedRows, place: Place, bounds: ProbeBounds) -> JoinedRows:
        """Rows with the tuples that agree with them at a place: an input or a materialized node."""
        source = self.source(place)
        self.probes += len(rows)
        keys = [ends for key in self._keys if (ends := self._ends(key, rows.at, place)) is not None]
        wanted = bounds.wanted(rows, place)
        values = [*(self._evaluate(rows, i, mine) for i, mine, _ in keys), *(vector for _, vector in wanted)]
        module = source.module((*(theirs for _, _, theirs in keys), *(theirs for theirs, _ in wanted)))
        found, positions = module.probe(values, bounds.range(rows, place[0]))
        which: IntArray | slice = found
        if rows.is_single and not rows.at:  # the rows are the windows, in order
            rows, which = rows_per_window(found, {}), slice(None)
        elif len(found) == len(rows) and (found[1:] > found[:-1]).all():  # each row has one match
            which = slice(None)
        return self._filter(bounds.extend(rows, which, source.by_input(place, positions)), set(rows.at))

    def source(self, place: Place) -> TupleStore | MaterializedNode:
        """The input or materialized node at a place."""
        if len(place) == 1:
            return self.inputs[place[0]].store
        node = self._nodes[place]
        node.refresh()
        return node

    def _ends(
        self, key: JoinKey, bound: Mapping[int, IntArray], place: Place
    ) -> tuple[int, Expression, KeyPart] | None:
        """(a bound input, its side of a key, the side at a place as it is indexed there); None if it is no key there."""
        (a, left), (b, right) = key.sides.items()
        if a in bound and b in place:
            return a, left, index_part(b, right, place)
        if b in bound and a in place:
            return b, right, index_part(a, left, place)
        return None

    def _evaluate(self, rows: JoinedRows, i: int, expression: Expression) -> Vector:
        """An expression over the held columns of one input, for rows."""
        return self.inputs[i].store.vectors([expression], rows.at[i])[0]

    def _filter(self, rows: JoinedRows, before: set[int]) -> JoinedRows:
        """Rows for which all residual terms hold that can be evaluated now and could not with the inputs `before`."""
        bound = set(rows.at)
        for needed, term in self._terms:
            if needed <= bound and (not before or not needed <= before) and len(rows):
                columns = {c.id: self._column(rows, c.id) for c in columns_of(term)}
                rows = rows.take(Evaluation(columns, len(rows)).of(term).is_true)
        return rows

    def _column(self, rows: JoinedRows, id: int) -> Vector:
        i = self.input_of[id]
        return self.inputs[i].column(id, rows.at[i])

    # --- contents ----------------------------------------------------------------------------------------------------

    def to_contents(self, rows: JoinedRows, windows: int) -> WindowContents:
        """Rows with the columns in use, in order if that counts."""
        rows = self._sort(rows) if self._used[_ORDER] else rows
        return WindowContents(windows, rows.first, self._columns(rows))

    def _columns(self, rows: JoinedRows) -> dict[int, Vector]:
        return {id: self._column(rows, id) for id in self.input_of if self._used[id]}

    def _sort(self, rows: JoinedRows) -> JoinedRows:
        """Rows by window, then by the tuples of the first input, of the second, …"""
        if len(rows) < 2:
            return rows
        rank = self.inputs[0].rank(rows.at[0])
        later = rank[1:] > rank[:-1]
        if not later.all():
            later |= (rank[1:] == rank[:-1]) & (rows.first[1:] > rows.first[:-1])
        if not later.all():
            ranks = [rank, *(each.rank(rows.at[i]) for i, each in enumerate(self.inputs) if i)]
            code, room = np.zeros(len(rows), np.int64), 1
            for rank in ranks:
                least = int(rank.min())
                span = int(rank.max()) - least + 1
                room *= span
                if room >= NEVER:
                    return rows.take(np.lexsort((*ranks[::-1], rows.first)))
                code = code * span + (rank - least)
            rises = code[1:] >= code[:-1]
            if not rises.all():
                if _is_in_order(rows.first, rises):
                    return rows
                rows = rows.take(np.argsort(code))  # equal codes are in different windows
        in_order = (rows.first[1:] >= rows.first[:-1]).all()
        return rows if in_order else rows.take(stable_argsort(rows.first))


def _is_in_order(window: IntArray, rises: BoolArray) -> bool:
    """Whether rows are sorted by window, and rise within each window."""
    return bool((window[1:] >= window[:-1]).all() and (rises | (window[1:] > window[:-1])).all())


def _reach(each: JoinInput, of: RepeatedWindows) -> TickRanges:
    """The ticks in the windows of one input, for all combinations."""
    reach = each.reach(of.windows)
    return reach if of.at is None else replace(reach, at=of.at, first=int(of.at[0]))


def _with_id(column: Column, id: int) -> Column:
    return column if column.id == id else type(column)(id, column.type, column.name, None, column.scale)


def _count_tuples(each: JoinInput, reach: TickRanges) -> int:
    """The number of tuples, removed ones too, from the least to the greatest tick of windows."""
    nonempty = reach.left <= reach.right
    if not nonempty.any():
        return 0
    low, high = reach.left[nonempty].min(keepdims=True), reach.right[nonempty].max(keepdims=True)
    return int(each.store.module(()).count(make_probe_span(low, high))[0])


def _average_overlap(reach: TickRanges) -> float:
    """In how many windows a tick is, on average: estimated from a sample of windows."""
    step = 1 + len(reach) // thresholds.SAMPLED_WINDOWS
    left, right = reach.left[::step], reach.right[::step]
    sizes = np.maximum(right - left + 1, 0).astype(np.float64)
    nonempty = sizes > 0
    if not nonempty.any():
        return 0.0
    return step * float(sizes.sum()) / (int(right[nonempty].max()) - int(left[nonempty].min()) + 1)


def _rising_runs(reaches: Sequence[TickRanges]) -> Iterator[tuple[int, int]]:
    """(begin, end) of runs of combinations in which the windows of all inputs begin and end in order."""
    falls = distinct(np.concatenate([reach.falls for reach in reaches]))
    return pairwise([0, *falls.tolist(), len(reaches[0])])
