"""Amending: rows that correct pushed tuples in many clock ticks, and what came late in them, taken in together (SEMANTICS 12.2).

What each did to streams stands in Versions, by clock tick; in the log is what is left at the end.
"""

from dataclasses import replace

import numpy as np

from acquisition.batch import concatenate, replaced_indexes
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import concatenate_tuples
from basestation.execution.columns.window_batch import NEVER


class BatchedCorrections:
    """Of one step of an extent: `came` are tuples that were late, `rows` parts of batches."""

    def __init__(self):
        self.came, self.rows = [], []
        self._gone = self._versions = None

    def carry_out(self, intake, clock):
        """The Versions of what was amended up to a clock tick; None where nothing was. Whatever entered up to it has its index."""
        if not self.came and not self.rows:
            return None
        late = concatenate_tuples([intake.log.none, *self.came])
        stood, self._gone = [(late, late.arrival, np.ones(len(late), bool))], intake.log.none
        if self.rows:
            rows = _CorrectionRows(intake, concatenate(self.rows))
            before = rows.old.take(rows.said & rows.first)
            self._gone = before.take(before.ident < intake.step_delta.began)
            before = before.take(~find_in(late.ident, before.ident)[1])
            stood.append((before, np.full(len(before), -NEVER), np.ones(len(before), bool)))
            stood.append((rows.new.take(rows.said), rows.clock[rows.said], ~rows.deletes[rows.said]))
            rows.carry_out(intake.log)
        tuples = concatenate_tuples([part for part, _, _ in stood])
        order = np.argsort(tuples.ident, kind="stable")
        tuples = tuples.take(order)
        valid_from, there = (np.concatenate([part[column] for part in stood])[order] for column in (1, 2))
        again = np.flatnonzero(tuples.ident[1:] == tuples.ident[:-1])
        valid_to = np.full(len(tuples), NEVER)
        valid_to[again] = valid_from[again + 1]
        there &= valid_from < valid_to
        self._versions = TupleVersions(
            tuples.take(there), valid_from[there], valid_to[there], intake.clock + 1, clock, intake.extent.wait
        )
        return self._versions

    def settled(self, inserted):
        """(what came, in the order of numbers, and was not amended; what is gone, as it was before the step)."""
        at, known = find_in(inserted.ident, self._versions.tuples.ident)
        return inserted.take(np.delete(np.arange(len(inserted)), at[known])), self._gone


class _CorrectionRows:
    """Rows that name tuples which are there, by tuple, each in the order of the rows; `first` marks the first of each.

    `old` are those tuples as they were before all rows, `new` as each row has them. Streams are corrected about those under
    `said`.
    """

    def __init__(self, intake, batch):
        log = intake.log
        number = log.find(replaced_indexes(batch))
        named = np.flatnonzero(log.names(number))
        named = named[np.argsort(number[named], kind="stable")]
        old = log.held(number[named])
        entered = old.arrival <= batch.arrival[named] - 1 - intake.extent.wait  # and had its index by then
        named, old = named[entered], old.take(entered)
        number, deletes = old.ident, batch.weight[named] < 0
        first = np.append(True, number[1:] != number[:-1])[: len(number)]
        deleted = np.cumsum(deletes) - deletes  # before each row, of all tuples
        there = deleted == deleted[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
        intake.counts["received"] += len(batch)
        told = {"rejected: no such tuple": len(batch) - int(there.sum()), "revised": int(there.sum())}
        # As tick by tick: none is not told.
        intake.counts.update({what: count for what, count in told.items() if count})
        batch = batch.take(named[there])
        self.old, self.deletes, self.first, self.clock = old.take(there), deletes[there], first[there], batch.arrival
        columns = intake.tuple_builder.columns(replace(batch, tick=self.old.tick, site=self.old.site))
        self.new = self.old.with_columns(columns)
        self.said = intake.corrected(self.old, self.clock)

    def carry_out(self, log):
        unsaid = ~self.said & ~self.deletes & log.live[self.old.ident]
        follows = np.append(False, self.said[:-1])[: len(self.said)] & ~self.first
        log.withhold(self.old.take(unsaid & self.first))  # streams go on seeing what they were last corrected to
        log.withhold(self.new.take(np.flatnonzero(unsaid & follows) - 1))
        log.revise(self.new.take(~self.deletes))
        log.delete(self.old.ident[self.deletes], self.said[self.deletes])
