"""Restored ticks: what a query names of ticks, where the clock of the engine is shortened.

The engine counts ticks without the removed parts of quiet stretches. An expression that names a tick gets the one of the recording.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.expression import Column, Expression
from basestation.algebra.mapping import map_expressions
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_receive import StreamReceive
from basestation.algebra.stream_union import StreamUnion
from basestation.algebra.table import Once, Scan
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.planner.plan import Plan
from basestation.replay.shortened_clock import ShortenedClock


def shorten_plan(plan: Plan, submitted: int, clock: ShortenedClock) -> Plan:
    """Return a query that is submitted at a tick of the recording as the engine runs it, in the ticks of its clock."""
    if not clock.stretches:
        return plan
    options = plan.options
    start = submitted if options.since is None else options.since
    if options.since is not None:
        options = replace(options, since=clock.shorten_one(start))
    if options.run_for is not None:
        options = replace(options, run_for=clock.shorten_one(start + options.run_for) - clock.shorten_one(start))
    return replace(plan, root=_restore_ticks(plan.root, clock.removed_behind()), options=options)


def _restore_ticks(root: PlanNode, removed: Sequence[tuple[int, int]]) -> PlanNode:
    """Return a tree whose expressions see the ticks of the recording; `removed` as of ShortenedClock."""
    ticks = set(_tick_columns(root))
    grouping = [node for node in walk(root) if isinstance(node, WindowAggregation)]
    for node in reversed(grouping):  # those below come first
        ticks |= {column for column, key in node.groups if isinstance(key, ex.Attr) and key.column in ticks}

    def restore(part: Expression) -> Expression:
        if isinstance(part, ex.SubqueryExpression):
            return replace(part, plan=_restore_ticks(part.plan, removed))
        return _restore(part, removed) if isinstance(part, ex.Attr) and part.column in ticks else part

    restored = map_expressions(root, lambda expression: ex.transform(expression, restore))
    return rebuild(restored, _group_by_columns) if grouping else restored


def _group_by_columns(node: PlanNode) -> PlanNode:
    """Return an aggregation that groups by columns again, as it must: their ticks are restored above it."""
    if not isinstance(node, WindowAggregation):
        return node
    groups = tuple((column, key.otherwise if isinstance(key, ex.Case) else key) for column, key in node.groups)
    return replace(node, groups=groups)


def _restore(tick: Expression, removed: Sequence[tuple[int, int]]) -> Expression:
    branches = [
        (ex.Compare(">", tick, _integer(first)), ex.Arithmetic("+", tick, _integer(count)))
        for first, count in reversed(removed)
    ]
    return ex.Case(tuple(branches), tick)


def _integer(value: int) -> Expression:
    return ex.Literal(value, Type.INTEGER)


def _tick_columns(root: PlanNode) -> Iterator[Column]:
    """The columns of a tree that have ticks, where they come from."""
    for node in walk(root):
        if isinstance(node, StreamAcquire | StreamReceive | StreamUnion | Converter):
            yield node.tags[0]
        if isinstance(node, StreamAcquire | Scan | Once):
            time = node.extent.time_attribute
            names = {"tick", "_arrival"} if not isinstance(node, StreamAcquire) and node.history else set()
            names |= set() if time is None else {time.name}
            yield from (column for column in node.columns if column.name in names)
