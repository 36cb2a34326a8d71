"""Overlay: other values for a few of many tuples, by their numbers."""

import numpy as np

from basestation.algebra.vector import Vector
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.tuples import TupleBuffer


class ValueOverrides:
    def __init__(self):
        self._held, self._in_order = TupleBuffer(), None

    def put(self, tuples):
        """These have the values given from now on."""
        self._held.add(tuples)
        self._in_order = None

    def holds(self, numbers):
        """Which of the numbers have other values here."""
        held = self._latest()
        return np.zeros(len(numbers), bool) if held is None else find_in(held.ident, numbers)[1]

    def over(self, tuples):
        """The tuples, with the values from here where there are some."""
        which = self.holds(tuples.ident)
        if not which.any():
            return tuples
        held = self._latest()
        other = held.take(np.searchsorted(held.ident, tuples.ident[which]))
        columns = {name: _with(v, which, other.columns[name]) for name, v in tuples.columns.items()}
        return tuples.with_columns(columns)

    def drop_before(self, number):
        if len(self._held):
            self._held.keep(self._held.all().ident >= number)
            self._in_order = None

    def _latest(self):
        """The newest values of each, by number; None where there are none."""
        if self._in_order is None and len(self._held):
            held = self._held.all()
            held = held.take(np.argsort(held.ident, kind="stable"))
            self._in_order = held.take(np.append(held.ident[1:] != held.ident[:-1], True))
            self._held = TupleBuffer()
            self._held.add(self._in_order)
        return self._in_order


def _with(vector, positions, new):
    """A Vector with some entries changed; the old one stays as it was."""
    values, valid = vector.values.copy(), vector.validity.copy()
    values[positions], valid[positions] = new.values, new.validity
    return Vector(values, None if valid.all() else valid)
