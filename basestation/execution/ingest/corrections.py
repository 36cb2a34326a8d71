"""Correcting: rows that correct, and REVISE, DELETE and INSERT, carried out on the tuples as revised so far (SEMANTICS 12.2)."""

from dataclasses import replace

import numpy as np

from acquisition.batch import Batch
from acquisition.extent import ExtentKind
from basestation.algebra.evaluation import Evaluation
from basestation.algebra.vector import Vector


def correct_row(intake, row, clock):
    """One row that takes a tuple back or replaces it, named by its index or its key."""
    intake.counts["received"] += 1
    number = _named(row, intake.log, intake.epochs)
    if not intake.log.names(number).all():
        intake.counts["rejected: no such tuple"] += 1
    elif row.weight[0] < 0:
        intake.delete(number, clock)
    else:
        old = intake.log.held(number)
        columns = intake.tuple_builder.columns(replace(row, tick=old.tick, site=old.site))
        intake.revise(number, columns, clock)


def _named(row, log, epochs):
    """The number that a row means; -1 where there is none. `epochs` has the keys of a sensed extent."""
    if row.replaces is not None and row.replaces[0]:
        return log.find(row.replaces)
    if epochs is not None and epochs.due(row.tick, row.site).all():
        return epochs.holders(row.tick, row.site)
    return np.full(1, -1)


def make_correction(correction):
    """A function that an Intake calls within its step, after the deliveries."""

    def carry_out(intake, clock, complete):
        if correction.how == "insert":
            for batch in _inserted(correction, clock):
                intake.insert(batch, complete)
            return
        known = intake.log.known()
        if not len(known):
            return
        chosen = known.take(_chosen(correction, intake, known))
        if correction.how == "delete":
            intake.delete(chosen.ident, clock)
        else:
            intake.revise(chosen.ident, _revised(correction, intake, chosen), clock)

    return carry_out


def _columns(correction, intake, tuples):
    """The tuples' values by the columns of the statement, with tick and index (1.7)."""
    columns = {c.id: tuples.columns[c.name] for c in correction.columns}
    tick, index = correction.tags
    columns[tick.id] = Vector(tuples.tick)
    numbers = intake.log.index_of(tuples.ident)
    columns[index.id] = Vector(numbers, numbers > 0)
    return columns


def _chosen(correction, intake, tuples):
    if correction.predicate is None:
        return np.ones(len(tuples), bool)
    return Evaluation(_columns(correction, intake, tuples), len(tuples)).of(correction.predicate).is_true


def _revised(correction, intake, tuples):
    evaluation = Evaluation(_columns(correction, intake, tuples), len(tuples))
    columns = dict(tuples.columns)
    for column, expression in correction.changes:
        columns[column.name] = scale_values(evaluation.as_type(expression, column.type), column)
    return columns


def scale_values(vector, column):
    """Values as an attribute holds them: with a scale, the nearest whole multiples, halves away from zero (14)."""
    if column.scale is None:
        return vector
    # Exactly: a double times a power of ten may round to the wrong side of a half.
    multiples = [_nearest(v, column.scale) for v in vector.values.tolist()]
    return Vector(np.array(multiples, np.int64), vector.valid)


def _nearest(value, scale):
    top, bottom = float(value).as_integer_ratio()
    whole, rest = divmod(abs(top) * 10**scale, bottom)
    whole += 2 * rest >= bottom
    return whole if top >= 0 else -whole


def _inserted(correction, clock):
    """The rows of an INSERT as deliveries of this clock tick."""
    sensed = correction.extent.kind is ExtentKind.SENSED
    for row in correction.rows:
        values = {}
        for column, expression in zip(correction.columns, row, strict=True):
            values[column.name] = (column, Evaluation({}, 1).as_type(expression, column.type))
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
