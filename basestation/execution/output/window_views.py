"""Window views: splits a SELECT over windows into windows, which other queries may share, and what this query shows of them.

Predicates, columns and aggregates belong to what is shown. So queries over the same windows share these, whatever conditions and columns
they have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from acquisition.extent import LatePolicy
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import Aggregate, Attr, columns_of, conjunction, substitute
from basestation.algebra.node import PlanNode, StreamNode, WindowNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation, TickRange, find_loop_ends
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once
from basestation.algebra.window import RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect

RowStep = WindowSelect | WindowProject | WindowAggregation
"""A node that treats windows row by row, or group by group."""


@dataclass(frozen=True, slots=True)
class ViewSplit:
    """A SELECT as shared `windows` and what is done above them.

    `steps` are selections and projections, the lowest first; `aggregates` are those read of the slices. `columns` are shown. With `open`,
    the stream below the windows passes on the tuples that at least one query reads, which may change as queries come and go. `filter`
    says which tuples of the stream below the slices belong to them. The selection below input `filtered_input` of a join is among the
    steps, and that input has the tuples that at least one query reads. `range` is that of the windows, if it is the only one that
    they depend on; in `windows` it is that of one tick.
    """

    windows: PlanNode
    columns: tuple[Column, ...]
    steps: tuple[RowStep, ...] = ()
    aggregates: tuple[tuple[Column, Aggregate], ...] = ()
    open: bool = False
    filter: Expression | None = None
    filtered_input: int | None = None
    range: TickRange | None = None


def split_view(root: PlanNode) -> ViewSplit:
    """Split a SELECT into its windows, which equal queries share, and the steps and aggregates that are its own."""
    # Such windows are answered once, or have variables that what is shown refers to.
    if any(isinstance(node, Once) or find_loop_ends(node) is not None for node in walk(root)):
        return ViewSplit(root, root.columns)
    steps: list[RowStep] = []
    node = root
    while isinstance(node, RowStep):
        steps.append(node)
        node = node.child
    if isinstance(node, WindowCrossProduct) and steps and isinstance(steps[-1], WindowSelect):
        node = steps.pop()  # the selection says which combinations there are
    steps.reverse()
    filtered: int | None = None
    match node:
        case SliceAggregation(aggregates=aggregates, child=child) if not isinstance(child, StreamMerged):
            filter_, stream = _lift_filter(node)
            windows = replace(node, aggregates=(), child=stream)
            range_ = None
            if filter_ is None and node.begin is not None:
                range_, windows = TickRange(node.begin, node.end), replace(windows, begin=0, end=0)
            return ViewSplit(windows, root.columns, tuple(steps), aggregates, filter=filter_, range=range_)
        case TimeWindow(child=child):
            lifted = _lift_above_window(child, node)
            if lifted is not None:
                below, stream = lifted
                return ViewSplit(replace(node, child=stream), root.columns, (*below, *steps), open=True)
        case WindowJoin() | WindowCrossProduct() | WindowSelect():
            node, terms, filtered = _lift_above_join(node)
            steps = [WindowSelect(conjunction(terms), node), *steps] if terms else steps
        case RowWindow():
            pass
        case _:
            return ViewSplit(root, root.columns)
    return ViewSplit(node, root.columns, tuple(steps), filtered_input=filtered)


def _lift_filter(node: SliceAggregation) -> tuple[Expression | None, StreamNode]:
    """Return (the condition on tuples of an extent below slices, the stream below it); None if there is none to lift.

    Final slices of a landmark window are merged, so it has them alone.
    """
    below = node.child
    if node.begin is None or not isinstance(below, StreamSelect):
        return None, below
    return (below.predicate, below.child) if _has_only_attributes(below) else (None, below)


def _has_only_attributes(node: StreamSelect) -> bool:
    """Return whether a selection compares attributes of an extent, whose tuples are in a window whenever they came."""
    extent = node.child
    return (
        isinstance(extent, StreamAcquire | StreamReceive)
        and extent.extent.late is not LatePolicy.APPEND
        and columns_of(node.predicate) <= set(extent.attributes)
    )


def _lift_above_join(
    node: WindowJoin | WindowCrossProduct | WindowSelect,
) -> tuple[WindowNode, list[Expression], int | None]:
    """Return (a join without selections of single row windows, the predicates of these, the input below which one was lifted).

    A selection below a window of time is lifted if it is the only one: then each row of the shared join is one of a query's own join.
    """
    product = node.child if isinstance(node, WindowSelect) else node
    assert isinstance(product, WindowJoin | WindowCrossProduct), "a selection of combinations stands above a product"
    inputs: list[WindowNode] = []
    terms: list[Expression] = []
    for each in product.inputs:
        if isinstance(each, WindowSelect) and isinstance(each.child, RowWindow):
            inputs.append(each.child)
            terms.append(each.predicate)
        else:
            inputs.append(each)
    filtered: int | None = None
    for at, each in enumerate(inputs):
        if not terms and isinstance(each, TimeWindow):
            below = each.child
            if isinstance(below, StreamSelect) and _has_only_attributes(below):
                inputs[at], filtered = replace(each, child=below.child), at
                terms.append(below.predicate)
    lifted = product.with_children(inputs)
    return replace(node, child=lifted) if isinstance(node, WindowSelect) else lifted, terms, filtered


def _lift_above_window(node: StreamNode, window: TimeWindow) -> tuple[list[RowStep], StreamNode] | None:
    """Return (the selection and projection below a window as steps above it, the extent's stream); None if that changes answers.

    Only plain projections are lifted: computed columns are computed once per tuple, not once per window. Tuples have no tags
    in a window. In a `late append` stream they are in windows from the tick on in which they pass (semantics 3.6).
    """
    steps: list[RowStep] = []
    if isinstance(node, StreamProject) and all(isinstance(e, Attr) for e in node.expressions):
        steps.append(WindowProject(node.outputs, window))
        node = node.child
    if isinstance(node, StreamSelect):
        steps.append(WindowSelect(node.predicate, window))
        node = node.child
    if not isinstance(node, StreamAcquire | StreamReceive) or node.extent.late is LatePolicy.APPEND:
        return None
    attributes = set(node.attributes)
    if any(not columns_of(e) <= attributes for step in steps for e in step.expressions):
        return None
    return steps[::-1], node


@dataclass(frozen=True, slots=True)
class WindowView:
    """The rows and columns that a query shows of shared windows: `columns`, after some `steps`, of the rows for which `predicate` is true.

    All parts refer to the columns that the queries share. `shape` is all but the predicates, as a value that can be compared. `filter`
    says of which tuples the aggregates are; None: of all. `range` is that of the windows, where these may have several.
    """

    shape: tuple[object, ...]
    aggregates: tuple[tuple[Column, Aggregate], ...]
    predicate: Expression | None
    steps: tuple[RowStep, ...]
    columns: tuple[Column, ...]
    filter: Expression | None = None
    range: TickRange | None = None

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for two views that show the same."""
        terms = (term and signature(term) for term in (self.predicate, self.filter))
        return self.shape, *terms, self.range

    @property
    def read(self) -> set[int]:
        """The ids of the columns of windows that are read after the predicate."""
        return columns_read(self.steps, self.columns)

    @property
    def ordered(self) -> bool:
        """Whether the order of rows shows; it does not in aggregates without groups (semantics 5.5)."""
        return next((step.grouped for step in self.steps if isinstance(step, WindowAggregation)), True)

    @property
    def column_ids(self) -> set[int]:
        """The ids of all columns of windows that are read."""
        return self.read if self.predicate is None else self.read | {c.id for c in columns_of(self.predicate)}

    @property
    def plain(self) -> list[int] | None:
        """The ids of the columns of windows that are shown, if the view does nothing else; otherwise None."""
        if not self.steps:
            return [column.id for column in self.columns]
        step = self.steps[0] if len(self.steps) == 1 else None
        if not isinstance(step, WindowProject):
            return None
        ids = [e.column.id for e in step.expressions if isinstance(e, Attr)]
        return ids if len(ids) == len(step.expressions) else None


def columns_read(steps: tuple[RowStep, ...], columns: tuple[Column, ...]) -> set[int]:
    """Return the ids of the columns that steps read of the windows below, if `columns` are shown at the end."""
    named: set[int] = set()
    for step in steps:
        named |= {c.id for e in step.expressions for c in columns_of(e)}
        if not isinstance(step, WindowSelect):
            return named
    return named | {column.id for column in columns}


class SharedPlan(Protocol):
    """The windows of a split, with the columns and operators that all queries share."""

    @property
    def root(self) -> PlanNode:
        """The tree of the windows below the view."""

    @property
    def columns(self) -> Mapping[Column, Column]:
        """The shared column of each column of the query."""

    def aggregate(self, column: Column, aggregate: Aggregate) -> tuple[Column, Aggregate]:
        """Return an aggregate over the windows, with its column, as all queries share it."""


def make_view(split: ViewSplit, shared: SharedPlan) -> WindowView:
    """Return the view of a split over its shared windows."""
    columns, root = dict(shared.columns), shared.root
    aggregates = tuple(shared.aggregate(column, aggregate) for column, aggregate in split.aggregates)
    values = {old: Attr(new) for old, new in columns.items()}
    filter_ = None if split.filter is None else substitute(split.filter, values)
    columns |= {old: new for (old, _), (new, _) in zip(split.aggregates, aggregates, strict=True)}
    steps: list[RowStep] = []
    shape: list[object] = []
    for step in split.steps:
        assert isinstance(root, WindowNode), "steps are above windows"
        values = {old: Attr(new) for old, new in columns.items()}
        if isinstance(step, WindowSelect):
            term = substitute(step.predicate, values)
            steps.append(replace(step, predicate=term, child=root))
            shape.append(signature(term))
            continue
        own = [replace(column, id=-1 - at) for at, column in enumerate(step.columns)]
        expressions = [_substitute_parts(e, values) for e in step.expressions]
        outputs = tuple(zip(own, expressions, strict=True))
        shape.append(tuple((signature(e), column.type, column.scale) for column, e in outputs))
        columns = dict(zip(step.columns, own, strict=True))
        if isinstance(step, WindowProject):
            steps.append(replace(step, outputs=outputs, child=root))
            continue
        groups = outputs[: len(step.groups)]
        computed = tuple((column, e) for column, e in outputs[len(step.groups) :] if isinstance(e, Aggregate))
        steps.append(replace(step, groups=groups, aggregates=computed, child=root))
        shape.append(("groups", len(groups), step.grouped))
    shown = tuple(columns[column] for column in split.columns)
    first = steps[0] if steps and isinstance(steps[0], WindowSelect) else None
    predicate = None if first is None else first.predicate
    own_steps = slice(first is not None, None)
    return WindowView(
        (*shape[own_steps], tuple(c.id for c in shown)), aggregates, predicate, tuple(steps[own_steps]), shown, filter_,
        split.range,
    )  # fmt: skip


def _substitute_parts(expression: Expression, values: Mapping[Column, Expression]) -> Expression:
    """Return an expression over other columns; an aggregate stays one."""
    if isinstance(expression, Aggregate):
        return expression.with_parts(tuple(substitute(part, values) for part in expression.parts))
    return substitute(expression, values)
