"""Admission: which of what is delivered of an extent is taken: what is due, not too far ahead, and the first of its key.

Whatever is not is counted, here and nowhere else (SEMANTICS 1.5).
"""

import numpy as np

from acquisition.batch import values_of
from basestation.execution.columns.tuples import null_safe_equal


class Admission:
    """`epochs` are those of a sensed extent; None: of a pushed one."""

    def __init__(self, extent, tuple_builder, epochs, log, counts):
        self._extent, self._tagging, self._epochs, self._log, self._counts = extent, tuple_builder, epochs, log, counts

    def filter_timely(self, batch):
        """Leave out what is off the schedule, and set aside what is stamped too far ahead."""
        self._counts["received"] += len(batch)
        if self._epochs is not None:
            due = self._epochs.due(batch.tick, batch.site)
            self._counts["rejected: off the schedule"] += int(len(batch) - due.sum())
            batch = batch.take(due)
        if self._extent.ahead is not None:
            ahead = batch.tick > batch.arrival + self._extent.ahead
            self._counts["ahead"] += int(ahead.sum())
            batch = batch.take(~ahead)
        return batch

    def first_of_each_key(self, batch):
        """(the tuples whose key is not held, what is left of the batch: more copies of keys that these take, or None)."""
        if self._epochs is None:
            return batch, None
        holder = self._epochs.holders(batch.tick, batch.site)
        held = holder >= 0
        if held.any():
            self._count_copies(batch.take(held), holder[held])
            batch = batch.take(~held)
        first = self._epochs.first_of_each(batch.tick, batch.site)
        return (batch, None) if first.all() else (batch.take(first), batch.take(~first))

    def _count_copies(self, batch, holder):
        there = self._log.held(holder)
        same = np.ones(len(batch), bool)
        for name, vector in self._tagging.columns(batch).items():
            same &= null_safe_equal(vector, there.columns[name])
        self._counts["duplicate"] += int(same.sum())
        self._counts["conflict"] += int((~same).sum())

    def not_yet_reported(self, batch):
        """The reports of sites that were not heard of before."""
        fresh = self._epochs.not_yet_reported(batch.tick, batch.site)
        self._counts["duplicate"] += int((~fresh).sum())
        return batch.take(fresh)

    def count_out_of_range(self, tuples):
        """A value outside the range of its attribute is delivered and counted, not hidden (13)."""
        for attribute in self._extent.schema:
            if attribute.range is not None:
                vector = tuples.columns[attribute.name]
                values = values_of(vector.values, attribute.scale)
                outside = ((values < attribute.range[0]) | (values > attribute.range[1])) & vector.validity
                self._counts["out of range"] += int(outside.sum())
