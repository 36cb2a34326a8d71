"""Shared windows: what many queries project from windows that they share.

Each query has the rows under its own predicate, and what selections and projections make of them. Queries that differ in the predicate
only have one shape, and their rows are projected together. Queries may begin and end at different ticks: each has the windows between.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from acquisition.arrays import IntArray
from basestation.algebra.dictionary_vector import decode
from basestation.algebra.expressions import Attr
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.columns.window_contents import WindowContents
from basestation.execution.counters import OperatorCounters
from basestation.execution.description import OperatorDescription, describe_step
from basestation.execution.graph import MEMBER
from basestation.execution.interfaces import Claims
from basestation.execution.output.answered_ticks import AnsweredTicks
from basestation.execution.output.window_views import WindowView
from basestation.execution.relational.window_delta import apply_steps
from basestation.execution.relational.window_ranges import WindowRanges, aggregate_ranges, can_aggregate_ranges
from basestation.updates.update import Rows

if TYPE_CHECKING:
    from typing import Protocol

    class SharedOutput(Protocol):
        """The output that members belong to."""

        level: int

        def enter(self, member: "ViewMember", query: int, start: int | None, limit: int | None) -> None:
            """Add a query that begins at tick `start`, None if the windows begin with it, and ends with tick `limit` if it does."""

        def leave(self, member: "ViewMember", query: int) -> None:
            """Remove a query."""


class ViewMember:
    """One query of shared windows, or several that show the same of them. It takes no steps of its own.

    `number` is that of its predicate in the PredicateSet of the output; `claims` are what it uses below; `range` is the number of the
    range of its windows, None where windows have one.
    """

    kind = MEMBER

    def __init__(
        self,
        output: "SharedOutput",
        shape: "OutputShape",
        number: int,
        claims: Claims,
        oldest: int,
        range: int | None = None,
    ) -> None:
        """`oldest` is the least number of a window that may still change."""
        self.output, self.shape, self.number, self.level = output, shape, number, output.level
        self.claims, self.range = claims, range
        self.counts = OperatorCounters()
        self.queries: dict[int, AnsweredTicks] = {}
        """The queries, each with the ticks of its windows."""
        self._revision = DenseIdMap(np.int64)  # the last revision of each window, by number
        self._revision.drop_before(oldest)

    def enter(self, query: int, start: int | None, limit: int | None) -> None:
        """Add a query that begins at tick `start`, None if the windows begin with it, and ends with tick `limit` if it does."""
        self.output.enter(self, query, start, limit)

    def leave(self, query: int) -> None:
        """Remove a query."""
        self.output.leave(self, query)

    def next_revision(self, windows: IntArray, again: IntArray | int = 1) -> IntArray:
        """Return and record the next revision of each window; `again` counts repeated windows from 1 on."""
        revision = self._revision[windows] + again
        self._revision[windows] = revision
        return np.asarray(revision, np.int64)

    def start_revisions(self, windows: IntArray) -> None:
        """Let the next update of these windows be the first answer, with revision 0."""
        self._revision[windows] = -1

    def forget(self, before: int) -> None:
        """Drop the revisions of smaller window numbers."""
        self._revision.drop_before(before)


class OutputShape:
    """All that views with different predicates have in common: steps and columns."""

    def __init__(self, view: WindowView, over_join: bool) -> None:
        """`over_join` says that the windows are those of a plain join."""
        self.key = view.shape
        self._steps, self._read, self._plain = view.steps, view.read, view.plain
        self._ids = [column.id for column in view.columns]
        self._same = _shown_ids(view)
        first = self._steps[0] if self._steps else None
        self._aggregation = first if isinstance(first, WindowAggregation) and can_aggregate_ranges(first) else None
        # Whether contents are taken as WindowRanges: each joined tuple once, with the windows that contain it.
        self.stretched = over_join and self._aggregation is not None
        self.members: dict[ViewMember, None] = {}

    def members_of(self, number: int | None) -> list[ViewMember]:
        """Return the members that have the range with a number; None: all of them."""
        return [member for member in self.members if number is None or member.range == number]

    def describe(self) -> OperatorDescription | None:
        """The steps from the last one down; None without steps."""
        found: OperatorDescription | None = None
        for step in self._steps:
            found = describe_step(step, () if found is None else (found,))
        return found

    def tells_apart(self, frame: WindowContents | WindowRanges) -> bool:
        """Return whether different rows stay different: all of their columns are shown."""
        return self._same == frame.columns.keys()

    def shows(self, ids: set[int]) -> bool:
        """Return whether columns of windows are shown unchanged."""
        return ids <= self._same

    def project(self, content: WindowContents | WindowRanges) -> WindowContents:
        """Return what is shown of windows."""
        if isinstance(content, WindowRanges):
            assert self._aggregation is not None, "only an aggregation reads ranges"
            return apply_steps(aggregate_ranges(content, self._aggregation), self._steps[1:])
        if self._plain is None:
            return apply_steps(content, self._steps)
        return content.with_columns(
            {id: content.columns[read] for id, read in zip(self._ids, self._plain, strict=True)}
        )

    def project_each(self, content: WindowContents | WindowRanges, rows: Sequence[IntArray | None]) -> WindowContents:
        """Return what is shown of several selections of rows, None for all: the windows of each follow those of the one before."""
        if len(rows) == 1 and rows[0] is None:
            return self.project(content)
        parts = [np.arange(len(content)) if selected is None else selected for selected in rows]
        return self.project(content.take_parts(parts, self._read))

    def rows(self, shown: WindowContents) -> Rows:
        """Return contents as Rows."""
        return Rows(tuple(decode(shown.columns[id]) for id in self._ids), len(shown))


def _shown_ids(view: WindowView) -> set[int]:
    """Return the ids of the columns of windows that a view shows unchanged."""
    same: dict[int, int] | None = None
    for step in view.steps:
        if isinstance(step, WindowAggregation):
            same = {}
        if isinstance(step, WindowProject):
            plain = {c.id: e.column.id for c, e in step.outputs if isinstance(e, Attr)}
            same = plain if same is None else {to: same[of] for to, of in plain.items() if of in same}
    ids = [column.id for column in view.columns]
    return set(ids) if same is None else {same[id] for id in ids if id in same}
