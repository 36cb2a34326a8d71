"""Our engine as a system to be measured: batches in, answers out."""

import numpy as np

from acquisition.batch import Batch
from basestation.algebra.vector import Vector
from basestation.execution.engine import Engine
from basestation.planner.bind import bind_text
from basestation.planner.catalog import read_schema
from basestation.revisions.answers import TupleUpdates, WindowUpdate
from bench import data
from bench.answers import Tuples, Windows

SPANS = False
"""Whether the engine takes a batch that spans several clock ticks; else it is given one clock tick at a time."""


class Ours:
    """`prepare` gives a batch the form in which the engine takes it; only `step` is timed."""

    def __init__(self, case, streams):
        catalog = read_schema(case.task.schema, tick_ms=1)
        self.engine = Engine(catalog)
        if case.task.table:
            table = {name: Vector(values) for name, values in data.temp_class().items()}
            self.engine.load("tempClass", 0, table)
        for number, text in enumerate(case.texts(streams), 1):
            self.engine.add(number, bind_text(text, catalog)[0])

    def prepare(self, parts, last):
        if SPANS:
            return [([(name, _batch(stream)) for name, stream in parts.items()], last)]
        clocks = np.unique(np.concatenate([stream.arrival for stream in parts.values()])).tolist()
        steps = {clock: [] for clock in clocks}
        for name, stream in parts.items():
            for clock in np.unique(stream.arrival).tolist():
                first, behind = np.searchsorted(stream.arrival, [clock, clock + 1])
                steps[clock].append((name, _batch(stream.take(slice(first, behind)))))
        return [(delivered, clock) for clock, delivered in steps.items()]

    def step(self, prepared):
        said = []
        for delivered, clock in prepared:
            for name, batch in delivered:
                self.engine.deliver(name, batch)
            said += self.engine.on_clock(clock)
        return said


def _batch(stream):
    none = np.zeros(len(stream), np.int64)
    return Batch(stream.tick, none, stream.arrival, none + 1, stream.columns, {}, stream.replaces)


def answers(updates):
    """What the engine said, in the common form."""
    said = []
    for update in updates:
        match update:
            case TupleUpdates():
                sign = int(update.weight[0])
                said.append(Tuples(update.tick, update.index, _columns(update.rows), sign, update.query))
            case WindowUpdate():
                tick = np.array([update.tick])
                for rows, sign in ((update.added, 1), (update.removed, -1)):
                    if sign > 0 or update.revision:
                        bounds = np.array([0, len(rows)])
                        said.append(Windows(tick, bounds, _columns(rows), update.revision, sign, update.query))
    return said


def _columns(rows):
    return [(vector.values, vector.valid) for vector in rows.columns]
