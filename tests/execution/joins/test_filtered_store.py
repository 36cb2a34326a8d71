"""Joins of queries that differ in the WHERE of one stream: joined once, each query gives the updates that it gives alone."""

import random

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.algebra.vector import Vector
from basestation.execution.engine import Engine
from basestation.execution.joins.join_inputs import JoinStore
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.replay.inputs import read_recording
from tests.execution.test_sharing import NEVER, Asked, Case

WINDOW = "[FROM NOW-3 TO NOW SLIDE 1 SEC]"
TABLE = f"SELECT r.site, r.v, k.name FROM road {WINDOW} AS r, kinds [SCAN 1 SEC] AS k WHERE r.site = k.site AND {{}}"
GROUPS = f"SELECT k.name, SUM(r.v) AS s FROM road {WINDOW} AS r, kinds [SCAN 1 SEC] AS k WHERE r.site = k.site AND {{}} GROUP BY k.name"
ITSELF = f"SELECT r.site, b.v FROM road {WINDOW} AS r, road {WINDOW} AS b WHERE r.site = b.site AND {{}}"
SCHEMA = """road: sensed (site:integer, v:integer, w:integer) every 1 sec at sites 1..3 late revise by 6 sec
kinds: stored (site:integer, name:string)
"""


def case_of(seed, count=10):
    """Joins with a table and of a stream with itself, under conditions of their own; some come later or go."""
    rng, catalog = random.Random(seed), read_schema(SCHEMA)
    rows = [
        {"_tick": tick, "_site": site, "_arrival": tick + rng.choice((0, 0, 0, 3, 5)), "v": rng.randrange(6), "w": rng.randrange(9)}
        for tick in range(30) for site in (1, 2, 3) if rng.random() < 0.9
    ]  # fmt: skip
    kinds = [{"site": 1, "name": "a"}, {"site": 2, "name": "b"}, {"site": 2, "name": "c"}]
    recording = read_recording(catalog, {"road": sorted(rows, key=lambda row: row["_arrival"]), "kinds": kinds})
    terms = (
        lambda: f"r.v > {rng.randrange(6)}", lambda: f"r.v + r.w < {rng.randrange(12)}", lambda: f"r.v = {rng.randrange(6)}"
    )  # fmt: skip
    queries = []
    for _ in range(count):
        text = rng.choice((TABLE, TABLE, GROUPS, ITSELF)).format(rng.choice(terms)())
        queries.append(Asked(text, rng.choice((0, 0, 6, 13)), rng.choice((NEVER, NEVER, 9, 20))))
    corrections = {
        clock: bind_text(f"REVISE road SET v = {rng.randrange(6)} WHERE w = {rng.randrange(9)}", catalog)
        for clock in rng.sample(range(6, 28), 2)
    }
    return Case(recording, [query for query in queries if query.comes < query.goes], corrections)


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("tidy_every", (1, 3, NEVER))
def test_joins_with_own_where_give_updates_of_query_alone(tidy_every, rng):
    seed = rng.randrange(2**32)
    found = case_of(seed).difference(tidy_every)
    assert found is None, f"case {seed}: {found}"


def engine_with(texts):
    catalog = read_schema(SCHEMA)
    engine = Engine(catalog)
    engine.load("kinds", -1, {"site": Vector(np.array([1, 2])), "name": Vector(np.array(["a", "b"], object))})
    for number, text in enumerate(texts):
        engine.add(number, bind_text(text, catalog)[0])
    return engine


@pytest.mark.promise("queries-apart")
@pytest.mark.parametrize("text", (TABLE, GROUPS, ITSELF))
def test_joins_that_differ_in_where_share_all_but_output(text):
    many = engine_with([text.format(f"r.v > {number}") for number in range(100)])
    assert len(many._graph) == len(engine_with([text.format("r.v > 0")])._graph) + 99  # for each what it shows


def test_filtered_input_holds_only_tuples_that_a_query_reads():
    engine = engine_with([ITSELF.format("r.v = 5"), ITSELF.format("r.v = 4")])
    for clock in range(20):
        sites = np.array([1, 2, 3])
        ticks = np.full(3, clock)
        values = {"site": sites, "v": (ticks + sites) % 10, "w": ticks}
        engine.deliver("road", Batch(ticks, sites, ticks, 0 * ticks + 1, values))
        engine.on_clock(clock)
    stores = [each for each in engine._graph._operators.values() if isinstance(each, JoinStore)]
    filtered, whole = sorted(stores, key=len)
    assert filtered.is_filtered and not whole.is_filtered
    shown = [filtered.tuples.column(id, np.arange(filtered.tuples.count)) for id in filtered.none.columns]
    assert any(set(vector.values.tolist()) == {4, 5} for vector in shown)
    assert len(whole) > 4 * len(filtered)
