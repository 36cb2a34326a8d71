"""The operators that EXPLAIN lists are those that the engine runs, with bounds on their states at declared rates."""

import numpy as np
import pytest

from basestation.algebra.vector import Vector
from basestation.execution.description import sum_state
from basestation.execution.engine import Engine
from basestation.explain import explain_statement
from basestation.explain.operators import build_executable_plan
from basestation.planner.catalog import read_schema
from tests.planner.binder_helpers import bound

CATALOG = read_schema("""
r: sensed (site:integer, v:integer, s:string) every 10 sec at sites 1, 2, 3 wait 25 sec late drop
revised: sensed (site:integer, v:integer, s:string) every 10 sec at sites 1, 2, 3 wait 25 sec late revise by 1 min
one: sensed (v:integer) every 1 sec at sites 1 late drop
all: sensed (site:integer, v:integer) every 10 sec at sites all late drop
p: pushed (a:integer, s:string) late drop
late: pushed (a:integer, s:string)
t: stored (a:integer, s:string)
""")


def lines(text):
    return build_executable_plan(bound(text, CATALOG)).operators


def limit(text, name):
    """The bound on the state of the only operator whose name begins so."""
    (found,) = [line.state.limit for line in lines(text) if line.name.startswith(name) and line.state]
    return found


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM r",
        "SELECT v FROM r WHERE v > 3",
        "SELECT MAX(v) FROM r [FROM NOW-20 TO NOW SLIDE 10 SEC]",
        "ISTREAM(SELECT r.v FROM r [NOW], one [NOW] WHERE r.v = one.v)",
        "SELECT a FROM t ORDER BY a LIMIT 3",
    ],
)
def test_explained_operators_are_those_that_run(text):
    engine = Engine(CATALOG)
    engine.add(1, bound(text, CATALOG))
    engine.on_clock(30)
    running = [(line.depth, line.name, line.how) for line in engine.describe(1)]
    assert [(line.depth, line.name, line.how) for line in lines(text)] == running


@pytest.mark.parametrize(
    ("window", "epochs"),
    [
        ("[NOW]", 1),
        ("[FROM NOW-10 TO NOW SLIDE 10 SEC]", 2),
        ("[FROM NOW-9 TO NOW SLIDE 10 SEC]", 1),
        ("[FROM NOW-20 TO NOW SLIDE 10 SEC]", 3),
        ("[FROM NOW-20 TO NOW-20 SLIDE 20 SEC]", 3),  # tuples after the range enter it later
        ("[FROM NOW TO NOW-10 SLIDE 10 SEC]", 1),
    ],
)
def test_window_state_holds_range_of_later_windows(window, epochs):
    assert limit(f"SELECT MEDIAN(v) FROM r {window}", "window state") >= 3 * epochs


@pytest.mark.parametrize(
    ("window", "rows"), [("[FROM NOW-2 TO NOW SLIDE 5 ROWS]", 3), ("[FROM NOW-9 TO NOW-7 SLIDE 1 ROW]", 3)]
)
def test_row_windows_hold_their_rows(window, rows):
    assert limit(f"SELECT a FROM p {window}", "row windows") >= rows


def test_log_holds_readings_during_wait():
    assert limit("SELECT v FROM r", "acquire r") == 3 * 3


def test_log_reaches_back_to_horizon_and_state_to_window():
    plan = "SELECT MEDIAN(v) FROM revised [FROM NOW-20 TO NOW SLIDE 10 SEC]"
    assert limit(plan, "acquire revised") == 3 * 9  # 60 seconds of the horizon and 25 of the wait
    assert limit(plan, "window state") == 3 * 3  # 20 seconds of the range, both ends included


def test_landmark_window_keeps_few_slices():
    assert limit("SELECT COUNT(*) FROM p [UNBOUNDED SLIDE 10 SEC]", "slices of COUNT(*)") in (None, 2, 3)


@pytest.mark.parametrize(
    ("window", "slices"),
    [
        ("[FROM NOW-9 TO NOW SLIDE 10 SEC]", 2),  # one cut for each slide
        ("[FROM NOW-10 TO NOW SLIDE 10 SEC]", 5),  # two: closed ranges end one tick later
        ("[FROM NOW-59 TO NOW SLIDE 10 SEC]", 7),
        ("[FROM NOW-29 TO NOW-20 SLIDE 10 SEC]", 4),
    ],
)
def test_slices_reach_back_to_begin_of_range(window, slices):
    assert limit(f"SELECT SUM(v) FROM one {window}", "slices of SUM") >= slices


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT MEDIAN(a) FROM p [FROM NOW-9 TO NOW SLIDE 10 SEC]", "window state"),
        ("SELECT a FROM t", "read t"),
        ("SELECT a FROM t [SCAN 10 SEC]", "scan t"),
        ("SELECT a FROM p", "receive p"),
        ("ISTREAM(SELECT a FROM t [SCAN 10 SEC])", "ISTREAM"),
    ],
)
def test_state_without_declared_rate_has_no_limit(text, name):
    assert limit(text, name) is None


def test_plan_that_cannot_run_gives_reason():
    explained = explain_statement(bound("SELECT v FROM all", CATALOG))
    assert explained["physical"] == [] and "at sites all" in explained["refused"]


def test_memory_sums_limits_and_lists_states_without():
    text = "SELECT r.v, t.s FROM r [NOW], t [SCAN 10 SEC] WHERE r.v = t.a"
    known, open_ended = sum_state(lines(text))
    assert known == sum(line.state.limit_bytes for line in lines(text) if line.state and line.state.limit is not None)
    assert {state.what for state in open_ended} >= {"rows of the table"}
    assert explain_statement(bound(text, CATALOG))["memory"]["bytes"] == known


@pytest.mark.parametrize(
    ("where", "shown"),
    [
        ("EXISTS (SELECT s FROM t WHERE a > 3)", "select EXISTS(subquery)"),
        ("NOT EXISTS (SELECT s FROM t WHERE a > 3)", "select not EXISTS(subquery)"),
        ("a IN (SELECT a FROM t WHERE a > 3)", "select t.a in (subquery)"),
        ("a > (SELECT MIN(a) FROM t WHERE a > 3)", "select t.a>SCALAR(subquery)"),
    ],
)
def test_subquery_is_shown_before_and_after_its_result(where, shown):
    engine = Engine(CATALOG)
    engine.load("t", 0, {"a": Vector(np.arange(9)), "s": Vector(np.array(["x"] * 9, object))})
    engine.add(1, bound(f"SELECT s FROM t WHERE {where}", CATALOG))
    before = [operator.name for operator in engine.describe(1)]
    assert len(engine.on_clock(5)) == 1, "it is answered"
    assert shown in before
    assert [operator.name for operator in engine.describe(1)] == before
