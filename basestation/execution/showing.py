"""Showing: what one query shows of windows that many ask for: rows under its predicate, after selections and projections."""

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


class Shown:
    """One query among those that ask for the same windows, or several equal ones. It takes no steps."""

    kind = MEMBER

    def __init__(self, among, number, view):
        """`number` is that of its predicate among the Wants."""
        self.among, self.number, self.level = among, number, among.level
        self.counts, self.queries = Counts(), []
        self._steps, self._read, self._plain = view.steps, view.read, view.plain
        self._ids = [column.id for column in view.columns]
        self.revision = Numbered(np.int64)  # by number of the window, of those that were revised
        self._same = _same(view)
        self._none = None  # no rows

    def leave(self, query):
        """A query goes."""
        self.among.leave(self, query)

    def tells_apart(self, frame):
        """Whether rows that differ before what is done with them differ afterwards, too: all of their columns are shown."""
        return self._same == frame.columns.keys()

    def frame(self, part):
        """What it shows of a Part, as a Frame."""
        if self._plain is not None:
            columns = {id: part.column(read) for id, read in zip(self._ids, self._plain, strict=True)}
            return Frame(part.windows, part.window, columns)
        return finished(part.frame(self._read), self._steps)

    def rows(self, part):
        """(its Rows, where those of each window begin and end)."""
        if self._plain is not None:
            return Rows(tuple(written(part.column(id)) for id in self._plain), len(part)), part.bounds
        frame = self.frame(part)
        return self.rows_of(frame), frame.bounds()

    def rows_of(self, frame):
        return Rows(tuple(written(frame.columns[id]) for id in self._ids), len(frame))

    def none(self, rows):
        """No rows, of the same columns as some."""
        if self._none is None:
            self._none = rows.take(np.empty(0, np.int64))
        return self._none


class Part:
    """The rows of a Frame at `places`, or all of them; what is asked of it is found once."""

    def __init__(self, frame, places=None):
        self._frame, self._places = frame, places
        self.windows = frame.windows
        self._columns, self._bounds, self._window = {}, None, None

    def __len__(self):
        return len(self._frame) if self._places is None else len(self._places)

    def column(self, id):
        if self._places is None:
            return self._frame.columns[id]
        if id not in self._columns:
            self._columns[id] = self._frame.columns[id].take(self._places)
        return self._columns[id]

    @property
    def window(self):
        if self._places is None:
            return self._frame.window
        if self._window is None:
            self._window = self._frame.window[self._places]
        return self._window

    @property
    def bounds(self):
        """Where each window begins and ends."""
        if self._bounds is None:
            self._bounds = np.array([0, len(self)]) if self.windows == 1 else self.frame(()).bounds()
        return self._bounds

    def frame(self, ids):
        """A Frame with some of the columns."""
        return Frame(self.windows, self.window, {id: self.column(id) for id in ids})


def _same(view):
    """The ids of the columns of windows that a View shows as they are."""
    same = None
    for step in view.steps:
        if isinstance(step, WindowProject):
            plain = {c.id: e.column.id for c, e in step.outputs if isinstance(e, Attr)}
            same = plain if same is None else {to: same[of] for to, of in plain.items() if of in same}
    ids = [column.id for column in view.columns]
    return set(ids) if same is None else {same[id] for id in ids if id in same}
