"""Our engine as a system to be measured: batches in, answers out."""

import numpy as np

from acquisition.batch import Batch, unit_weights
from basestation.algebra.vector import Vector
from basestation.execution.engine import Engine
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import TupleUpdates, WindowUpdates, split_interleaved
from bench import data
from bench.answers import Tuples, Windows


class Ours:
    """`prepare` gives a batch the form in which the engine takes it; only `step` is timed."""

    def __init__(self, case, streams):
        catalog = read_schema(case.schema(), tick_ms=1)
        self.engine = Engine(catalog)
        if case.task.table:
            table = {name: Vector(values) for name, values in data.temp_class().items()}
            self.engine.load("tempClass", 0, table)
        for number, text in enumerate(case.texts(streams), 1):
            self.engine.add(number, bind_text(text, catalog)[0])

    def prepare(self, parts, last):
        return prepared(parts), last

    def step(self, batch):
        parts, last = batch
        for name, part in parts:
            self.engine.deliver(name, part)
        return self.engine.on_clock(last)


def prepared(parts):
    """The parts of a batch as the engine takes them."""
    return [(name, _batch(stream)) for name, stream in parts.items()]


def _batch(stream):
    columns = stream.columns
    return Batch(stream.tick, columns["site"], stream.arrival, unit_weights(len(stream)), columns, {}, stream.replaces)


def answers(updates):
    """Return the engine's updates in the common form."""
    said = []
    for update in split_interleaved(updates):
        match update:
            case TupleUpdates():
                sign = int(update.weight[0])
                said.append(Tuples(update.tick, update.index, _columns(update.rows), sign, update.query))
            case WindowUpdates(tick=tick, revision=revision):
                said.append(Windows(tick, update.added_offsets, _columns(update.added), revision, 1, update.query))
                again = revision > 0  # only these take rows back
                bounds = np.append(update.removed_offsets[:-1][again], update.removed_offsets[-1])
                said.append(Windows(tick[again], bounds, _columns(update.removed), revision[again], -1, update.query))
    return said


def _columns(rows):
    return [(vector.values, vector.valid) for vector in rows.columns]
