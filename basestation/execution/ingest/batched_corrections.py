"""BatchedCorrections: late tuples and correcting rows of a pushed extent in many clock ticks, applied in one step (semantics 12.2).

TupleVersions say how streams saw the tuples in each clock tick; the log has what is left at the end of the step.
"""

from dataclasses import replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.batch import Batch, concatenate, replaced_indexes
from basestation.execution.columns.integer_arrays import find_in
from basestation.execution.columns.tuple_versions import TupleVersions
from basestation.execution.columns.tuples import Tuples, concatenate_tuples, same_values
from basestation.execution.columns.window_batch import NEVER
from basestation.execution.ingest.correctable import Correctable
from basestation.execution.ingest.corrections import ANOTHER_KEY, count_nonzero, states_another_key
from basestation.execution.ingest.tuple_log import TupleLog


class BatchedCorrections:
    """Collects the late tuples (`late`) and the correcting rows (`rows`) of one step."""

    def __init__(self) -> None:
        self.late: list[Tuples] = []
        self.rows: list[Batch] = []

    def apply(self, intake: Correctable, clock: int, inserted: Tuples) -> tuple[TupleVersions, Tuples, Tuples] | None:
        """Apply the corrections of the clock ticks up to `clock`. Tuples that entered by then have their indexes.

        `inserted` are the tuples that the step inserted. Returns (the versions, the inserted tuples that were not corrected in
        the order of their numbers, the removed tuples as they were before the step); None if there is nothing to apply.
        """
        if not self.late and not self.rows:
            return None
        late = concatenate_tuples([intake.log.none, *self.late])
        removed = intake.log.none
        stood: list[tuple[Tuples, IntArray, BoolArray]] = [(late, late.arrival, np.ones(len(late), bool))]
        if self.rows:
            rows = _CorrectionRows(intake, concatenate(self.rows))
            before = rows.old.take(rows.visible & rows.first)
            removed = before.take(before.ident < intake.step_delta.began)
            before = before.take(~find_in(late.ident, before.ident)[1])
            stood.append((before, np.full(len(before), -NEVER), np.ones(len(before), bool)))
            stood.append((rows.new.take(rows.visible), rows.clock[rows.visible], ~rows.deletes[rows.visible]))
            intake.record_applied(rows.new, np.where(rows.deletes, -1, 1), rows.clock)
            rows.apply(intake.log)
        tuples = concatenate_tuples([part for part, _, _ in stood])
        order = np.argsort(tuples.ident, kind="stable")
        tuples = tuples.take(order)
        valid_from = np.concatenate([since for _, since, _ in stood])[order]
        there = np.concatenate([mask for _, _, mask in stood])[order]
        again = np.flatnonzero(tuples.ident[1:] == tuples.ident[:-1])
        valid_to = np.full(len(tuples), NEVER)
        valid_to[again] = valid_from[again + 1]
        there &= valid_from < valid_to
        versions = TupleVersions(
            tuples.take(there), valid_from[there], valid_to[there], intake.clock + 1, clock, intake.extent.wait
        )
        at, known = find_in(inserted.ident, versions.tuples.ident)
        return versions, inserted.take(np.delete(np.arange(len(inserted)), at[known])), removed


class _CorrectionRows:
    """Rows that name existing tuples, grouped by tuple, each group in the order of its rows. `first` masks the first of each group.

    `old` has the tuples as they were before all rows, `new` as each row leaves them. Streams see the corrections under
    `visible`. `clock` is the clock tick of each row, and `deletes` masks those that delete.
    """

    def __init__(self, intake: Correctable, batch: Batch) -> None:
        log = intake.log
        number = log.find(replaced_indexes(batch))
        named = np.flatnonzero(log.is_correctable(number))
        named = named[np.argsort(number[named], kind="stable")]
        old = log.current(number[named])
        entered = old.arrival <= batch.arrival[named] - 1 - intake.extent.wait  # and had its index by then
        named, old = named[entered], old.take(entered)
        rows = batch.take(named)
        number, elsewhere = old.ident, states_another_key(rows, old)
        deletes = (rows.weight < 0) & ~elsewhere
        first = _is_first(number)
        deleted: IntArray = np.cumsum(deletes) - deletes  # how many rows before each one delete, of all tuples
        there: BoolArray = deleted == deleted[np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))]
        intake.counts["received"] += len(batch)
        count_nonzero(intake.counts, "rejected: no such tuple", len(batch) - int(there.sum()))
        count_nonzero(intake.counts, ANOTHER_KEY, int((there & elsewhere).sum()))
        there &= ~elsewhere
        rows, old, deletes = rows.take(there), old.take(there), deletes[there]
        columns = intake.tuple_builder.columns(replace(rows, tick=old.tick, site=old.site))
        new = old.with_columns(columns)
        changes = deletes | ~_repeats(old, new)
        count_nonzero(intake.counts, "unchanged", int((~changes).sum()))
        self.old, self.new, self.deletes = old.take(changes), new.take(changes), deletes[changes]
        self.clock = rows.arrival[changes]
        self.first = _is_first(self.old.ident)
        self.visible = intake.corrected(self.old, self.clock)
        count_nonzero(intake.counts, "revised", int(self.visible.sum()))
        count_nonzero(intake.counts, "revised in history", int((~self.visible).sum()))

    def apply(self, log: TupleLog) -> None:
        """Write the corrections into the log."""
        unsaid = ~self.visible & ~self.deletes & log.live[self.old.ident]
        follows = np.append(False, self.visible[:-1])[: len(self.visible)] & ~self.first
        # Streams go on seeing the values of the last correction that they saw.
        log.withhold(self.old.take(unsaid & self.first))
        log.withhold(self.new.take(np.flatnonzero(unsaid & follows) - 1))
        log.revise(self.new.take(~self.deletes))
        log.delete(self.old.ident[self.deletes], self.visible[self.deletes])


def _is_first(numbers: IntArray) -> BoolArray:
    """Return a mask of the first of each run of equal numbers."""
    return np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]


def _repeats(old: Tuples, new: Tuples) -> BoolArray:
    """Return a mask of the rows that leave the values of the row before, of the same tuple, or of the tuple as it was."""
    before = new.take(np.maximum(np.arange(len(new)) - 1, 0))
    return np.where(_is_first(old.ident), same_values(old, new), same_values(before, new))
