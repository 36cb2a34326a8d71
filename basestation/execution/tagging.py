"""Tagging: what was delivered as tagged tuples, under the names of the attributes of its extent."""

import numpy as np

from acquisition.batch import Batch, dtype_of
from acquisition.extent import Late
from acquisition.schema import Type
from basestation.algebra.vector import Vector, constant
from basestation.execution.tuples import Tuples, no_tuples


def tagged(extent, batch):
    """A batch as Tuples; what is known without the sensor is filled in. Who they are, and when they enter, is said later."""
    columns = {}
    for attribute in extent.schema:
        if attribute is extent.site_attribute:
            columns[attribute.name] = Vector(batch.site)
        elif attribute is extent.time_attribute:
            columns[attribute.name] = Vector(batch.tick)
        elif attribute.name in batch.columns:
            mask = batch.valid.get(attribute.name)
            mask = None if mask is None or mask.all() else mask
            columns[attribute.name] = Vector(batch.columns[attribute.name], mask)
        else:
            columns[attribute.name] = _missing(len(batch), attribute)
    none = constant(0, len(batch))
    append = constant(extent.late is Late.APPEND, len(batch))
    return Tuples(none, batch.tick, batch.arrival, none, none, none, batch.site, append, columns)


def nothing_of(extent):
    """No tuples, with the columns of an extent."""
    none = np.empty(0, np.int64)
    return no_tuples(tagged(extent, Batch(none, none, none, none, {})))


def _missing(length, attribute):
    blank = "" if attribute.type is Type.STRING else 0
    return Vector(np.full(length, blank, dtype_of(attribute)), np.zeros(length, bool))
