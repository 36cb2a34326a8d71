"""PlainWindows: a query whose windows hold the readings themselves, columns chosen and renamed, nothing computed.

The first kind of query that runs. A plan of any other kind is said to be for later, by name.
"""

from dataclasses import dataclass

import numpy as np

from acquisition.batch import Batch, values_of
from acquisition.extent import Extent, Late
from acquisition.instants import grid_at_or_after
from basestation.algebra.expressions import Attr, Column
from basestation.algebra.node import Node
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.window import TimeWindow
from basestation.algebra.window_project import WindowProject
from basestation.planner.plan import Plan
from basestation.revisions.update import Coverage, Update


@dataclass(frozen=True, slots=True)
class Output:
    """One column of the answer: its name, and the attribute that it shows."""

    name: str
    attribute: str
    scale: int | None


@dataclass(frozen=True, slots=True)
class PlainWindows:
    """The windows of one query: at each multiple of `slide`, the readings from w+begin to w+end, every `interval`."""

    extent: Extent
    interval: int
    begin: int
    end: int
    slide: int
    outputs: tuple[Output, ...]

    def windows(self, after: int, last: int) -> range:
        """The ticks of the windows with after < tick <= last."""
        return range(grid_at_or_after(after + 1, self.slide), last + 1, self.slide)

    def windows_holding(self, tick: int) -> range:
        """The ticks of all windows whose range holds a tick."""
        return range(grid_at_or_after(tick - self.end, self.slide), tick - self.begin + 1, self.slide)

    def answer(self, query: int, tick: int, revision: int, readings: Batch, coverage: Coverage) -> Update:
        """The readings as rows of the window at `tick`."""
        columns, valid = {}, {}
        for output in self.outputs:
            columns[output.name] = values_of(readings.columns[output.attribute], output.scale)
            mask = readings.valid.get(output.attribute)
            if mask is not None and not mask.all():
                valid[output.name] = mask
        return Update(query, tick, 1, revision, coverage, columns, readings.weight, valid)

    def sampled(self, readings: Batch) -> Batch:
        """Those of the readings that this query samples (`ACQUIRE EVERY` may be coarser than the extent)."""
        return readings.take(np.flatnonzero(readings.tick % self.interval == 0))

    def due(self, tick: int, first_due: int) -> int:
        """How many readings the window at `tick` should have: every site at every tick sampled."""
        first = grid_at_or_after(max(tick + self.begin, first_due), self.interval)
        ticks = range(first, tick + self.end + 1, self.interval)
        return len(ticks) * len(self.extent.sites)


def plain_windows(plan: Plan) -> PlainWindows | str:
    """The plan as plain windows, or what about it is for later."""
    if plan.once:
        return "one-off queries"
    if plan.kind == "stream":
        return "queries that give a stream"
    for name in ("since", "since_ago", "deliver_within", "lasting", "lifetime"):
        if getattr(plan.asked, name) is not None:
            return f"the clause {_CLAUSES[name]}"
    node, shown = plan.root, {column.id: column for column in plan.root.columns}
    window = None
    while not isinstance(node, StreamAcquire):
        match node:
            case WindowProject() | StreamProject():
                if (through := _through(node, shown)) is None:
                    return "expressions that are more than a column"
                shown = through
            case TimeWindow() if window is None:
                window = node
            case _:
                return f"the operator {node.operator}"
        node = node.child
    if window is None:
        return f"the operator {plan.root.operator}"
    extent = node.extent
    if extent.late is not Late.REVISE:
        return f"`late {extent.late}`"
    if extent.sites is None:
        return "`at sites all`"
    attributes = {column.id: column for column in node.columns}
    outputs = tuple(
        Output(column.name, attributes[shown[column.id].id].name, attributes[shown[column.id].id].scale)
        for column in plan.root.columns
    )
    if len({output.name for output in outputs}) < len(outputs):
        return "results with two columns of one name"
    return PlainWindows(extent, node.interval, window.begin, window.end, window.slide, outputs)


_CLAUSES = {
    "since": "SINCE",
    "since_ago": "SINCE",
    "deliver_within": "DELIVER WITHIN",
    "lasting": "FOR",
    "lifetime": "LIFETIME",
}


def _through(node: Node, shown: dict[int, Column]) -> dict[int, Column] | None:
    """What the columns shown are called below a projection; None where one is computed there."""
    below = {column.id: expression for column, expression in node.outputs}
    found = {shown_id: below[column.id] for shown_id, column in shown.items()}
    if not all(isinstance(expression, Attr) for expression in found.values()):
        return None
    return {shown_id: expression.column for shown_id, expression in found.items()}
