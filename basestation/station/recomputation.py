"""Recomputation: a question about what late arrivals changed in an answer, and the windows that they may have changed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from acquisition.extent import ExtentKind, LatePolicy
from acquisition.sources.time_bounds import Time, tick_of
from acquisition.ticks import rfc3339_of
from basestation.algebra import expressions as ex
from basestation.algebra.converters import Converter
from basestation.algebra.node import walk
from basestation.algebra.table import Scan
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.history.answer import find_extents
from basestation.history.compiler import needs_order
from basestation.history.late_arrivals import LateArrivals, find_late_arrivals, list_runs
from basestation.planner.plan import Plan
from basestation.station.history_question import HistoryQuestion, HistoryQuestionError


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A question, narrowed to the windows that may be others now. They go up to `last`: the tick `since` less the wait of the extents.

    `late` is by extent.
    """

    question: HistoryQuestion
    since: int
    last: int
    late: Mapping[str, LateArrivals]

    def describe(self) -> list[str]:
        """By extent, how many rows came late, of which days, and how many beyond the horizon."""
        since, found = self._time_of(self.since), []
        for name, late in self.late.items():
            if late.rows:
                found.append(f"{_count(late.rows)} of `{name}` came late, after {since}, of {list_runs(late.days)}")
            if late.beyond:
                found.append(
                    f"{_count(late.beyond)} came after {since}, beyond the horizon of `{name}`: windows lack them, `{name}.HISTORY` has them"
                )
        return found

    def describe_differences(self, rows: int) -> str:
        """How many rows differ, and of which windows."""
        return f"{_count(rows)} of windows up to {self._time_of(self.last)} differ"

    def _time_of(self, tick: int) -> str:
        return rfc3339_of(tick, self.question.plan.catalog.tick_ms)

    @property
    def is_empty(self) -> bool:
        """Whether nothing can have changed."""
        return self.question.span.until < self.question.span.start or not any(each.rows for each in self.late.values())


def check_has_windows(plan: Plan) -> None:
    """HistoryQuestionError for a query that has no earlier answer."""
    if plan.is_one_off:
        raise HistoryQuestionError("a one-off query has one answer, and no window that could be another now")


def plan_recomputation(question: HistoryQuestion, since: Time) -> Recomputation:
    """Find the windows that late arrivals may have changed. HistoryQuestionError for a query or a time that has no earlier answer."""
    plan, span = question.plan, question.span
    check_has_windows(plan)
    try:
        known = tick_of(since, question.ends, plan.catalog.tick_ms, "UTC")
    except ValueError as why:
        raise HistoryQuestionError(str(why)) from why
    streams = [extent for extent in find_extents(plan) if extent.kind is not ExtentKind.STORED]
    until = min(span.until, known - max((extent.wait for extent in streams), default=0))
    if until < span.start:
        raise HistoryQuestionError(f"no window from tick {span.start} on was answered by tick {known}")
    late, reach = {}, _find_reach(plan)
    ticks = (0, until) if reach is None else (span.start + reach[0], min(until, until + reach[1]))
    for extent in streams:
        found = find_late_arrivals(question.root, extent, known, ticks, question.skipped)
        if found is not None and extent.late is not LatePolicy.DROP:
            late[extent.name] = found
    span = replace(span, until=until)
    changing = [each for each in late.values() if each.rows]
    if changing and reach is not None:
        first = min(each.first for each in changing) - reach[1]
        last = max(each.last for each in changing) - reach[0]
        span = replace(span, start=max(span.start, first), until=min(span.until, last))
    return Recomputation(replace(question, span=span), known, until, late)


def _find_reach(plan: Plan) -> tuple[int, int] | None:
    """The first and the last tick that a window may hold, from its own; None where that depends on other windows.

    Rows, landmarks, loops and FOR count from the first window of the range, and a converter compares windows. A window
    of an input with another slide, or a table, is joined until the next one of its input.
    """
    nodes, options = list(walk(plan.root)), plan.options
    windows = [node for node in nodes if isinstance(node, TimeWindow)]
    slides = {node.slide for node in windows} | {node.interval for node in nodes if isinstance(node, Scan)}
    if (
        not windows
        or any(isinstance(node, RowWindow | LandmarkWindow | LoopWindow | Converter) for node in nodes)
        or any(
            isinstance(part, ex.SubqueryExpression) for node in nodes for e in node.expressions for part in ex.walk(e)
        )
        or needs_order(plan.root)
        or options.run_for is not None
        or options.since is not None
        or options.since_ago is not None
    ):
        return None
    joined = max(slides) if len(slides) > 1 else 0
    return min(node.begin for node in windows) - joined, max(node.end for node in windows) + joined


def _count(rows: int) -> str:
    return "1 row" if rows == 1 else f"{rows:,} rows"
