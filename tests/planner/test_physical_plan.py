"""How operators are carried out, and the bounds on what they keep."""

import pytest

from basestation.explain import explain_statement
from basestation.planner.catalog import read_schema
from basestation.planner.physical_plan import plan_operators, sum_memory
from basestation.planner.rewriter import rewrite
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


def states(text, better=True):
    """(what, count, bytes of each) by the name of the operator."""
    plan = bound(text, CATALOG)
    root = rewrite(plan)[0].root if better else plan.root
    return {o.label.split()[0]: o.state and (o.state.what, o.state.count, o.state.each) for o in plan_operators(root)}


@pytest.mark.parametrize(
    ("window", "epochs"),
    [
        ("[NOW]", 1),
        ("[FROM NOW-10 TO NOW SLIDE 10 SEC]", 2),
        ("[FROM NOW-9 TO NOW SLIDE 10 SEC]", 1),
        ("[FROM NOW-20 TO NOW SLIDE 1 HOUR]", 7_201),  # 20 hours: every 10 seconds, and both ends
        ("[FROM NOW-20 TO NOW-20 SLIDE 20 SEC]", 3),  # tuples between the range and now will enter it
        ("[FROM NOW TO NOW-10 SLIDE 10 SEC]", 1),
    ],
)
def test_a_ring_holds_all_that_windows_to_come_may_reach(window, epochs):
    assert states(f"SELECT v FROM r {window}", better=False)["TimeWindow"][1] == 3 * epochs


@pytest.mark.parametrize(
    ("window", "rows"), [("[FROM NOW-2 TO NOW SLIDE 5 ROWS]", 3), ("[FROM NOW-9 TO NOW-7 SLIDE 1 ROW]", 10)]
)
def test_a_ring_of_rows(window, rows):
    assert states(f"SELECT a FROM p {window}")["RowWindow"][1] == rows


def test_what_was_delivered_is_kept_whole_while_it_waits():
    assert states("SELECT v FROM r")["StreamAcquire"] == ("tuples delivered", 3 * 3, 24 + 8 + 8 + 4)


def test_what_may_be_corrected_is_kept_back_to_the_horizon():
    plan = states("SELECT v FROM revised [FROM NOW-20 TO NOW SLIDE 10 SEC]", better=False)
    assert plan["StreamAcquire"][1] == 3 * 9  # 60 seconds, and 25 that are waited for
    assert plan["TimeWindow"][1] == 3 * 9  # 60 seconds, and 20 of the range
    slices = states("SELECT site, MAX(v) FROM revised [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY site")
    assert slices["SliceAggregation"][1] == 3 * (7 + 1)  # 70 seconds, and the slice that is being filled
    assert states("ISTREAM(SELECT v FROM revised [NOW])")["IStream"][1] == 3 * 7
    assert states("SELECT a FROM late [FROM NOW-2 TO NOW SLIDE 5 ROWS]")["RowWindow"][1] is None


def test_of_a_landmark_window_all_that_is_settled_is_one_state():
    assert states("SELECT COUNT(*) FROM p [UNBOUNDED SLIDE 10 SEC]")["SliceAggregation"][1] == 2
    assert states("SELECT COUNT(*) FROM revised [UNBOUNDED SLIDE 10 SEC]")["SliceAggregation"][1] == 7 + 1


def test_numbers_are_eight_bytes_and_strings_a_code_of_four():
    assert states("SELECT v, s FROM r [NOW]", better=False)["TimeWindow"][2] == 24 + 8 + 8 + 4


@pytest.mark.parametrize(
    ("window", "slices"),
    [
        ("[FROM NOW-9 TO NOW SLIDE 10 SEC]", 2),  # one cut for each slide
        ("[FROM NOW-10 TO NOW SLIDE 10 SEC]", 5),  # two: closed ranges end one tick on
        ("[FROM NOW-59 TO NOW SLIDE 10 SEC]", 7),
        ("[FROM NOW-29 TO NOW-20 SLIDE 10 SEC]", 4),
    ],
)
def test_slices_reach_back_to_the_begin_of_the_range(window, slices):
    assert states(f"SELECT SUM(v) FROM one {window}")["SliceAggregation"][:2] == ("partial states", slices)


def test_groups_by_site_are_as_many_as_sites():
    found = states("SELECT site, MAX(v) FROM r [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY site")
    assert found["SliceAggregation"] == ("partial states", 2 * 3, 8 + 9)
    renamed = "SELECT s, MAX(x.v) FROM (SELECT site AS s, v FROM r) AS x [FROM NOW-9 TO NOW SLIDE 10 SEC] GROUP BY s"
    assert states(renamed)["SliceAggregation"][1] == 2 * 3


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v, MAX(site) FROM r [NOW] GROUP BY v",
        "SELECT v, site, COUNT(*) FROM r [NOW] GROUP BY site, v",
        "SELECT site, MAX(v) FROM all [NOW] GROUP BY site",
        "SELECT y, COUNT(*) FROM (SELECT site + 1 AS y FROM r) AS x [NOW] GROUP BY y",
    ],
)
def test_other_groups_are_told_by_the_group(text):
    assert states(text)["SliceAggregation"][1] is None


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("SELECT a FROM p [FROM NOW-9 TO NOW SLIDE 10 SEC]", "TimeWindow"),
        ("SELECT v FROM all", "StreamAcquire"),
        ("SELECT a FROM t", "Once"),
        ("SELECT a FROM t [SCAN 10 SEC]", "Scan"),
        ("SELECT MEDIAN(a) FROM p [UNBOUNDED SLIDE 10 SEC] FOR 1 DAY", "LandmarkWindow"),
        ("SELECT a FROM p FOR (; t < 9; t++) { WindowIs(p, t, t); }", "LoopWindow"),
        ("ISTREAM(SELECT a FROM t [SCAN 10 SEC])", "IStream"),
    ],
)
def test_what_no_rate_is_declared_for_is_told_by_the_thing(text, operator):
    assert states(text)[operator][1] is None


def test_joins_and_products_hold_their_inputs():
    joined = states("SELECT r.v FROM r [NOW], one [FROM NOW-4 TO NOW SLIDE 10 SEC] WHERE r.v = one.v")
    assert joined["WindowJoin"] == ("keyed tuples", 3 + 5, 8 + 8)
    assert states("SELECT r.v FROM r [NOW], one [NOW]")["WindowCrossProduct"][1] == 3 + 1


def test_a_converter_remembers_a_window():
    assert states("ISTREAM(SELECT v FROM r [FROM NOW-10 TO NOW SLIDE 10 SEC])")["IStream"][1] == 6
    assert states("DSTREAM(SELECT site, MAX(v) FROM r [NOW] GROUP BY site)")["DStream"][1] == 3
    assert states("RSTREAM(SELECT v FROM r [NOW])")["RStream"] is None


def test_a_window_over_a_converter_holds_what_it_can_give():
    text = "SELECT x.v FROM (RSTREAM(SELECT v FROM r [NOW])) AS x [FROM NOW-20 TO NOW SLIDE 20 SEC]"
    outer, _ = [o for o in plan_operators(bound(text, CATALOG).root) if o.label.startswith("TimeWindow")]
    assert outer.state.count == 3 * 3


def test_memory_is_the_sum_of_what_is_known_and_a_list_of_the_rest():
    plan = bound("SELECT r.v, t.s FROM r [NOW], t [SCAN 10 SEC] WHERE r.v = t.a", CATALOG)
    operators = plan_operators(rewrite(plan)[0].root)
    known, open_ended = sum_memory(operators)
    assert known == sum(o.state.bytes for o in operators if o.state and o.state.count is not None)
    assert [s.what for s in open_ended] == ["keyed tuples", "rows of the table"]
    assert explain_statement(plan)["memory"]["bytes"] == known


def test_exact_sums_of_floats_are_larger_than_those_of_integers():
    catalog = read_schema("f: sensed (v:integer, x:float) every 1 sec at sites 1")
    size = {
        name: next(
            o.state.each
            for o in plan_operators(bound(f"SELECT SUM({name}) FROM f [NOW]", catalog).root)
            if o.label.startswith("WindowAgg")
        )
        for name in ("v", "x")
    }
    assert size["x"] > size["v"]
