"""Differing: what a window over a join has that another has not, from rows of which a tuple came or went (semantics 6.1).

Rows are counted where the first of their tuples came; those all of whose tuples stayed are never put together, but where
the order of what is left depends on them: then those are looked up that could have the values of what is left.
"""

import numpy as np

from basestation.algebra.expressions import Attr
from basestation.algebra.window_project import WindowProject
from basestation.execution.columns.window_contents import factorize, subtract_contents
from basestation.execution.relational.window_delta import apply_steps, find_mixed_windows, find_row_steps, restore_order

_WORTH = 0.5
"""The part of the rows of windows from which on it is worth leaving out those that others have as well."""


class JoinDelta:
    """`steps` are the selections and projections above a join."""

    def __init__(self, join, steps):
        self._join, self._steps = join, steps
        self._plain = self._traced()

    def overlap(self, stands, mine, theirs):
        """Whether combinations have so many rows in common that the others are put together sooner than all."""
        return self._join.shared(stands, mine, theirs) > _WORTH

    def _reaches(self, stands, mine, theirs):
        reaches = self._join.reaches(stands)
        return [reach.take(mine) for reach in reaches], [reach.take(theirs) for reach in reaches]

    def except_all(self, stands, mine, theirs):
        """What combinations of windows have that others have not, in order; `stands` has, of each input, the windows."""
        self._join.prepare(stands)
        reaches, other = self._reaches(stands, mine, theirs)
        came = self._finished(self._join.rows_gained(reaches, other), len(mine))
        if not len(came):
            return came
        went = self._finished(self._join.rows_gained(other, reaches), len(mine))
        left = came.take(subtract_contents(came, went))
        doubtful = self._join.overlapping(reaches, other)
        if doubtful.any():
            doubtful &= find_mixed_windows(left)
        if not doubtful.any():
            return left
        return restore_order(left, doubtful, self._alike(left.take(doubtful[left.window]), doubtful, reaches))

    def _finished(self, rows, windows):
        return apply_steps(self._join.framed(rows, windows), self._steps)

    def _alike(self, theirs, doubtful, reaches):
        """Rows of the doubtful windows, all at least that could have the values of `theirs`.

        Plain columns of an input say which of its tuples could; one with a null among its values says nothing.
        """
        values = {
            i: {held: theirs.columns[id] for id, held in outputs.items() if theirs.columns[id].validity.all()}
            for i, outputs in self._plain.items()
        }
        i = max(values, key=lambda i: len(values[i]), default=None)
        if i is None or not values[i]:
            rows = self._join.all([reach.only(doubtful) for reach in reaches])
            return self._finished(rows, theirs.windows)
        code, count = factorize([vector for of in values.values() for vector in of.values()], len(theirs))
        _, first = np.unique(theirs.window * count + code, return_index=True)
        values = {i: {held: vector.take(first) for held, vector in of.items()} for i, of in values.items()}
        return self._finished(self._join.rows_with_values(i, values, theirs.window[first], reaches), theirs.windows)

    def _traced(self):
        """{input: {output column: column as it is held}} of the outputs that are plain columns of an input."""
        plain = {id: id for id in self._join.homes}
        for node in self._steps:
            if isinstance(node, WindowProject):
                pairs = [(c.id, e.column.id) for c, e in node.outputs if isinstance(e, Attr)]
                plain = {id: plain[below] for id, below in pairs if below in plain}
        found = {}
        for id, below in plain.items():
            i = self._join.homes[below]
            found.setdefault(i, {})[id] = self._join.sides[i].ids[below]
        return found


def make_join_delta(node, join):
    """Differences of the windows of a block; None where there is more above its join than selections and projections."""
    steps = find_row_steps(node, join.node)
    return None if steps is None else JoinDelta(join, steps)
