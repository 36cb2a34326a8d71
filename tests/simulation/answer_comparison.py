"""Compares the answers of a station with those of a replay of the same readings.

The replay ends at the clock tick of the station. So all answers are compared, and the windows that still wait as well.
"""

from types import MappingProxyType

import numpy as np

from acquisition.batch import Batch
from basestation.execution.engine import Engine
from basestation.progress.watermark import NEVER
from basestation.replay.inputs import read_recording
from basestation.replay.result import Result
from basestation.replay.statements import read_statements
from basestation.results.schema import schema_of
from basestation.updates.update import split_by_query
from tests.agreement.history import bag, covered


def said_by(bed, name):
    """The current rows and coverage of a query, by the station."""
    number = bed.numbers[name]
    feed = bed.station.feed
    return now_of(feed.schema(number), [each.update for each in feed.read(number)])


def said_of(bed, inputs, text, others=MappingProxyType({}), came=0, begun=MappingProxyType({}), silent=0):
    """The same as a replay of inputs has it, in which the query is asked in clock tick `came`.

    `others` has by extent the (tick, site, delivery) of readings that arrived for other queries: they count as present, and have
    no values here. `begun` has by extent the clock tick of the first query that read it. Without it the replay begins at tick
    0. It ends at the clock of the station, or so many `silent` ticks later.
    """
    [given] = statements = read_statements([text], bed.catalog)
    recording = read_recording(bed.catalog, inputs, statements)
    engine = Engine(recording.catalog, min(begun.values(), default=0), live=bool(begun))
    clock = bed.station.engine.clock
    for name, versions in recording.versions.items():
        for tick, columns in versions:
            engine.load(name, tick, columns)
    batches = [
        (name, batch.take(np.argsort(batch.arrival, kind="stable"))) for name, batch in recording.batches.items()
    ]
    for name, keys in others.items():
        tick, site, arrival = np.array(keys, np.int64).reshape(-1, 3).T
        batches.append((name, Batch(tick, site, arrival, np.zeros(len(tick), np.int64), {})))

    def deliver_before(tick):
        for name, batch in batches:
            engine.deliver(name, batch.take((batch.arrival > engine.clock) & (batch.arrival < tick)))
        if tick > engine.clock + 1:
            engine.on_clock(tick - 1)

    first = [(tick, name) for name, tick in begun.items() if tick < came]
    for number, (tick, name) in enumerate(sorted(first), 1):
        deliver_before(tick)
        engine.add(-number, read_statements([f"SELECT tick FROM {name}"], bed.catalog)[0].bound)
    deliver_before(came)
    engine.add(given.number, given.bound, reports_from=dict.fromkeys(others, NEVER))
    for number in range(1, len(first) + 1):
        engine.remove(-number)
    for name, batch in batches:
        engine.deliver(name, batch.take((batch.arrival > engine.clock) & (batch.arrival <= clock)))
    # No tick is over yet where the run ends in the tick in which the query came.
    updates = engine.on_clock(clock + silent) if clock + silent > engine.clock else []
    return now_of(schema_of(given.number, given.bound), split_by_query(updates))


def now_of(shape, updates):
    """The rows and the coverage of windows, or of the ticks of a stream, and whether the query has ended.

    The index of a tuple counts what came, which is less where motes filter (semantics 1.7), so it is left out.
    """
    result, number = Result([shape]), shape.number
    result.add(updates)
    now, said = result.current(number), {}
    if isinstance(now, dict):
        said = {("window", key): bag(rows) for key, rows in now.items()}
        said |= {("coverage of", told.key): covered(told.coverage) for told in result.windows(number)}
    else:
        for tick, _, row in now:
            said.setdefault(("tuples at", tick), bag([])).update(bag([row]))
        said |= {("coverage of", told.tick): covered(told.coverage) for told in result.epochs(number)}
    if number in result.errors:
        said["ended", number] = result.errors[number].code, result.errors[number].clock
    return said


def difference(expected, got):
    """The first difference in words, or None."""
    for key in sorted(expected.keys() | got.keys(), key=lambda key: (str(key[1]), key[0])):
        if expected.get(key) != got.get(key):
            return f"{key[0]} {key[1]}: expected {expected.get(key, 'nothing')}, got {got.get(key, 'nothing')}"
    return None
