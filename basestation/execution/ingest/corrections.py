"""Corrections: correcting rows, and REVISE, DELETE and INSERT, applied to the tuples as revised so far (semantics 12.2)."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.batch import Batch, replaced_indexes
from acquisition.extent import ExtentKind
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import Tuples
from basestation.execution.ingest.correctable import Correctable
from basestation.execution.ingest.tuple_log import TupleLog
from basestation.planner.plan import Correction
from basestation.progress.watermark import EpochProgress

ANOTHER_KEY = "rejected: another tick or site"
"""Counts corrections that name a tuple by its index, and state a tick or a site that it has not (semantics 12.2)."""


def count_nonzero(counts: Counter[str], name: str, count: int) -> None:
    """Add to a count. One that is zero has no entry, however corrections are batched."""
    if count:
        counts[name] += count


def correct_row(intake: Correctable, row: Batch, clock: int) -> None:
    """Apply one row that takes a tuple back or replaces it, and names it by index or key."""
    _correct_named(intake, row, _find_named(row, intake.log, intake.epochs), clock)


def _correct_named(intake: Correctable, row: Batch, number: IntArray, clock: int) -> None:
    intake.counts["received"] += 1
    if not intake.log.is_correctable(number).all():
        intake.counts["rejected: no such tuple"] += 1
        return
    old = intake.log.current(number)
    if states_another_key(row, old).any():
        intake.counts[ANOTHER_KEY] += 1
    elif row.weight[0] < 0:
        intake.delete(number, clock)
    else:
        columns = intake.tuple_builder.columns(replace(row, tick=old.tick, site=old.site))
        intake.revise(number, columns, clock)


def states_another_key(rows: Batch, named: Tuples) -> BoolArray:
    """Return a mask of the rows that name a tuple by its index, and state a tick or a site that is not the tuple's."""
    found = np.zeros(len(rows), bool)
    if rows.states_tick is not None:
        found |= rows.states_tick & (rows.tick != named.tick)
    if rows.states_site is not None:
        found |= rows.states_site & (rows.site != named.site)
    return found


def _find_named(row: Batch, log: TupleLog, epochs: EpochProgress | None) -> IntArray:
    """Return the number of the tuple that a row names; -1 if there is none. `epochs` has the keys of a sensed extent."""
    if row.replaces is not None and row.replaces[0] > 0:
        return log.find(row.replaces)
    if epochs is not None and epochs.due(row.tick, row.site).all():
        return epochs.holders(row.tick, row.site)
    return np.full(1, -1)


@dataclass(frozen=True, slots=True)
class ArchivedCorrections:
    """Corrections of pushed tuples as an archive has them: `replaces` is the place of each tuple among those that were taken, from 1."""

    rows: Batch

    def __call__(self, intake: Correctable, clock: int, complete: int | None) -> None:
        """Apply them in a clock tick."""
        for at in range(len(self.rows)):
            row = self.rows.take(slice(at, at + 1))
            number = replaced_indexes(row) - 1
            _correct_named(intake, row, np.where(number < intake.log.next, number, -1), clock)


@dataclass(frozen=True, slots=True)
class PendingCorrection:
    """A statement that an Intake carries out in its step, after the deliveries; a class, so that a snapshot can hold it."""

    correction: Correction

    def __call__(self, intake: Correctable, clock: int, complete: int | None) -> None:
        """Apply it in a clock tick; tuples up to `complete` are late, None if none is."""
        correction = self.correction
        if correction.how == "insert":
            for batch in _make_insertions(correction, clock):
                intake.insert_stated(batch, complete)
            return
        known = intake.log.correctable()
        if not len(known):
            return
        chosen = known.take(_choose(correction, intake, known))
        if correction.how == "delete":
            intake.delete(chosen.ident, clock)
        else:
            intake.revise(chosen.ident, _revise_columns(correction, intake, chosen), clock)


def _columns_of(correction: Correction, intake: Correctable, tuples: Tuples) -> dict[int, Vector]:
    """Return the tuples' values by the column ids of the statement, with tick and index (semantics 1.7)."""
    assert correction.tags is not None, "REVISE and DELETE have tags"
    columns = {c.id: tuples.columns[_name_of(c)] for c in correction.columns}
    tick, index = correction.tags
    columns[tick.id] = Vector(tuples.tick)
    numbers = intake.log.index_of(tuples.ident)
    columns[index.id] = Vector(numbers, numbers > 0)
    return columns


def _name_of(column: Column) -> str:
    """Return the name of an attribute."""
    assert column.name is not None, "attributes have names"
    return column.name


def _choose(correction: Correction, intake: Correctable, tuples: Tuples) -> BoolArray:
    """Return a mask of the tuples for which the predicate is true."""
    if correction.predicate is None:
        return np.ones(len(tuples), bool)
    return Evaluation(_columns_of(correction, intake, tuples), len(tuples)).of(correction.predicate).is_true


def _revise_columns(correction: Correction, intake: Correctable, tuples: Tuples) -> dict[str, Vector]:
    """Return the columns of the tuples after a REVISE, by name."""
    evaluation = Evaluation(_columns_of(correction, intake, tuples), len(tuples))
    columns = dict(tuples.columns)
    for column, expression in correction.changes:
        columns[_name_of(column)] = scale_values(evaluation.as_type(expression, column.type), column)
    return columns


def scale_values(vector: Vector, column: Column) -> Vector:
    """Return values as an attribute stores them: with a scale, the nearest multiples, halves away from zero (semantics 14)."""
    if column.scale is None:
        return vector
    # Exact arithmetic: a double times a power of ten may round to the wrong side of a half.
    multiples = [_nearest(v, column.scale) for v in vector.values.tolist()]
    return Vector(np.array(multiples, np.int64), vector.valid)


def _nearest(value: float, scale: int) -> int:
    top, bottom = float(value).as_integer_ratio()
    whole: int
    whole, rest = divmod(abs(top) * 10**scale, bottom)
    whole += 2 * rest >= bottom
    return whole if top >= 0 else -whole


def _make_insertions(correction: Correction, clock: int) -> Iterator[Batch]:
    """Yield each row of an INSERT as a delivery of this clock tick."""
    sensed = correction.extent.kind is ExtentKind.SENSED
    for row in correction.rows:
        values = {}
        for column, expression in zip(correction.columns, row, strict=True):
            values[_name_of(column)] = (column, Evaluation({}, 1).as_type(expression, column.type))
        tick = values.pop("tick")[1].values if "tick" in values else np.array([clock])
        site = values.get("site", values.get("_site")) if sensed else None
        columns, valid = {}, {}
        for name, (column, vector) in values.items():
            if name != "_site":
                columns[name], valid[name] = scale_values(vector, column).values, vector.validity
        yield Batch(
            tick, np.zeros(1, np.int64) if site is None else site[1].values, np.array([clock]), np.ones(1, np.int64),
            columns, valid,
        )  # fmt: skip
