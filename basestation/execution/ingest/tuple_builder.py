"""Tagging: the columns of an extent, of what was delivered: what is known without the sensor is filled in (SEMANTICS 1.4)."""

import numpy as np

from acquisition.batch import Batch, dtype_of
from acquisition.extent import LatePolicy
from acquisition.schema import Type
from basestation.algebra.vector import Vector, all_true, constant
from basestation.execution.columns.tuples import Tuples


class TupleBuilder:
    def __init__(self, extent):
        self._schema = extent.schema
        self._known = {}  # what attributes are known to be: a tag of each tuple
        for attribute, tag in ((extent.site_attribute, "site"), (extent.time_attribute, "tick")):
            if attribute is not None:
                self._known[attribute.name] = tag
        self._append = extent.late is LatePolicy.APPEND

    def columns(self, batch):
        """By name."""
        columns = {}
        for attribute in self._schema:
            name = attribute.name
            if name in self._known:
                columns[name] = Vector(getattr(batch, self._known[name]))
            elif name in batch.columns:
                mask = batch.valid.get(name)
                columns[name] = Vector(batch.columns[name], None if mask is None or all_true(mask) else mask)
            else:
                columns[name] = _missing(len(batch), attribute)
        return columns

    def tagged(self, batch, numbers, arrival, rank, place):
        """A batch as Tuples."""
        count = len(batch)
        part, append = constant(0, count), constant(self._append, count)
        return Tuples(numbers, batch.tick, arrival, part, rank, place, batch.site, append, self.columns(batch))

    def none(self):
        """No tuples."""
        none = np.empty(0, np.int64)
        return self.tagged(Batch(none, none, none, none, {}), none, none, none, none)


def _missing(length, attribute):
    blank = "" if attribute.type is Type.STRING else 0
    return Vector(np.full(length, blank, dtype_of(attribute)), np.zeros(length, bool))
