"""Differing: what a window over a join has that another has not, as bags, from what came and what went (SEMANTICS 6.1).

With S the rows of both, came those with a tuple that only the one window has, went those with a tuple that only the other
has: (S + came) \\\\ (S + went) is came \\\\ went, as bags. Which of equal rows are left decides their order only (6.4); where
rows of several values are left, the rows with those values are looked up, in both S and came.
"""

import numpy as np

from basestation.algebra.expressions import Attr
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.execution import relational
from basestation.execution.frame import Frame, codes, difference, occurrence
from basestation.execution.tuples import concatenated
from basestation.execution.wins import joined_wins


class Differing:
    """`node` is a join with selections and projections above it."""

    def __init__(self, node, join):
        self._join, self._above = join, []
        while node is not join.node:
            self._above.append(node)
            node = node.child
        self._above.reverse()
        self._plain = self._traced()

    def beyond(self, stands, others):
        """What combinations of windows have that others have not, in order; of each input, its windows in both."""
        count = len(stands[0])
        self._join.prepare([joined_wins(both) for both in zip(stands, others, strict=True)])
        reaches, other = self._join.reaches(stands), self._join.reaches(others)
        came = self._finished(self._join.came(reaches, other), count)
        if not len(came):
            return came
        went = self._finished(self._join.came(other, reaches), count)
        left = came.take(difference(came, went)[0])
        mixed = self._mixed(left) & self._overlapping(reaches, other)
        return self._ordered(left, mixed, reaches) if mixed.any() else left

    def _finished(self, rows, windows):
        """What selections and projections make of rows."""
        frame = self._join.framed(rows, windows)
        for node in self._above:
            if isinstance(node, WindowSelect):
                frame = relational.select(frame, node.predicate)
            else:
                frame = relational.project(frame, node.outputs)
        return frame

    @staticmethod
    def _overlapping(reaches, others):
        """Where a row can be in both windows: elsewhere all rows came."""
        found = True
        for a, b in zip(reaches, others, strict=True):
            stayed = a.both(b)
            found = found & (stayed.left <= stayed.right)
        return found

    def _mixed(self, left):
        """The windows in which rows of several values are left."""
        code, _ = codes(list(left.columns.values()), len(left))
        mixed = np.zeros(left.windows, bool)
        step = (left.window[1:] == left.window[:-1]) & (code[1:] != code[:-1])
        mixed[left.window[1:][step]] = True
        return mixed

    # --- order -------------------------------------------------------------------------------------------------------

    def _ordered(self, left, mixed, reaches):
        """The rows that are left, in some windows in the places that the figures leave them: the last of equal ones."""
        theirs = left.take(mixed[left.window])
        rows = self._alike(theirs, mixed, reaches)
        candidates = self._finished(rows, left.windows)
        both = [concatenated([theirs.columns[id], candidates.columns[id]]) for id in theirs.columns]
        code, count = codes(both, len(theirs) + len(candidates))
        keys = np.concatenate([theirs.window, candidates.window]) * count + code
        wanted, candidate = keys[: len(theirs)], keys[len(theirs) :]
        values, counts = np.unique(wanted, return_counts=True)
        at = np.minimum(np.searchsorted(values, candidate), len(values) - 1)
        many = np.where(values[at] == candidate, counts[at], 0)
        last = occurrence(candidate[::-1])[::-1] < many
        settled = left.take(~mixed[left.window])
        return _merged(settled, candidates.take(last))

    def _alike(self, theirs, mixed, reaches):
        """Rows of the mixed windows, all at least that could have the values of `theirs`.

        Plain columns of an input say which of its tuples could; one with a null among its values says nothing.
        """
        values = {
            i: {held: theirs.columns[id] for id, held in outputs.items() if theirs.columns[id].there.all()}
            for i, outputs in self._plain.items()
        }
        i = max(values, key=lambda i: len(values[i]), default=None)
        if i is None or not values[i]:
            return self._join.all([reach.only(mixed) for reach in reaches])
        code, count = codes([vector for of in values.values() for vector in of.values()], len(theirs))
        _, first = np.unique(theirs.window * count + code, return_index=True)
        values = {i: {held: vector.take(first) for held, vector in of.items()} for i, of in values.items()}
        return self._join.having(i, values, theirs.window[first], reaches)

    def _traced(self):
        """{input: {output column: column as it is held}} of the outputs that are plain columns of an input."""
        plain = {id: id for id in self._join.homes}
        for node in self._above:
            if isinstance(node, WindowProject):
                pairs = [(c.id, e.column.id) for c, e in node.outputs if isinstance(e, Attr)]
                plain = {id: plain[below] for id, below in pairs if below in plain}
        found = {}
        for id, below in plain.items():
            i = self._join.homes[below]
            found.setdefault(i, {})[id] = self._join.sides[i].ids[below]
        return found


def _merged(a, b):
    """Two Frames of the same windows, each window in one of them only."""
    window = np.concatenate([a.window, b.window])
    order = np.argsort(window, kind="stable")
    columns = {id: concatenated([a.columns[id], b.columns[id]]).take(order) for id in a.columns}
    return Frame(a.windows, window[order], columns)


def differing(node, join):
    """Differences of the windows of a block; None where there is more above its join than selections and projections."""
    if join is None:
        return None
    above = node
    while above is not join.node:
        if not isinstance(above, WindowSelect | WindowProject):
            return None
        above = above.child
    return Differing(node, join)
