"""Epoch marks among the tuples of many queries: as for each query alone, and found for all of them together."""

import sys

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.algebra.vector import Vector
from basestation.execution.columns.tuples import Tuples
from basestation.execution.engine import Engine
from basestation.execution.output.mark_places import interleave_epochs, place_epochs
from basestation.execution.output.stream_output import interleave_marks
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.updates.update import EpochMarks, Rows, TupleUpdates, split_interleaved
from tests.conftest import count_of


@pytest.mark.parametrize("seed", range(count_of(20, 200)))
def test_marks_of_many_queries_stand_as_for_each_alone(seed):
    """A query may have no tuple, no epoch, or tuples behind the last mark."""
    rng = np.random.default_rng(seed)
    arrivals = np.sort(rng.integers(0, 12, rng.integers(0, 30)))
    matching = {slot: np.flatnonzero(rng.random(len(arrivals)) < rng.choice([0, 0.5, 1])) for slot in range(8)}
    slots = np.repeat(list(matching), list(map(len, matching.values())))
    rows = np.concatenate(list(matching.values()))
    ticks = {number: np.sort(rng.choice(14, rng.integers(1, 4), replace=False)) for number in (1, 2)}
    news = {number: [(marks_at(tick), np.ones(len(tick), bool))] for number, tick in ticks.items()}
    epochs = rng.integers(0, 3, 8)  # 0: without epochs
    placed = place_epochs(news, epochs, np.arange(8), slots, rows, arrivals)
    for slot, which in matching.items():
        alone = tuples_at(arrivals[which])
        given = TupleUpdates(slot, *[arrivals[which]] * 3, Rows((Vector(which),), len(which)))
        own = [(EpochMarks(slot, marked.tick, marked.coverage), new) for marked, new in news.get(int(epochs[slot]), ())]
        expected = split_interleaved(interleave_marks(alone, given, own, ()))
        found = split_interleaved(interleave_epochs(slot, given if len(given) else None, placed.get(slot)))
        assert list(map(plain, found)) == list(map(plain, expected))


def marks_at(tick):
    return EpochMarks(0, tick, {"road": (tick, tick + 1)})


def tuples_at(arrival):
    return Tuples(*[arrival] * 7, np.zeros(len(arrival), bool), {})


def plain(update):
    """An update as plain values."""
    if isinstance(update, EpochMarks):
        return [(each.query, each.tick, each.coverage) for each in update]
    return update.query, update.tick.tolist(), update.rows.to_lists()


@pytest.mark.promise("speed")
def test_epoch_of_more_queries_takes_as_many_searches():
    assert calls_of_epoch(60) < calls_of_epoch(20) + 10


def calls_of_epoch(queries):
    """Calls of `searchsorted` and `take` in the step of one epoch, of queries with equal rows."""
    catalog = read_schema("road: sensed (site:integer, n:integer) every 1 sec at sites 1 .. 3")
    engine, site = Engine(catalog), np.arange(1, 4)
    for number in range(queries):
        engine.add(number, bind_text(f"SELECT site FROM road WHERE n > {-number}", catalog)[0])
    calls = []
    for tick in range(3):
        ticks = np.full(3, tick)
        engine.deliver("road", Batch(ticks, site, ticks, unit_weights(3), {"site": site, "n": site}))
        calls.append(0)

        def count(_, event, called, calls=calls):
            calls[-1] += event == "c_call" and called.__name__ in ("searchsorted", "take")

        sys.setprofile(count)
        try:
            engine.on_clock(tick)
        finally:
            sys.setprofile(None)
    return calls[-1]
