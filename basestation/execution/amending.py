"""Amending: rows that correct pushed tuples in many clock ticks, and what came late in them, taken in together (SEMANTICS 12.2).

What each did to streams stands in Versions, by clock tick; in the log and in the Change of the step only what is left.
"""

from dataclasses import replace

import numpy as np

from acquisition.batch import concatenate, replaced
from basestation.execution.tuples import joined
from basestation.execution.versions import Versions
from basestation.execution.wins import NEVER


class Amending:
    """Of one step of an extent: `came` are tuples that were late, `rows` parts of batches."""

    def __init__(self):
        self.came, self.rows = [], []

    def carry_out(self, intake, clock):
        """The Versions of what was amended up to a clock tick; None where nothing was. Whatever entered up to it has its index."""
        late = joined([intake.log.none, *self.came])
        rows = _Corrections(intake, concatenate(self.rows)) if self.rows else None
        if rows is not None:
            rows.carry_out(intake)
        parts = [(late, late.arrival, None)] if rows is None else _versions(late, rows)
        tuples = joined([part for part, _, _ in parts])
        if not len(tuples):
            return None
        born = np.concatenate([of for _, of, _ in parts])
        died = np.full(len(tuples), NEVER)
        there = np.ones(len(tuples), bool)
        if rows is not None:
            order = np.argsort(tuples.ident, kind="stable")
            tuples, born = tuples.take(order), born[order]
            there = np.concatenate([np.ones(len(of), bool) if mask is None else mask for _, of, mask in parts])[order]
            again = np.flatnonzero(tuples.ident[1:] == tuples.ident[:-1])
            died[again] = born[again + 1]
        there = there & (born < died)
        return Versions(tuples.take(there), born[there], died[there], intake.clock + 1, clock, intake.extent.wait)


def _versions(late, rows):
    """(tuples, from which clock tick on they stood like this, a mask of those that did stand), each tuple in its order."""
    begun = rows.first[rows.said]
    earlier = rows.old.take(rows.said).take(begun)
    earlier = earlier.take(~np.isin(earlier.ident, late.ident))
    said = rows.said
    return [
        (late, late.arrival, None),
        (earlier, np.full(len(earlier), -NEVER), None),
        (rows.new.take(said), rows.clock[said], ~rows.deletes[said]),
    ]


class _Corrections:
    """Rows that name tuples which are there, by tuple, each in the order of the rows. `old` are those tuples as they were
    before all, `new` as each row has them; streams are corrected about those under `said`."""

    def __init__(self, intake, batch):
        log = intake.log
        number = log.find(replaced(batch))
        named = np.flatnonzero(log.names(number))
        named = named[
            log.arrivals(number[named]) <= batch.arrival[named] - 1 - intake.extent.wait
        ]  # has an index by then
        named = named[np.argsort(number[named], kind="stable")]
        number, deletes = number[named], batch.weight[named] < 0
        first = np.append(True, number[1:] != number[:-1])[: len(number)]
        deleted = np.cumsum(deletes) - deletes  # before each row, of all tuples
        there = deleted == deleted[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
        intake.counts["received"] += len(batch)
        intake.counts["rejected: no such tuple"] += len(batch) - int(there.sum())
        intake.counts["revised"] += int(there.sum())
        batch = batch.take(named[there])
        self.number, self.deletes, self.first = number[there], deletes[there], first[there]
        self.clock, self.old = batch.arrival, log.held(self.number)
        columns = intake.tagging.columns(replace(batch, tick=self.old.tick, site=self.old.site))
        self.new = self.old.with_columns(columns)
        self.said = intake.corrected(self.old, self.clock)

    def carry_out(self, intake):
        log, revises = intake.log, ~self.deletes
        earliest = self.said & self.first
        intake.settling.gone(self.old.take(earliest))
        intake.settling.come(self.new.take(self.said & revises))
        self._withhold(log)
        log.revise(self.new.take(revises))
        log.delete(self.number[self.deletes], self.said[self.deletes])

    def _withhold(self, log):
        """Streams go on seeing what they were last corrected to."""
        unsaid = ~self.said & ~self.deletes & log.live[self.number]
        follows = np.append(False, self.said[:-1])[: len(self.said)] & ~self.first
        log.withhold(self.old.take(unsaid & self.first))
        log.withhold(self.new.take(np.flatnonzero(unsaid & follows) - 1))
