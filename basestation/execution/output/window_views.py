"""Views: a SELECT over windows in two: the windows, which other queries may ask for too, and what this one shows of them.

A predicate belongs to what is shown, and so do the columns and the aggregates: who asks for the same windows under other
conditions, or for other columns of them, asks for the same windows.
"""

from dataclasses import dataclass, replace

from acquisition.extent import LatePolicy
from basestation.algebra.expression import Column, Expression
from basestation.algebra.expression_signature import signature
from basestation.algebra.expressions import Aggregate, Attr, columns_of, conjunction, substitute
from basestation.algebra.node import PlanNode, walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.table import Once
from basestation.algebra.window import LoopWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect


@dataclass(frozen=True, slots=True)
class ViewSplit:
    """`windows` is what others may ask for, `steps` the selections and projections above it, the lowest first, and
    `aggregates` those that are asked for of its slices. What is below `windows` is `open` where it is not known yet which of
    its tuples somebody wants."""

    windows: PlanNode
    columns: tuple[Column, ...]  # that are shown
    steps: tuple[PlanNode, ...] = ()
    aggregates: tuple[tuple[Column, Aggregate], ...] = ()
    open: bool = False


def split_view(root):
    """The Split of a SELECT."""
    # These are answered once, or bind what is shown.
    if any(isinstance(each, Once | LoopWindow) for each in walk(root)):
        return ViewSplit(root, root.columns)
    steps, node = [], root
    while isinstance(node, _DONE):
        steps.append(node)
        node = node.child
    if isinstance(node, WindowCrossProduct) and steps and isinstance(steps[-1], WindowSelect):
        node = steps.pop()  # which combinations there are
    steps.reverse()
    match node:
        case SliceAggregation(aggregates=aggregates, child=child) if not isinstance(child, StreamMerged):
            return ViewSplit(replace(node, aggregates=()), root.columns, tuple(steps), aggregates)
        case TimeWindow(child=child):
            below, stream = _above_stream(child, node)
            if below is not None:
                return ViewSplit(replace(node, child=stream), root.columns, (*below, *steps), open=True)
        case WindowJoin() | WindowCrossProduct() | WindowSelect():
            node, terms = _above_join(node)
            steps = [WindowSelect(conjunction(terms), node), *steps] if terms else steps
        case RowWindow():
            pass
        case _:
            return ViewSplit(root, root.columns)
    return ViewSplit(node, root.columns, tuple(steps))


_DONE = WindowSelect | WindowProject | WindowAggregation
"""What is done with windows row by row, or group by group."""


def _above_join(node):
    """(a join over windows of rows, what is asked of single rows in them); those are asked when the rows are there."""
    product = node.child if isinstance(node, WindowSelect) else node
    inputs, terms = [], []
    for each in product.inputs:
        chosen = isinstance(each, WindowSelect) and isinstance(each.child, RowWindow)
        inputs.append(each.child if chosen else each)
        terms += [each.predicate] if chosen else []
    product = product.with_children(inputs)
    return replace(node, child=product) if isinstance(node, WindowSelect) else product, terms


def _above_stream(node, window):
    """(the selection and projection below a window as they would be above it, the extent's stream); None where it matters.

    What is computed is computed once for each tuple, and not in each window. Tuples have no tags in a window, and those of
    a stream that is appended to are in windows from the tick on in which they pass (3.6).
    """
    steps = []
    if isinstance(node, StreamProject) and all(isinstance(e, Attr) for e in node.expressions):
        steps.append(WindowProject(node.outputs, window))
        node = node.child
    if isinstance(node, StreamSelect):
        steps.append(WindowSelect(node.predicate, window))
        node = node.child
    if not isinstance(node, StreamAcquire | StreamReceive) or node.extent.late is LatePolicy.APPEND:
        return None, None
    attributes = set(node.attributes)
    if any(not columns_of(e) <= attributes for step in steps for e in step.expressions):
        return None, None
    return steps[::-1], node


@dataclass(frozen=True, slots=True)
class WindowView:
    """What is shown of windows: the tuples for which `predicate` is true, after some `steps`, of which these are the
    `columns`. All is told by the columns that the queries share; views of one shape and with one predicate are one."""

    shape: tuple  # all but the predicate, as a value that can be compared
    aggregates: tuple[tuple[Column, Aggregate], ...]
    predicate: Expression | None
    steps: tuple[PlanNode, ...]
    columns: tuple[Column, ...]

    @property
    def signature(self):
        return self.shape, self.predicate and signature(self.predicate)

    @property
    def read(self):
        """The columns of windows that are looked at, behind the predicate."""
        return columns_read(self.steps, self.columns)

    @property
    def ordered(self):
        """Whether the order of rows counts: not to aggregates without groups (5.5)."""
        return next((step.grouped for step in self.steps if isinstance(step, WindowAggregation)), True)

    @property
    def asked(self):
        """The columns of windows that are looked at."""
        return self.read if self.predicate is None else self.read | {c.id for c in columns_of(self.predicate)}

    @property
    def plain(self):
        """The columns of windows that are shown as they are; None where something is done with them."""
        if not self.steps:
            return [column.id for column in self.columns]
        [step] = self.steps if len(self.steps) == 1 else [None]
        if not isinstance(step, WindowProject) or not all(isinstance(e, Attr) for e in step.expressions):
            return None
        return [e.column.id for e in step.expressions]


def columns_read(steps, columns):
    """The ids of the columns that steps read of what they are done with, where these columns are shown at the end."""
    named = set()
    for step in steps:
        named |= {c.id for e in step.expressions for c in columns_of(e)}
        if not isinstance(step, WindowSelect):
            return named
    return named | {column.id for column in columns}


def make_view(split, taken):
    """The View of a Split, of which the windows were `taken` among those of other queries."""
    columns = dict(taken.columns)
    asked = tuple(taken.aggregate(column, aggregate) for column, aggregate in split.aggregates)
    columns |= {old: new for (old, _), (new, _) in zip(split.aggregates, asked, strict=True)}
    steps, told = [], []
    for step in split.steps:
        values = {old: Attr(new) for old, new in columns.items()}
        if isinstance(step, WindowSelect):
            predicate = substitute(step.predicate, values)
            steps.append(replace(step, predicate=predicate, child=taken.root))
            told.append(signature(predicate))
            continue
        own = [replace(column, id=-1 - at) for at, column in enumerate(step.columns)]
        expressions = [_over(e, values) for e in step.expressions]
        outputs = tuple(zip(own, expressions, strict=True))
        told.append(tuple((signature(e), column.type, column.scale) for column, e in outputs))
        columns = dict(zip(step.columns, own, strict=True))
        if isinstance(step, WindowProject):
            steps.append(replace(step, outputs=outputs, child=taken.root))
            continue
        groups, aggregates = outputs[: len(step.groups)], outputs[len(step.groups) :]
        steps.append(replace(step, groups=groups, aggregates=aggregates, child=taken.root))
        told.append(("groups", len(groups), step.grouped))
    shown = tuple(columns[column] for column in split.columns)
    first = steps[0] if steps and isinstance(steps[0], WindowSelect) else None
    predicate = None if first is None else first.predicate
    own = slice(first is not None, None)
    return WindowView((*told[own], tuple(c.id for c in shown)), asked, predicate, tuple(steps[own]), shown)


def _over(expression, values):
    """An expression over other columns; an aggregate stays one."""
    if isinstance(expression, Aggregate):
        return expression.with_parts(tuple(substitute(part, values) for part in expression.parts))
    return substitute(expression, values)
