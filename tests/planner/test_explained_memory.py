"""The memory that EXPLAIN states is the memory that a running query takes."""

import tracemalloc

import numpy as np
import pytest

from acquisition.batch import Batch, unit_weights
from basestation.execution.description import held_states, sum_state
from basestation.execution.engine import Engine
from basestation.explain import explain_statement, memory_line
from basestation.explain.operators import build_executable_plan
from basestation.planner.catalog import read_schema
from tests.planner.binder_helpers import bound

CATALOG = read_schema(
    "lab: sensed (site:integer, temp:integer, light:integer) every 30 sec at sites 1..54 late revise by 5 hours\n"
    "hits: pushed (k:integer, v:integer) late revise by 5 hours\n"
)
SITES = np.arange(1, 55)


def run_of(text, rng, epochs):
    """The bytes that an engine takes from the tenth epoch on, in which all sites report, and the lines of EXPLAIN then."""
    plan = bound(text, CATALOG)
    engine = Engine(CATALOG, live=True)
    engine.add(1, plan)
    names = {line.name.rpartition(" ")[2] for line in engine.describe(1)}
    for tick in range(0, 30 * epochs, 30):
        if tick == 30 * 10:
            tracemalloc.start()
        ticks = np.full(len(SITES), tick)
        if "lab" in names:
            values = {"site": SITES, "temp": rng.integers(0, 4_000, 54), "light": rng.integers(0, 1_024, 54)}
            engine.deliver("lab", Batch(ticks, SITES, ticks + 1, unit_weights(54), values))
        if "hits" in names:
            values = {"k": rng.integers(0, 54, 54), "v": rng.integers(0, 4_000, 54)}
            engine.deliver("hits", Batch(ticks, np.zeros(54, np.int64), ticks + 1, unit_weights(54), values))
        engine.on_clock(tick + 1)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return taken, engine.describe(1)


JOIN = "SELECT a.temp FROM lab [NOW] a, lab [FROM NOW - 1 HOUR TO NOW SLIDE 30 SEC] b WHERE a.site = b.site AND a.temp = b.temp"


@pytest.mark.parametrize(
    ("text", "epochs"),
    [
        ("SELECT temp FROM lab WHERE temp > 4", (480, 480)),
        ("SELECT v FROM hits WHERE v > 4", (480, 480)),
        (JOIN, (480, 480)),
        ("SELECT h.v FROM hits [FROM NOW - 1 HOUR TO NOW SLIDE 30 SEC] h, lab [NOW] l WHERE h.k = l.site AND h.v = l.temp", (200, 480)),
    ],
    ids=("sensed", "pushed", "one extent joined", "two extents joined"),
)  # fmt: skip
def test_bytes_of_entries_are_those_that_hours_take(text, epochs, counts):
    """Epochs of 30 s at small and full counts, all of which the horizon reaches. A log packs what is some hours old."""
    taken, lines = run_of(text, np.random.default_rng(1), counts(*epochs))
    states = [line.state for line in held_states(lines)]
    stated = sum(state.entry_bytes * state.entries for state in states)
    assert 0.65 * taken < stated < 1.2 * taken, (taken, stated)
    held = sum(state.bytes for state in states)
    assert 0.55 * taken < held < 1.1 * taken, (taken, held)
    for state in (line.state for line in lines if text == JOIN and line.name == "join state" and line.state):
        assert state.bytes > 80 * state.entries, "it counts its index"


def test_memory_names_each_input_once():
    text = (
        "SELECT a.v FROM hits [FROM NOW-5 TO NOW SLIDE 1 SEC] a, hits [FROM NOW TO NOW SLIDE 1 SEC] b WHERE a.k = b.k"
    )
    memory = explain_statement(bound(text, CATALOG))["memory"]
    assert [each["what"] for each in memory["and_per"]] == ["tuples of hits"]
    assert memory_line(memory).count("hits") == 1
    open_ended = sum_state(build_executable_plan(bound(text, CATALOG)).operators)[1]
    assert memory["and_per"][0]["bytes"] == sum(state.entry_bytes for state in open_ended)


def test_log_is_counted_once_for_several_windows():
    [[log, *_], once] = [
        [line.state.limit_bytes for line in build_executable_plan(bound(text, CATALOG)).operators if line.state]
        for text in ("SELECT temp FROM lab", JOIN)
    ]
    assert len(once) > 2 and explain_statement(bound(JOIN, CATALOG))["memory"]["bytes"] < sum(once) - 0.9 * log
