"""Showing: what many queries show of windows that they ask for together: each the rows under its predicate, and what
selections and projections make of these. Queries that do the same with other rows are one shape: it is done once for all.
"""

import numpy as np

from basestation.algebra.dictionary_vector import decode
from basestation.algebra.expressions import Attr
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_project import WindowProject
from basestation.execution.columns.dense_id_map import DenseIdMap
from basestation.execution.counters import OperatorCounters
from basestation.execution.graph import MEMBER
from basestation.execution.relational.window_delta import apply_steps
from basestation.execution.relational.window_ranges import aggregate_ranges, can_aggregate_ranges
from basestation.updates.update import Rows


class ViewMember:
    """One query among those that ask for the same windows, or several equal ones. It takes no steps."""

    kind = MEMBER

    def __init__(self, output, shape, number, asked):
        """`number` is that of its predicate among the Wants; `asked` is what is there for it: [(by whom, what)]."""
        self.output, self.shape, self.number, self.level = output, shape, number, output.level
        self.asked = asked
        self.counts, self.queries = OperatorCounters(), []
        self._revision = DenseIdMap(np.int64)  # by number of the window, of those that were revised

    def enter(self, query):
        """A query comes."""
        self.queries.append(query)

    def leave(self, query):
        """A query goes."""
        self.output.leave(self, query)

    def revised(self, windows, again=1):
        """The revisions that are told of windows now, `again` times since the last one each."""
        revision = self._revision[windows] + again
        self._revision[windows] = revision
        return revision

    def answered(self, windows):
        """What is told of them next is the first answer."""
        self._revision[windows] = -1

    def forget(self, before):
        """No window before this one is told of again."""
        self._revision.drop_before(before)


class OutputShape:
    """What is done alike to the rows that each of many predicates wants."""

    def __init__(self, view, over_join):
        """`stretched`: it is told from stretches of windows that join, and do nothing else."""
        self.key = view.shape
        self._steps, self._read, self._plain = view.steps, view.read, view.plain
        self._ids = [column.id for column in view.columns]
        self._same = _same(view)
        self.stretched = (
            over_join
            and bool(self._steps)
            and isinstance(self._steps[0], WindowAggregation)
            and can_aggregate_ranges(self._steps[0])
        )
        self.members = {}  # Shown by Shown: who is of this shape

    def tells_apart(self, frame):
        """Whether rows that differ before what is done with them differ afterwards, too: all of their columns are shown."""
        return self._same == frame.columns.keys()

    def of(self, content):
        """What is shown of windows, as a Frame."""
        if self.stretched:
            return apply_steps(aggregate_ranges(content, self._steps[0]), self._steps[1:])
        if self._plain is None:
            return apply_steps(content, self._steps)
        return content.with_columns(
            {id: content.columns[read] for id, read in zip(self._ids, self._plain, strict=True)}
        )

    def of_each(self, content, rows):
        """The same of several parts, each of so many `rows` or all of them: the windows of one part, those of the next."""
        if len(rows) == 1 and rows[0] is None:
            return self.of(content)
        return self.of(content.take_parts([np.arange(len(content)) if of is None else of for of in rows], self._read))

    def rows(self, shown):
        """The Rows of a Frame that is shown."""
        return Rows(tuple(decode(shown.columns[id]) for id in self._ids), len(shown))


def _same(view):
    """The ids of the columns of windows that a View shows as they are."""
    same = None
    for step in view.steps:
        if isinstance(step, WindowAggregation):
            same = {}
        if isinstance(step, WindowProject):
            plain = {c.id: e.column.id for c, e in step.outputs if isinstance(e, Attr)}
            same = plain if same is None else {to: same[of] for to, of in plain.items() if of in same}
    ids = [column.id for column in view.columns]
    return set(ids) if same is None else {same[id] for id in ids if id in same}
