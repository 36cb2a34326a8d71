"""Showing: what many queries show of windows that they ask for together: each the rows under its predicate, and what
selections and projections make of these. Queries that do the same with other rows are one shape: it is done once for all.
"""

import numpy as np

from basestation.algebra.expressions import Attr
from basestation.algebra.placed import written
from basestation.algebra.window_project import WindowProject
from basestation.execution.counts import Counts
from basestation.execution.differing import finished
from basestation.execution.frame import Frame
from basestation.execution.graph import MEMBER
from basestation.execution.numbered import Numbered
from basestation.revisions.answers import Rows

_NONE = np.empty(0, np.int64)


class Shown:
    """One query among those that ask for the same windows, or several equal ones. It takes no steps."""

    kind = MEMBER

    def __init__(self, among, shape, number):
        """`number` is that of its predicate among the Wants."""
        self.among, self.shape, self.number, self.level = among, shape, number, among.level
        self.counts, self.queries = Counts(), []
        self._revision = Numbered(np.int64)  # by number of the window, of those that were revised

    def leave(self, query):
        """A query goes."""
        self.among.leave(self, query)

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


class Shape:
    """What is done alike to the rows that each of many predicates wants."""

    def __init__(self, view):
        self._steps, self._read, self._plain = view.steps, view.read, view.plain
        self._ids = [column.id for column in view.columns]
        self._same = _same(view)
        self.members = {}  # Shown by Shown: who is of this shape

    def tells_apart(self, frame):
        """Whether rows that differ before what is done with them differ afterwards, too: all of their columns are shown."""
        return self._same == frame.columns.keys()

    def of(self, frame):
        """What is shown of a Frame, as another."""
        if self._plain is None:
            return finished(frame, self._steps)
        return frame.with_columns({id: frame.columns[read] for id, read in zip(self._ids, self._plain, strict=True)})

    def of_each(self, frame, rows):
        """The same of several parts of a Frame, each of so many `rows` of it: the windows of one part, those of the next."""
        if len(rows) == 1 and rows[0] is None:
            return self.of(frame)
        rows = [np.arange(len(frame)) if of is None else of for of in rows]
        at = np.concatenate([_NONE, *rows])
        first = np.repeat(np.arange(len(rows)) * frame.windows, list(map(len, rows)))
        columns = {id: frame.columns[id].take(at) for id in self._read}
        return self.of(Frame(len(rows) * frame.windows, first + frame.window[at], columns))

    def rows(self, shown):
        """The Rows of a Frame that is shown."""
        return Rows(tuple(written(shown.columns[id]) for id in self._ids), len(shown))


def _same(view):
    """The ids of the columns of windows that a View shows as they are."""
    same = None
    for step in view.steps:
        if isinstance(step, WindowProject):
            plain = {c.id: e.column.id for c, e in step.outputs if isinstance(e, Attr)}
            same = plain if same is None else {to: same[of] for to, of in plain.items() if of in same}
    ids = [column.id for column in view.columns]
    return set(ids) if same is None else {same[id] for id in ids if id in same}
