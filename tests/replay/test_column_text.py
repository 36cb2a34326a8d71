"""Answers written by column equal those written value by value."""

import json
import random

import numpy as np

from acquisition.schema import Type
from basestation.algebra.expression import Column
from basestation.algebra.vector import Vector, constant
from basestation.replay.column_text import text_of
from basestation.replay.csv_output import CsvOutput, field
from basestation.replay.json_output import JsonOutput
from basestation.replay.tick_order import order_by_tick
from basestation.results.schema import ResultSchema
from basestation.results.wire import update_as_json
from basestation.updates.update import EpochMarks, Interleaved, Rows, TupleUpdates, WindowUpdates, split_interleaved
from tests.algebra.vectors import vector_of

STREAM = ResultSchema(1, "stream", (Column(1, Type.FLOAT, "c", scale=2), Column(2, Type.STRING, "word")))
WINDOWS = ResultSchema(2, "window", (Column(3, Type.INTEGER, "n"), Column(4, Type.FLOAT, "x")))
WORDS = ["", None, 'a "b", c', "d\ne", "木", " f ", "null", "plain"]


def rows(rng, query, count):
    values = {
        "c": lambda: rng.choice([None, 0, -5, 125, 10**15, 2**62]),
        "word": lambda: rng.choice(WORDS),
        "n": lambda: rng.choice([None, -(2**63), 0, 7]),
        "x": lambda: rng.choice([None, 0.0, -0.0, 1.0, 0.1, 1e-4, 9e-5, 1e16, 9e15, 5e-324, rng.gauss(0, 1e3)]),
    }
    types = [Type.INTEGER if c.scale is not None else c.type for c in query.columns]
    columns = [[values[c.label]() for _ in range(count)] for c in query.columns]
    return Rows(tuple(vector_of(list(c), t) for c, t in zip(columns, types, strict=True)), count)


def ticks(rng, count):
    return np.array(sorted(rng.choices(range(0, 50, 5), k=count)) if rng.random() < 0.7 else
                    rng.choices(range(50), k=count), np.int64)  # fmt: skip


def coverage(rng, count):
    return {"road": (np.array(rng.choices(range(9), k=count), np.int64), np.full(count, 9)), "hits": None}


def tuples(rng, least=1):
    count = rng.randint(least, 8)
    index = np.array([rng.randint(1, 99) for _ in range(count)], np.int64)
    weight = np.array([rng.choice([1, 1, -1]) for _ in range(count)], np.int64)
    return TupleUpdates(1, ticks(rng, count), index, weight, rows(rng, STREAM, count))


def marks(rng):
    count = rng.randint(1, 4)
    return EpochMarks(1, ticks(rng, count), coverage(rng, count))


def interleaved(rng):
    of, between = tuples(rng, 0), marks(rng)
    at = np.array(sorted(rng.randint(0, len(of)) for _ in range(len(between))), np.int64)
    return Interleaved(1, of, between, at)


def windows(rng):
    count = rng.randint(1, 5)
    offsets = [np.cumsum([0, *(rng.choice([0, 0, 1, 3]) for _ in range(count))]) for _ in range(2)]
    added, removed = (rows(rng, WINDOWS, int(of[-1])) for of in offsets)
    tags = ticks(rng, count), np.ones(count, np.int64), np.full(count, None, object)
    revision = np.array([rng.randint(0, 2) for _ in range(count)], np.int64)
    return WindowUpdates(2, *tags, revision, coverage(rng, count), added, offsets[0], removed, offsets[1])


def csv_row_by_row(update):
    """The lines of CSV for the header _query,_tick,_n,_index,_revision,_weight,_used,_due,c,word,n,x."""
    if isinstance(update, TupleUpdates):
        tags = zip(update.tick.tolist(), update.index.tolist(), update.weight.tolist(), strict=True)
        for (tick, index, weight), row in zip(tags, update.rows.to_lists(STREAM.scales), strict=True):
            yield ",".join(map(field, [1, tick, None, index, None, weight, None, None, *row, None, None]))
    elif isinstance(update, WindowUpdates):
        for window in update:
            for weight, of in ((-1, window.removed), (1, window.added)):
                for row in of.to_lists(WINDOWS.scales):
                    tags = [2, window.tick, window.n, None, window.revision, weight, *window.coverage["road"]]
                    yield ",".join(map(field, [*tags, None, None, *row]))


def json_row_by_row(update):
    scales = {1: STREAM.scales, 2: WINDOWS.scales}[update.query]
    for line in update_as_json(update, scales):
        yield json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def test_output_by_column_equals_output_by_row(rng: random.Random, counts):
    formats = {CsvOutput: csv_row_by_row, JsonOutput: json_row_by_row}
    for _ in range(counts(150, 1_500)):
        emitted = [rng.choice([tuples, marks, interleaved, windows])(rng) for _ in range(rng.randint(1, 5))]
        if rng.random() < 0.4:
            emitted = [update for update in emitted if update.query == 1]
        ordered = order_by_tick(list(split_interleaved(emitted)))
        for kind, line_by_line in formats.items():
            expected = "".join(f"{line}\n" for update in ordered for line in line_by_line(update))
            assert kind([STREAM, WINDOWS]).updates(emitted) == expected


def test_doubles_are_shortest_text_that_reads_back(rng: random.Random):
    bits = np.array([rng.getrandbits(64) for _ in range(5_000)], np.uint64).view(np.float64)
    sizes = 10.0 ** np.array([rng.uniform(-5, 17) for _ in range(5_000)])
    for values in (bits[np.isfinite(bits)], sizes, np.round(sizes, 2), np.array([0.0, -0.0, 1e-4, 1e16])):
        for few in np.array_split(values, 40):
            assert text_of(Vector(few), None, field).to_pylist() == list(map(repr, few.tolist()))


def test_large_integers_and_repeated_values():
    sums = np.array([2**70, -(2**70), 5], object)
    assert text_of(Vector(sums), None, field).to_pylist() == [str(2**70), str(-(2**70)), "5"]
    assert text_of(Vector(sums), 2, field).to_pylist() == [repr(v / 100) for v in sums]
    assert text_of(Vector(constant("a,b", 3)), None, field).to_pylist() == ['"a,b"'] * 3
    assert text_of(Vector(constant(7, 3), np.array([True, False, True])), 1, field).to_pylist() == ["0.7", None, "0.7"]
