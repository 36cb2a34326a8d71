"""TupleBuilder: makes Tuples of delivered batches, and fills in what is known without the sensor (semantics 1.4)."""

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch, dtype_of
from acquisition.extent import Extent, LatePolicy
from acquisition.schema import Attribute, Type
from basestation.algebra.vector import Vector, all_true, constant
from basestation.execution.columns.tuples import Tuples


class TupleBuilder:
    """Builds the tuples of one extent."""

    def __init__(self, extent: Extent) -> None:
        self._schema = extent.schema
        self._tag_of: dict[str, str] = {}  # attributes that equal a tag of the tuple
        for attribute, tag in ((extent.site_attribute, "site"), (extent.time_attribute, "tick")):
            if attribute is not None:
                self._tag_of[attribute.name] = tag
        self._append = extent.late is LatePolicy.APPEND

    def columns(self, batch: Batch) -> dict[str, Vector]:
        """Return the columns of the extent by name; an attribute that the batch does not have is null."""
        columns = {}
        for attribute in self._schema:
            name = attribute.name
            if name in self._tag_of:
                columns[name] = Vector(getattr(batch, self._tag_of[name]))
            elif name in batch.columns:
                mask = batch.valid.get(name)
                columns[name] = Vector(batch.columns[name], None if mask is None or all_true(mask) else mask)
            else:
                columns[name] = _null_column(len(batch), attribute)
        return columns

    def build(self, batch: Batch, numbers: IntArray, arrival: IntArray, rank: IntArray, place: IntArray) -> Tuples:
        """Return a batch as Tuples with these numbers and this order of entry."""
        count = len(batch)
        part, append = constant(0, count), constant(self._append, count)
        return Tuples(numbers, batch.tick, arrival, part, rank, place, batch.site, append, self.columns(batch))

    def none(self) -> Tuples:
        """Return no tuples, with all columns."""
        none = np.empty(0, np.int64)
        return self.build(Batch(none, none, none, none, {}), none, none, none, none)


def _null_column(length: int, attribute: Attribute) -> Vector:
    blank = "" if attribute.type is Type.STRING else 0
    return Vector(np.full(length, blank, dtype_of(attribute)), np.zeros(length, bool))
