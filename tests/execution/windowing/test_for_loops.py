"""For-loop windows in the engine (semantics 10.8 and 14), worked out by hand; and generated ones against the oracle.

FOR (t = 0; t < 3; t += 1) { WindowIs(R, 5*t, 5*t + 4) }

tick   0    4 5    9 10   14
t=0    [----]                    made at 4
t=1           [----]             made at 9
t=2                  [----]      made at 14
"""

import pytest

from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.window import LoopWindow
from basestation.execution.engine import Engine
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.execution.windowing import for_loops
from basestation.execution.windowing.for_loops import EVALUATION_LIMIT
from basestation.execution.windowing.loop_expressions import find_slope
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from basestation.replay.inputs import read_recording
from basestation.updates.update import QueryFailure, split_singly
from tests.agreement.compare import agree, replayed
from tests.execution.query_generators import looping
from tests.execution.test_sharing import Asked, Case
from tests.oracles.generate import case

SCHEMA = """
    r: sensed (v:integer) every 1 sec at sites 1 wait 1 sec late revise by 1 min
    p: pushed (v:integer)
    t: stored (w:integer)
"""


def readings(count, late=()):
    """v is ten times the tick; `late` has (tick, delivery)."""
    by_tick = dict(late)
    return [
        {"_tick": i, "_site": 1, "v": 10 * i} | ({"_arrival": by_tick[i]} if i in by_tick else {}) for i in range(count)
    ]


def run_loop(query, r=(), p=(), t=(), **options):
    return replayed(SCHEMA, {"r": list(r), "p": list(p), "t": list(t)}, [query], **options)


def windows(query, *args, **options):
    """[(tick, t, values)] of the first answers; rows of one column as bare values."""
    said = run_loop(query, *args, **options).result.windows()
    return [(w.tick, w.t, [row[0] if len(row) == 1 else row for row in w.added]) for w in said if w.revision == 0]


def loop(header, windows, query="SELECT v FROM r"):
    return f"{query} FOR ({header}) {{ {windows} }}"


# --- which windows, and when -----------------------------------------------------------------------------------------


def test_snapshot_loop_makes_window_at_right_end():
    found = run_loop(loop("; t == 0; t = -1", "WindowIs(r, 1, 3);"), readings(6), every_tick=True)
    assert [(w.tick, w.n, w.t, w.added) for w in found.result.windows()] == [(3, 1, 0, [(10,), (20,), (30,)])]
    assert found.clocks[1] == [3]  # as soon as its readings are here


def test_landmark_loop_keeps_its_left_end():
    assert windows(loop("t = 2; t <= 4; t++", "WindowIs(r, 2, t);"), readings(7)) == [
        (2, 2, [20]), (3, 3, [20, 30]), (4, 4, [20, 30, 40]),
    ]  # fmt: skip


def test_hopping_loop_takes_durations():
    assert windows(loop("t = ST; t < ST + 7 SEC; t += 3 SEC", "WindowIs(r, t - 1, t);"), readings(9)) == [
        (0, 0, [0]), (3, 3, [20, 30]), (6, 6, [50, 60]),
    ]  # fmt: skip


def test_band_join_combines_windows_of_equal_t_only():
    query = "SELECT x.v AS a, y.v AS b FROM r AS x, r AS y WHERE x.v < y.v FOR (t = 1; t < 3; t++) { WindowIs(x, t - 1, t); WindowIs(y, t, t); }"
    assert windows(query, readings(4)) == [(1, 1, [(0, 10)]), (2, 2, [(10, 20)])]


def test_loop_windows_are_made_in_order():
    """Right ends 4, 2 and 5: the second window is made at 4, where its readings have long been there."""
    found = run_loop(loop("t = 4; t <> 6; t = 14 - 2 * t - t / 4 * 4", "WindowIs(r, t, t);"), readings(8)).result
    assert [(w.tick, w.n, w.t, w.added) for w in found.windows()][:2] == [(4, 1, 4, [(40,)]), (4, 2, 2, [(20,)])]


def test_loop_windows_in_the_past_are_made_at_once():
    query = (loop("t = 2; t <= 4; t++", "WindowIs(r, t - 1, t);"), 6)
    found = replayed(SCHEMA, {"r": readings(9), "p": [], "t": []}, [query], every_tick=True)
    said = found.result.windows()
    assert [(w.tick, w.n, w.t, w.added) for w in said] == [
        (6, 1, 2, [(10,), (20,)]), (6, 2, 3, [(20,), (30,)]), (6, 3, 4, [(30,), (40,)]),
    ]  # fmt: skip
    assert found.clocks[1] == [6, 6, 6]


def test_st_is_the_start_tick():
    query = (loop("t = ST; t < ST + 2; t++", "WindowIs(r, t, t);"), 3)
    said = replayed(SCHEMA, {"r": readings(9), "p": [], "t": []}, [query]).result.windows()
    assert [(w.tick, w.t, w.added) for w in said] == [(3, 3, [(30,)]), (4, 4, [(40,)])]


def test_false_condition_makes_no_window():
    assert windows(loop("; t < 2; t++", "WindowIs(r, t, t);"), readings(4)) == [(0, 0, [0]), (1, 1, [10])]
    assert windows(loop("t = 5; t < 5; t++", "WindowIs(r, t, t);"), readings(4)) == []


def test_right_end_before_left_end_is_an_empty_window():
    assert windows(loop("t = 1; t < 3; t++", "WindowIs(r, t, t - 1);"), readings(4)) == [(0, 1, []), (1, 2, [])]


def test_loop_division_cuts_toward_zero():
    header = "t = -7; NOT (t / 2 = -1) AND (t < 0 OR t > 100); t += 2"
    assert [t for _, t, _ in windows(loop(header, "WindowIs(r, t, t);"), readings(4))] == [-7, -5]


def test_for_clause_ends_loop_windows():
    assert [t for _, t, _ in windows(loop("; t < 9; t++", "WindowIs(r, t, t);") + " FOR 2 SEC", readings(9))] == [
        0,
        1,
        2,
    ]


# --- backwards -------------------------------------------------------------------------------------------------------


def test_backward_loop_ends_before_the_first_tick():
    header = "t = 4; t > -100; t -= 2"
    assert windows(loop(header, "WindowIs(r, t - 1, t);"), readings(8)) == [
        (4, 4, [30, 40]), (4, 2, [10, 20]), (4, 0, [0]),
    ]  # fmt: skip
    both = (
        "SELECT x.v AS a FROM r AS x, r AS y FOR (t = 1; t > -100; t--) { WindowIs(x, t, t); WindowIs(y, t, t + 2); }"
    )
    assert [t for _, t, _ in windows(both, readings(5))] == [1, 0, -1, -2]  # as long as one of them holds tick 0


def test_loop_ends_only_after_a_decrease():
    assert windows(loop("t = -3; t < 1; t++", "WindowIs(r, t, t);"), readings(3)) == [
        (0, -3, []), (0, -2, []), (0, -1, []), (0, 0, [0]),
    ]  # fmt: skip


def test_backward_loop_over_rows():
    p = [{"_arrival": a, "v": a} for a in (0, 2, 4)]
    header = "t = 3; t > -9; t--"
    assert windows(loop(header, "WindowIs(p ROWS, t - 1, t);", "SELECT v FROM p"), p=p) == [
        (4, 3, [2, 4]), (4, 2, [0, 2]), (4, 1, [0]),
    ]  # fmt: skip


# --- rows ------------------------------------------------------------------------------------------------------------


def test_loop_waits_for_its_rows():
    p = [{"_arrival": a, "v": a} for a in (1, 1, 4, 7)]
    found = windows(loop("t = 1; t < 9; t++", "WindowIs(p ROWS, t - 1, t);", "SELECT v FROM p"), p=p, until=9)
    assert found == [(1, 1, [1]), (1, 2, [1, 1]), (4, 3, [1, 4]), (7, 4, [4, 7])]


def test_rows_below_one_arrive_at_the_start():
    p = [{"_arrival": a, "v": a} for a in (4, 5)]
    query = loop("t = ST - 1; t < 3; t++", "WindowIs(p ROWS, t, t);", "SELECT v FROM p")
    assert windows(query, p=p) == [(0, -1, []), (0, 0, []), (4, 1, [4]), (5, 2, [5])]


def test_deleted_row_is_an_empty_row():
    p = [
        {"_arrival": 0, "v": 1},
        {"_arrival": 1, "v": 2},
        {"_arrival": 2, "_weight": -1, "_replaces": 1},
        {"_arrival": 3, "v": 3},
    ]
    said = run_loop(loop("t = 1; t < 9; t++", "WindowIs(p ROWS, t - 1, t);", "SELECT v FROM p"), p=p).result.windows()
    assert [(w.tick, w.t, w.revision, w.removed, w.added) for w in said] == [
        (0, 1, 0, [], [(1,)]),
        (1, 2, 0, [], [(1,), (2,)]),
        (0, 1, 1, [(1,)], []),
        (1, 2, 1, [(1,)], []),
        (3, 3, 0, [], [(2,), (3,)]),
    ]


# --- several loops, tables, converters -------------------------------------------------------------------------------


def test_two_loops_combine_and_t_is_a_list():
    query = (
        "SELECT x.v AS a, y.v AS b FROM r AS x, p AS y "
        "FOR (t = 2; t < 9; t += 3) { WindowIs(y, t - 2, t); } FOR (t = 1; t < 7; t += 2) { WindowIs(x, t, t); }"
    )
    p = [{"_arrival": a, "v": a} for a in (1, 4)]
    assert windows(query, readings(10), p) == [
        (2, (1, 2), [(10, 1)]), (3, (3, 2), [(30, 1)]), (5, (5, 5), [(50, 4)]), (8, (5, 8), []),
    ]  # fmt: skip


def test_all_windows_of_the_most_recent_tick_combine():
    query = (
        "SELECT x.v AS a, y.v AS b FROM r AS x, r AS y "
        "FOR (t = 1; t >= 0; t--) { WindowIs(x, t, t); } FOR (t = 1; t < 3; t++) { WindowIs(y, t, t); }"
    )
    said = run_loop(query, readings(4)).result.windows()
    assert [(w.tick, w.n, w.t, w.added) for w in said] == [
        (1, 1, (1, 1), [(10, 10)]), (1, 2, (0, 1), [(0, 10)]), (2, 1, (1, 2), [(10, 20)]), (2, 2, (0, 2), [(0, 20)]),
    ]  # fmt: skip


def test_table_beside_loop_is_read_at_each_window():
    t = [(0, [{"w": 1}]), (2, [{"w": 2}, {"w": 3}]), (3, [])]
    query = "SELECT t.w AS w, r.v AS v FROM t, r FOR (t = 1; t < 4; t++) { WindowIs(r, t, t); }"
    assert windows(query, readings(5), t=t) == [(1, 1, [(1, 10)]), (2, 2, [(2, 20), (3, 20)]), (3, 3, [])]


def test_loop_below_a_converter():
    query = f"ISTREAM({'SELECT v FROM r'}) FOR (t = 1; t < 4; t++) {{ WindowIs(r, t - 1, t); }}"
    assert [(x.tick, x.index, x.row) for x in run_loop(query, readings(6)).result.tuples()] == [
        (1, 1, (0,)), (1, 2, (10,)), (2, 3, (20,)), (3, 4, (30,)),
    ]  # fmt: skip


def test_loop_over_a_subquery():
    query = loop("t = 1; t < 4; t += 2", "WindowIs(z, t - 1, t);", "SELECT v FROM (SELECT v FROM r WHERE v <> 10) AS z")
    assert windows(query, readings(6)) == [(1, 1, [0]), (3, 3, [20, 30])]


def test_last_in_loop_follows_the_stream_order():
    query = loop("t = 1; t < 4; t += 2", "WindowIs(r, 0, t);", "SELECT FIRST(v), LAST(v), COUNT(*) FROM r")
    assert windows(query, readings(6)) == [(1, 1, [(0, 10, 2)]), (3, 3, [(0, 30, 4)])]


# --- revisions and coverage ------------------------------------------------------------------------------------------


def test_late_reading_revises_all_its_loop_windows():
    query = loop("t = 1; t < 4; t++", "WindowIs(r, t - 1, t);", "SELECT COUNT(*) FROM r")
    found = run_loop(query, readings(9, late=[(1, 7)]), every_tick=True)
    said = [(clock, w.tick, w.t, w.revision, w.coverage["r"], w.removed, w.added)
            for clock, w in zip(found.clocks[1], found.result.windows(), strict=True)]  # fmt: skip
    assert said == [
        (2, 1, 1, 0, [1, 2], [], [(1,)]),
        (2, 2, 2, 0, [1, 2], [], [(1,)]),
        (3, 3, 3, 0, [2, 2], [], [(2,)]),
        (7, 1, 1, 1, [2, 2], [(1,)], [(2,)]),
        (7, 2, 2, 1, [2, 2], [(1,)], [(2,)]),
    ]


def test_reading_beyond_horizon_revises_no_loop_window():
    schema = SCHEMA.replace("1 min", "3 sec")
    query = loop("t = 1; t < 3; t++", "WindowIs(r, t, t);")
    rows = readings(9, late=[(1, 4), (2, 6)])
    said = replayed(schema, {"r": rows, "p": [], "t": []}, [query]).result.windows()
    assert [(w.t, w.revision, w.added) for w in said] == [(1, 0, []), (2, 0, []), (1, 1, [(10,)])]


def test_loop_coverage_counts_from_the_first_tick():
    said = run_loop(loop("t = 2; t < 7; t += 2", "WindowIs(r, t - 4, t);"), readings(9)).result.windows()
    assert [w.coverage for w in said] == [{"r": [3, 3]}, {"r": [5, 5]}, {"r": [5, 5]}]


# --- errors ----------------------------------------------------------------------------------------------------------


def ended(query, *args, **options):
    """(code, clock, message behind the colon), and the t of the windows before."""
    found = run_loop(query, *args, every_tick=True, **options).result
    error = found.errors[1]
    return error.code, error.clock, error.message.split(": ")[1], [w.t for w in found.windows()]


def test_change_without_effect_on_t_ends_the_query():
    """Also where the condition would be false then."""
    expected = ("SN512", 3, "the change leaves t as it was, 3", [1, 3])
    assert ended(loop("t = 1; t < 9; t = 3", "WindowIs(r, t, t);"), readings(6)) == expected
    assert ended(loop("t = 1; t <> 3 OR 1 = 1; t = t / t * 3", "WindowIs(r, t, t);"), readings(6)) == expected


@pytest.mark.parametrize(
    ("header", "window", "expected"),
    [
        ("t = 1 / 0; t < 9; t++", "t, t", []),
        ("; t < 9 / t; t++", "t, t", []),
        ("; t < 9; t = 5 / t", "t, t", [0]),
        ("t = 1; t < 9 OR 1 / (t - 2) > 0; t++", "t, t", [1]),  # the whole condition is computed
        ("t = 2; t < 9; t--", "1 / t, t", [2, 1]),
        ("t = 2; t < 9; t++", "t, t / (1 - 1)", []),
    ],
)
def test_division_by_zero_in_loop_ends_the_query(header, window, expected):
    code, _, message, given = ended(loop(header, f"WindowIs(r, {window});"), readings(9))
    assert (code, message, given) == ("SN512", "division by zero", expected)


def test_ten_thousand_evaluations_at_a_tick_end_the_query():
    code, clock, message, given = ended(loop("; t >= 0; t++", "WindowIs(r, 1, 2);"), readings(6))
    assert (code, clock, message) == ("SN512", 2, "this is the 10,000th evaluation at tick 2")
    assert given == list(range(EVALUATION_LIMIT - 1))


def test_loop_number_beyond_64_bits_ends_the_query():
    code, _, message, given = ended(loop("t = 3; t > 0; t = t * t", "WindowIs(r, 0, 0);"), readings(3))
    assert (code, message) == ("SN512", f"{3**64} does not fit into 64 bits")
    assert given == [3 ** (2**i) for i in range(6)]


def test_loop_evaluates_thousands_of_terms():
    query = loop(f"t = ST{' + 1' * 5000} - 5000; t < 3; t++", "WindowIs(r, t, t);")
    assert [w.t for w in run_loop(query, readings(4)).result.windows()] == [0, 1, 2]


def test_ended_query_gives_no_update():
    """The other loop goes on to the tick of the error, and a late reading revises nothing any more."""
    query = (
        "SELECT x.v AS a, y.v AS b FROM r AS x, r AS y "
        "FOR (t = 0; t < 9; t++) { WindowIs(x, t, t); } FOR (t = 1; t < 9; t = 3) { WindowIs(y, t, t); }"
    )
    found = run_loop(query, readings(9, late=[(1, 7)]), every_tick=True).result
    assert [(w.tick, w.t, w.revision) for w in found.windows()] == [(1, (1, 1), 0), (2, (2, 1), 0), (3, (3, 3), 0)]
    assert found.errors[1].clock == 3


def test_failed_loop_leaves_other_queries_running():
    queries = [loop("t = 1; t < 9; t = 1", "WindowIs(r, t, t);"), "SELECT v FROM r [NOW]"]
    found = replayed(SCHEMA, {"r": readings(5), "p": [], "t": []}, queries).result
    assert list(found.errors) == [1]
    assert [w.tick for w in found.windows(2)] == [0, 1, 2, 3, 4]


# --- letting go ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5", 0), ("ST", 0), ("t", 1), ("-t", -1), ("t - 4", 1), ("4 - t", -1), ("2 * t + ST", 1), ("t * -2", -1),
        ("t / 2", 1), ("t / -2", -1), ("t - t", None), ("t * t", None), ("2 / t", None), ("-(3 - t)", 1), ("0 * t", 0),
    ],
)  # fmt: skip
def test_slope_of_window_ends(text, expected):
    plan = bind_text(loop("t = 0; t < 9; t++", f"WindowIs(r, {text}, t);"), read_schema(SCHEMA))[0]
    bound = next(node for node in walk(rewrite(plan)[0].root) if isinstance(node, LoopWindow))
    assert find_slope(bound.left, bound.loop.t) == expected


@pytest.mark.promise("bounded-memory")
def test_loop_drops_tuples_that_no_window_reaches(monkeypatch):
    from basestation.execution.engine import Engine
    from basestation.execution.windowing.window_store import TickOrderedStore

    held = []
    monkeypatch.setattr(TickOrderedStore, "tidy", _noting(TickOrderedStore.tidy, held))
    monkeypatch.setattr(Engine, "_step", _tidying(Engine._step))
    schema = SCHEMA.replace("1 min", "2 sec")
    forward = loop("t = 0; t < 400; t += 2", "WindowIs(r, t - 3, t);", "SELECT COUNT(DISTINCT v) FROM r")
    said = replayed(schema, {"r": readings(300), "p": [], "t": []}, [forward], every_tick=True).result.windows()
    assert [w.added for w in said] == [[(1,)], [(3,)], *([[(4,)]] * 148)]
    assert 0 < max(held[50:]) < 40
    held.clear()
    back = loop("t = 0; t < 400; t += 2", "WindowIs(r, 0 - t, t);", "SELECT COUNT(DISTINCT v) FROM r")
    replayed(schema, {"r": readings(300), "p": [], "t": []}, [back], every_tick=True)
    assert max(held) > 200


AGGREGATES = "MAX(v), MIN(v), SUM(v), COUNT(*), FIRST(v), LAST(v)"
REGULAR = {
    "landmark": ("t = ST; t < 40; t++", "WindowIs(r, ST, t);"),
    "landmark before the start": ("t = 3; t < 40; t += 3", "WindowIs(r, -4, t + 1);"),
    "landmark ahead": ("t = 0; t < 40; t += 2", "WindowIs(r, 7, t);"),
    "sliding": ("t = 0; t < 40; t++", "WindowIs(r, t - 6, t);"),
    "hopping over readings": ("t = 1; t < 40; t += 7", "WindowIs(r, t, t + 2);"),
    "slides that both ends share": ("t = 0; t < 9; t++", "WindowIs(r, 4 * t, 6 * t + 1);"),
    "growing to both sides": ("t = 0; t < 20; t++", "WindowIs(r, 20 - t, 20 + t);"),
    "shrinking": ("t = 0; t < 20; t += 3", "WindowIs(r, 2 * t, 30);"),
    "backwards": ("t = 30; t > 0; t -= 4", "WindowIs(r, t - 5, t);"),
    "backwards to a landmark": ("t = 30; t > 0; t--", "WindowIs(r, 2, t);"),
    "empty": ("t = 0; t < 30; t += 5", "WindowIs(r, t + 2, t);"),
    "in the past": ("t = 0; t < 40; t += 5", "WindowIs(r, t - 20, t - 10);"),
    "multiples": ("t = ST - 2; t < 12; t = t + 1", "WindowIs(r, 3 * t - 2 * ST, 3 + t * 3);"),
}


@pytest.mark.parametrize("late", [(), [(4, 9), (11, 30), (20, 21)]])
@pytest.mark.parametrize("every_tick", [False, True])
@pytest.mark.parametrize("which", REGULAR)
def test_loop_over_slices_gives_aggregates_of_its_tuples(which, every_tick, late):
    """MEDIAN does not merge, so the second query reads the tuples of each window."""
    texts = [loop(*REGULAR[which], f"SELECT {more} FROM r") for more in (AGGREGATES, f"{AGGREGATES}, MEDIAN(v)")]
    assert [is_sliced(text) for text in texts] == [True, False]
    sliced, whole = (run_loop(text, readings(45, late), every_tick=every_tick).result.windows() for text in texts)
    assert len(sliced) > 3
    tags = [[(w.tick, w.n, w.t, w.revision, w.coverage) for w in of] for of in (sliced, whole)]
    assert tags[0] == tags[1]
    for rows in ("added", "removed"):
        assert [getattr(w, rows) for w in sliced] == [[row[:6] for row in getattr(w, rows)] for w in whole]


@pytest.mark.parametrize("which", REGULAR)
def test_pruned_slices_of_loop_keep_what_later_windows_read(which):
    """Two sites of which one reports a tick late: a reading may come before the first window, after others were pruned."""
    schema = read_schema("r: sensed (site:integer, v:integer) every 2 sec at sites 8, 7 wait 2 sec late drop")
    rows = [
        {"_tick": tick, "_site": site, "_arrival": tick + (site == 7), "v": tick}
        for tick in range(0, 44, 2)
        for site in (8, 7)
    ]
    text = loop(*REGULAR[which], f"SELECT {AGGREGATES} FROM r")
    assert Case(read_recording(schema, {"r": rows}), [Asked(text)]).difference(tidy_every=1) is None


def test_final_window_of_landmark_loop_stays_apart_from_next():
    """ISTREAM compares window t=10 with t=0, which is final, when readings of ticks 1 to 9 are final, too."""
    schema = read_schema("r: sensed (v:integer) every 1 sec at sites 1 late drop")
    rows = [{"_tick": tick, "_site": 1, "v": 7 if tick == 5 else 1} for tick in range(30)]
    text = loop("t = 0; t < 25; t += 10", "WindowIs(r, 0, t);", "ISTREAM(SELECT MAX(v) FROM r)")
    assert Case(read_recording(schema, {"r": rows}), [Asked(text)]).difference(tidy_every=1) is None


def is_sliced(text):
    plan = bind_text(text, read_schema(SCHEMA))[0]
    return any(isinstance(node, SliceAggregation) for node in walk(rewrite(plan)[0].root))


@pytest.mark.parametrize(
    ("header", "window"),
    [
        ("t = 0; t < 9; t++", "t / 2, t"), ("t = 1; t < 9; t = 2 * t", "t, t"), ("t = 1; t < 9; t++", "t * t, t * t"),
        ("t = 0; t < 9; t++", "1, 4"), ("t = 1; t < 9; t = t + ST", "t, t"), ("t = 8 / 2; t < 9; t++", "t, t"),
    ],
)  # fmt: skip
def test_loop_without_fixed_steps_has_no_slices(header, window):
    assert not is_sliced(loop(header, f"WindowIs(r, {window});", "SELECT MAX(v) FROM r"))


@pytest.mark.promise("bounded-memory")
def test_landmark_loop_holds_slices_of_open_windows_only(monkeypatch):
    from basestation.execution.engine import Engine
    from basestation.execution.slices.slice_windows import SharedSlices

    held = []
    monkeypatch.setattr(SharedSlices, "tidy", _noting(SharedSlices.tidy, held, len))
    monkeypatch.setattr(Engine, "_step", _tidying(Engine._step))
    schema = SCHEMA.replace("1 min", "2 sec")
    text = loop("t = ST; t < 400; t++", "WindowIs(r, ST, t);", "SELECT MAX(v) FROM r")
    said = replayed(schema, {"r": readings(300), "p": [], "t": []}, [text], every_tick=True).result.windows()
    assert [w.added for w in said] == [[(10 * at,)] for at in range(300)]
    assert 0 < max(held) < 20


def _count_by_tick(store):
    tuples = store.by_tick()
    return 0 if tuples is None else len(tuples)


def _noting(tidy, held, count=_count_by_tick):
    def noting(self, *args):
        tidy(self, *args)
        held.append(count(self))

    return noting


def _tidying(step):
    def tidying(self, *args, **options):
        said = step(self, *args, **options)
        self._tidy()
        return said

    return tidying


# --- against the oracle ----------------------------------------------------------------------------------------------


def test_generated_loops_agree_with_the_oracle(counts, rng):
    for _ in range(counts(8, 250)):
        made = looping(rng.getrandbits(48))
        outcome = agree(made.schema, made.inputs, made.queries, seconds=4)
        if not outcome and outcome.verdict == "disagree":
            ended = replayed(made.schema, made.inputs, made.queries).result.errors
            assert ended and "64 bits" in ended[1].message, outcome.report  # what is beyond is not specified


def test_generated_cases_with_loops_agree_with_the_oracle(counts, rng):
    left = counts(6, 100)
    while left:
        made = case(rng.getrandbits(48))
        if "loop" in made.traits:
            outcome = agree(made.schema, made.inputs, made.queries, seconds=6)
            assert outcome or outcome.verdict in ("too slow", "not covered"), outcome.report
            left -= 1


def test_live_loop_goes_on_in_next_step_after_many_evaluations():
    count = 2 * EVALUATION_LIMIT + 5
    catalog = read_schema("p: pushed (v:integer) late revise by 5 sec")
    text = f"SELECT COUNT(*) AS n FROM p FOR (t = 0; t < {count}; t++) {{ WindowIs(p, 1, 2); }}"
    engine = Engine(catalog, live=True)
    engine.add(1, bind_text(text, catalog)[0])
    given = [list(split_singly(engine.on_clock(clock))) for clock in range(6)]
    sizes = [len(updates) for updates in given]
    assert sizes == [0, 0, EVALUATION_LIMIT - 1, EVALUATION_LIMIT - 1, 7, 0]
    assert [update.t for updates in given for update in updates] == list(range(count))
    assert [update.n for updates in given for update in updates] == list(range(1, count + 1))


def live_windows(text, clocks, saved=False):
    """[(tick, n, t)] of each step, and the failures, of an engine that runs live; a step for each clock tick."""
    engine = Engine(read_schema("p: pushed (v:integer) late revise by 5 sec\nq: pushed (v:integer)"), live=True)
    engine.add(1, bind_text(text, engine.catalog)[0])
    given, failures = [], []
    for clock in range(clocks) if isinstance(clocks, int) else clocks:
        updates = list(split_singly(engine.on_clock(clock)))
        failures += [(clock, each.message) for each in updates if isinstance(each, QueryFailure)]
        given.append([(each.tick, each.n, each.t) for each in updates if not isinstance(each, QueryFailure)])
        engine = restore_engine(save_engine(engine)) if saved else engine
    return given, failures


TWO = "SELECT COUNT(*) AS n FROM p, q FOR (t = 0; {}; t++) {{ WindowIs(p, {}); }} FOR (t = 0; {}; t++) {{ WindowIs(q, {}); }}"


def test_several_live_loops_go_on_in_next_step():
    count = EVALUATION_LIMIT + 5
    given, failures = live_windows(TWO.format("t < 1", "1, 2", f"t < {count}", "1, 2"), 6)
    assert not failures and sum(map(len, given[:4])) == count
    assert max(map(len, given)) < EVALUATION_LIMIT
    assert [each for of in given for each in of] == [(2, 1 + b, (0, b)) for b in range(count)]


def test_live_loop_without_end_leaves_first_one_where_it_is():
    given, failures = live_windows(TWO.format("t < 9", "1, 2", "t >= 0", "1, 2"), 5)
    assert not failures and sum(map(len, given)) > EVALUATION_LIMIT
    assert [each for of in given for each in of] == [(2, 1 + b, (0, b)) for b in range(sum(map(len, given)))]


@pytest.mark.parametrize("saved", [False, True])
@pytest.mark.parametrize("limit", [2, 3, 8])
@pytest.mark.parametrize(
    "parts",
    [
        ("t < 4", "t / 2, t / 2", "t < 5", "t / 3, t / 3"),
        ("t < 5", "0, 4", "t < 3", "3, 3 + t"),
        ("t < 3", "t, t", "t < 3", "2 * t, 2 * t"),
        ("t < 9", "t, 12 / (3 - t)", "t < 9", "t, t"),  # divides by zero where t is 3
        ("t < 0", "t, t", "t < 9", "t, t"),
    ],
)
def test_live_loops_combine_in_steps_as_at_once(parts, limit, saved, monkeypatch):
    text = TWO.format(*parts)
    expected = replayed("p: pushed (v:integer)\nq: pushed (v:integer)", {"p": [], "q": []}, [text], until=79).result
    whole, ended = live_windows(text, 80)
    monkeypatch.setattr(for_loops, "EVALUATION_LIMIT", limit)
    found, failures = live_windows(text, 80, saved)
    windows = [each for of in found for each in of]
    assert windows == [each for of in whole for each in of] == [(w.tick, w.n, w.t) for w in expected.windows()]
    assert [why for _, why in failures] == [why for _, why in ended] and bool(ended) == bool(expected.errors)
    assert max(map(len, found)) < limit


def test_live_loop_that_halts_inside_a_step_ends_the_others():
    text = TWO.format("t < 9", "t, 12 / (3 - t)", "t < 90", "2 * t, 2 * t")  # divides by zero where t is 3
    single, ended = live_windows(text, 80)
    at_once, failures = live_windows(text, [79])
    assert at_once == [[each for of in single for each in of]] and at_once[0]
    assert [why for _, why in failures] == [why for _, why in ended] == ["the loop cannot go on: division by zero"]
