"""Admission: which delivered tuples of an extent are taken: due, not too far ahead, and the first of their key.

Every rejected tuple is counted here, and nowhere else (semantics 1.5).
"""

from collections import Counter

import numpy as np

from acquisition.arrays import IntArray
from acquisition.batch import Batch, values_of
from acquisition.extent import Extent
from basestation.execution.columns.tuples import Tuples, null_safe_equal
from basestation.execution.ingest.tuple_builder import TupleBuilder
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.progress.watermark import EpochProgress


class Admission:
    """`epochs` has the schedule and the keys of a sensed extent; None for a pushed one, which has neither."""

    def __init__(
        self,
        extent: Extent,
        tuple_builder: TupleBuilder,
        epochs: EpochProgress | None,
        log: TupleLog,
        counts: Counter[str],
    ) -> None:
        self._extent, self._tuple_builder, self._epochs, self._log = extent, tuple_builder, epochs, log
        self._counts = counts

    def filter_timely(self, batch: Batch) -> Batch:
        """Drop and count tuples that are off the schedule or stamped too far ahead of the clock."""
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

    def first_of_each_key(self, batch: Batch) -> tuple[Batch, Batch | None]:
        """Return (the first tuple of each free key, the other copies of those keys or None).

        Tuples whose key is taken are dropped and counted. The other copies have to be admitted again once the first are taken.
        """
        if self._epochs is None:
            return batch, None
        holder = self._epochs.holders(batch.tick, batch.site)
        taken = holder >= 0
        if taken.any():
            self._count_copies(batch.take(taken), holder[taken])
            batch = batch.take(~taken)
        first = self._epochs.first_of_each(batch.tick, batch.site)
        return (batch, None) if first.all() else (batch.take(first), batch.take(~first))

    def _count_copies(self, batch: Batch, holder: IntArray) -> None:
        """Count copies with equal values as duplicates, the other ones as conflicts."""
        there = self._log.current(holder)
        same = np.ones(len(batch), bool)
        for name, vector in self._tuple_builder.columns(batch).items():
            same &= null_safe_equal(vector, there.columns[name])
        self._counts["duplicate"] += int(same.sum())
        self._counts["conflict"] += int((~same).sum())

    def filter_unreported(self, batch: Batch, epochs: EpochProgress) -> Batch:
        """Return the reports of sites that have not reported in their epoch; count the other ones as duplicates."""
        fresh = epochs.not_yet_reported(batch.tick, batch.site)
        self._counts["duplicate"] += int((~fresh).sum())
        return batch.take(fresh)

    def count_out_of_range(self, tuples: Tuples) -> None:
        """Count values outside the range of their attribute. They are delivered all the same (semantics 13)."""
        for attribute in self._extent.schema:
            if attribute.range is not None:
                vector = tuples.columns[attribute.name]
                values = values_of(vector.values, attribute.scale)
                outside = ((values < attribute.range[0]) | (values > attribute.range[1])) & vector.validity
                self._counts["out of range"] += int(outside.sum())
