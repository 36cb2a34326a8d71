"""Which operators motes may run, and the reasons against the others."""

import json

import pytest

from basestation.explain import explain_statement, render_statement
from basestation.planner.binder import bind_text
from basestation.planner.raw_ranges import raw_ranges
from innet.deployment import Deployment, SensorSpec, Site
from innet.operators import outline
from innet.operators.mote_expression import SensorValue
from innet.operators.value_ranges import Interval
from tests.planner.pushdown_helpers import CATALOG, pushdown_of


def explained(text, **asked):
    """The codes of the decisions from the top of the plan; `moves` for pushed-down operators."""
    return [decision.code for decision in pushdown_of(text, **asked)[0].decisions]


WINDOW = "[FROM NOW-60 TO NOW SLIDE 30 SEC]"


@pytest.mark.promise("placement")
@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SELECT v FROM f", ["moves"]),
        ("SELECT v FROM f WHERE v > 3", ["moves", "moves"]),
        ("SELECT v FROM f WHERE x * 1.8 + 32 > 80.5", ["moves", "moves"]),
        ("SELECT v FROM f WHERE z > 3", ["float", "moves"]),
        ("SELECT v FROM f WHERE x * y > 3", ["float", "moves"]),
        ("SELECT v FROM f WHERE s = 'a'", ["string", "moves"]),
        ("SELECT v FROM f WHERE LENGTH(s) = 2", ["function", "moves"]),
        ("SELECT v FROM f WHERE v + u > 3", ["wide", "moves"]),
        ("SELECT v FROM f WHERE v * 1e301 > 5", ["float", "moves"]),
        ("SELECT v FROM f WHERE v * 4611686018427387904 > 5", ["wide", "moves"]),
        ("SELECT v FROM f WHERE tick > 30", ["tick", "moves"]),
        ("SELECT v FROM f WHERE v > 3 AND tick > 30", ["moves", "moves"]),
        ("SELECT index, v FROM f WHERE v > 3", ["index", "moves"]),
        ("SELECT v FROM f WHERE SQRT(v) > 3", ["float", "moves"]),
        (f"SELECT AVG(v), COUNT(*) FROM f {WINDOW}", ["moves"]),
        (f"SELECT FIRST(v), LAST(u), STDEV(x) FROM f {WINDOW} WHERE x > 1 GROUP BY site, v", ["moves"]),
        (f"SELECT SUM(v + u) FROM f {WINDOW}", ["wide", "moves"]),
        (f"SELECT MAX(x * 2) FROM f {WINDOW}", ["float", "moves"]),
        (f"SELECT MEDIAN(v) FROM f {WINDOW}", ["readings", "moves"]),
        (f"SELECT COUNT(DISTINCT v) FROM f {WINDOW}", ["readings", "moves"]),
        (f"SELECT MIN(time) FROM f {WINDOW}", ["tick", "moves"]),
        (f"SELECT AVG(v) FROM f {WINDOW} WHERE z > 1", ["float", "float", "moves"]),
        ("SELECT AVG(v) FROM f [FROM NOW-5 TO NOW SLIDE 2 ROWS]", ["rows", "moves"]),
        ("SELECT AVG(v) FROM f [UNBOUNDED SLIDE 30 SEC]", ["moves"]),
        (f"SELECT AVG(v) FROM f {WINDOW} SINCE 100", ["since", "moves"]),
        (f"RSTREAM(SELECT AVG(v) FROM f {WINDOW})", ["moves"]),
        (f"RSTREAM(SELECT v, COUNT(*) FROM f {WINDOW} GROUP BY v)", ["order", "moves"]),
        (f"SELECT AVG(n) FROM app {WINDOW}", ["late", "moves"]),
        (f"SELECT AVG(n) FROM drop {WINDOW}", ["late", "moves"]),
        ("SELECT AVG(n) FROM drop [NOW]", ["moves"]),
        ("SELECT AVG(n) FROM short [FROM NOW-100 TO NOW SLIDE 60 SEC]", ["late", "moves"]),
        ("SELECT AVG(n) FROM short [FROM NOW-29 TO NOW SLIDE 30 SEC]", ["moves"]),
        (f"SELECT AVG(n), MAX(a) FROM g {WINDOW}, p {WINDOW}", ["nested", "join", "moves"]),
        (f"SELECT v, n FROM f {WINDOW}, g {WINDOW} WHERE f.site = g.site", ["join", "moves", "moves"]),
        (f"SELECT v, n FROM f {WINDOW}, g [NOW] WHERE f.site = g.site", ["join", "moves", "moves"]),
        ("SELECT v, n FROM f [NOW], g [NOW] WHERE v > n", ["nested", "join", "moves", "moves"]),
        ("SELECT v, n FROM f [NOW], g [NOW] WHERE f.site = g.site AND v > n", ["moves", "moves", "moves", "moves"]),
        (
            "SELECT a.v FROM f a [NOW], f b [NOW] WHERE a.site = b.site AND a.v > b.u",
            ["join", "join", "moves", "moves"],
        ),
        (f"SELECT COUNT(*) AS n FROM f {WINDOW} GROUP BY v HAVING COUNT(*) > 1", ["nested", "moves"]),
        (f"SELECT AVG(a) FROM p {WINDOW}", []),
        ("SELECT f.v FROM f [NOW], f.HISTORY h [SCAN 1 HOUR] WHERE f.v > 2", ["join", "history", "moves"]),
        (
            f"SELECT a.m, v FROM (RSTREAM(SELECT AVG(v) AS m FROM f {WINDOW})) a [FROM NOW TO NOW SLIDE 30 SEC], f [NOW]",
            ["join", "twice", "moves", "moves"],
        ),
        ("SELECT AVG(v) FROM f [FROM NOW-20000 HOUR TO NOW SLIDE 20000 HOUR]", ["late", "moves"]),
    ],
)
def test_pushdown_decisions(text, codes):
    assert explained(text) == codes


JOIN = "(SELECT tick AS t, site, v FROM f) a [NOW], (SELECT tick AS t, site, n FROM {}) b [NOW] WHERE a.t = b.t AND {}"


@pytest.mark.parametrize(
    ("extent", "condition", "codes"),
    [
        ("g", "a.site = b.site", ["moves", "moves", "moves"]),
        ("g", "a.site = b.site AND a.v > b.n", ["moves", "moves", "moves", "moves"]),
        ("g", "a.v = b.n", ["join", "moves", "moves"]),
        ("far", "a.site = b.site", ["join", "moves", "moves"]),
    ],
)
def test_join_on_site_and_tick_is_pushed_down(extent, condition, codes):
    assert explained("SELECT a.v, b.n FROM " + JOIN.format(extent, condition)) == codes


@pytest.mark.parametrize(
    ("extent", "condition", "codes"),
    [
        ("like", "a.site = b.site AND a.v > b.n", ["moves"]),
        ("like", "a.site = b.site AND a.site > 3", ["join", "moves", "moves", "moves", "moves"]),
        ("g", "a.site = b.site", ["late", "moves", "moves", "moves"]),  # it waits twice as long
        ("far", "a.site = b.site", ["join", "join", "moves", "moves"]),
    ],
)
def test_aggregate_over_site_join_is_pushed_down(extent, condition, codes):
    assert explained("SELECT COUNT(*) AS n, MAX(b.n) AS m FROM " + JOIN.format(extent, condition)) == codes


def test_pushed_join_filters_both_readings():
    found, _ = pushdown_of("SELECT a.v, b.n FROM " + JOIN.format("g", "a.site = b.site AND a.v = b.n AND b.n > 4"))
    assert [(deliver.extent, [text for _, text in outline(deliver.child)]) for deliver in found.readings] == [
        (extent, ["join at the same site and tick where f.v = g.n", "acquire v of f every 10 ticks",
                  "select g.n > 4", "acquire n of g every 10 ticks"])
        for extent in ("f", "g")
    ]  # fmt: skip


def test_every_reason_is_a_sentence():
    found, _ = pushdown_of("SELECT v FROM f WHERE v + u > 3")
    assert found.decisions[0].reason == "f.v + f.u can be -4294967296 to 4294967294, and a mote computes with 32 bits"
    found, _ = pushdown_of(f"SELECT COUNT(*) FROM short {WINDOW}".replace("60", "100").replace("30", "60"))
    assert found.decisions[0].reason.startswith("a slice reaches over ")


def test_corrected_extent_is_not_filtered_on_motes():
    assert explained("SELECT v FROM f WHERE v > 3", corrected=frozenset({"f"})) == ["corrected", "moves"]
    assert explained(f"SELECT AVG(v) FROM f {WINDOW}", corrected=frozenset({"f"})) == ["corrected", "moves"]
    found, _ = pushdown_of("SELECT v FROM f WHERE v > 3", corrected=frozenset({"f"}))
    assert [text for _, text in outline(found.readings[0])] == ["deliver v of f", "acquire v of f every 10 ticks"]


def test_sensor_ranges_allow_more_pushdown():
    """16 bits each: their sum fits. The range of a sensor is in its own scale."""
    sensors = {"v": SensorSpec(-(2**15), 2**15 - 1), "u": SensorSpec(0, 4095), "x": SensorSpec(-55, 125, scale=0)}
    sites = {
        3: Site(3, (0.0, 0.0, 0.0), "telosb", sensors),
        4: Site(4, (0.0, 0.0, 0.0), "telosb", {"u": SensorSpec(-5, 9)}),
    }
    raw = raw_ranges(Deployment("test", 1000, {}, sites, {}, ""), CATALOG)
    assert raw[SensorValue("f", "u")] == Interval(-5, 4095)
    assert raw[SensorValue("f", "x")] == Interval(-5500, 12500)
    assert explained(f"SELECT SUM(v + u) FROM f {WINDOW} WHERE v * u > 3 AND x > u", raw=raw) == ["moves"]
    assert explained(f"SELECT SUM(v * v * u) FROM f {WINDOW}", raw=raw) == ["wide", "moves"]


def test_largest_state_of_expression_contains_others():
    found, _ = pushdown_of(f"SELECT COUNT(v), AVG(v), COUNT(*), STDEV(v), MAX(v), SUM(u) FROM f {WINDOW}")
    [feed] = found.fold_candidates
    assert [kind for kind, _ in feed.fold.states] == ["VARIANCE", "MAX", "SUM"]
    assert feed.sources == (0, 0, None, 0, 1, 2)
    [feed] = pushdown_of(f"SELECT STDEV(v), AVG(v), COUNT(v) FROM f {WINDOW}")[0].fold_candidates
    assert (feed.fold.kinds, feed.sources) == (("VARIANCE",), (0, 0, 0))


def test_fold_replaces_readings_below_it():
    found, _ = pushdown_of(f"SELECT AVG(v) FROM f {WINDOW}")
    [feed] = found.fold_candidates
    assert (found.readings, found.fold_candidates) == ((), (feed,))
    assert [[text for _, text in outline(deliver)] for deliver in feed.unfolded_readings] == [
        ["deliver v of f", "acquire v of f every 10 ticks"]
    ]
    found, _ = pushdown_of(
        f"SELECT a.m, n FROM (RSTREAM(SELECT AVG(v) AS m FROM f {WINDOW})) a [FROM NOW TO NOW SLIDE 30 SEC], g [NOW]"
    )
    assert ([len(found.readings), len(found.fold_candidates)]) == [1, 1]


def test_explain_lists_pushdown_decisions():
    (plan,) = bind_text("SELECT v FROM f WHERE z > 1 AND v > 2", CATALOG)
    explained = json.loads(json.dumps(explain_statement(plan)))
    assert [(d["moves"], d["code"]) for d in explained["network"]] == [(True, "moves"), (True, "moves")]
    text = render_statement(explained)
    assert "\nin the network\n  StreamSelect " in text
    assert (
        "    may run on motes: in part: `f.z` is a float without a scale, and a mote has\n      integers only\n" in text
    )
    (pushed,) = bind_text("SELECT a FROM p", CATALOG)
    assert "in the network" not in render_statement(explain_statement(pushed))
