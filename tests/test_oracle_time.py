"""The oracle against semantics 1 and 2. Expected values are worked out by hand from the text."""

import pytest

from tests.oracles.errors import NotCoveredError
from tests.oracles.recompute import run
from tests.oracles.shortcuts import ask, pushed, rejection_kind, sensed, stream, updates_of, windows

R = "r: sensed (v:integer) every 1 sec at sites 1"
P = "p: pushed (v:integer)"
ROAD = """
road: sensed (site:integer, time:integer, temp:integer, vibration:integer) every 1 min at sites 1, 2, 3, 4
traffic: pushed (site:integer, time:integer, weight:integer, vehicle:integer)
tempClass: stored (temp:integer, category:string)
"""


def test_1_1_a_tick_is_a_second():
    data = {"p": pushed((0, 1), (60, 2), (3600, 3))}
    assert [t for t, _ in windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 HOUR]")] == [0, 3600]
    assert windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 MIN]")[:2] == [(0, [1]), (60, [2])]


def test_1_1_there_are_no_fractions_of_ticks():
    assert rejection_kind(P, "SELECT v FROM p [FROM NOW TO NOW SLIDE 500 MS]") is not None
    data = {"p": pushed((0, 1), (1, 2))}
    found = windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 500 MS]", tick_ms=500)
    assert found == [(0, [1]), (1, [2])]


def test_1_2_tuples_of_a_tick_enter_before_its_windows():
    text = "SELECT COUNT(*) FROM RSTREAM(SELECT v FROM r [FROM NOW-1 TO NOW SLIDE 1 SEC]) [FROM NOW TO NOW SLIDE 1 SEC]"
    assert windows(R, {"r": sensed([5, 6, 7])}, text) == [(0, [1]), (1, [2]), (2, [2])]


def test_1_3_sites_are_sampled_in_declared_order():
    schema = "r: sensed (site:integer, v:integer) every 5 sec at sites 4, 1"
    rows = [{"_tick": t, "_site": s, "v": 10 * t + s} for t in (0, 5) for s in (1, 4)]
    assert stream(schema, {"r": rows}, "SELECT v FROM r") == [(0, 1, 4), (0, 2, 1), (5, 3, 54), (5, 4, 51)]


def test_1_3_no_sites_no_tuples():
    schema = "r: sensed (v:integer) every 1 sec"
    assert stream(schema, {"r": []}, "SELECT v FROM r", until=3) == []
    assert windows(schema, {"r": []}, "SELECT v FROM r [NOW]", until=1) == [(0, []), (1, [])]


def test_1_4_missing_reading_has_no_tuple_and_no_index():
    answer = ask(R, {"r": sensed([5, ..., 7])}, "SELECT v FROM r")
    assert answer.current() == [(0, 1, (5,)), (2, 2, (7,))]
    assert answer.current_coverage() == {(0, 1): {"r": [1, 1]}, (1, 1): {"r": [0, 1]}, (2, 1): {"r": [1, 1]}}


def test_1_4_missing_attributes_are_null_except_site_and_time():
    rows = [{"_tick": 0, "_site": 3, "temp": 4}, {"_tick": 60, "site": 2}]
    assert stream(ROAD, {"road": rows}, "SELECT * FROM road") == [(0, 1, (3, 0, 4, None)), (60, 2, (2, 60, None, None))]


def test_1_5_without_a_timestamp_the_tick_is_the_delivery():
    assert stream(P, {"p": pushed((3, 7), (3, 8))}, "SELECT v FROM p") == [(3, 1, 7), (3, 2, 8)]


def test_1_5_plain_stream_query_gives_order_of_arrival():
    data = {"p": pushed((1, 7), (3, 9, 8), (4, 2, 9))}
    assert updates_of(P, data, "SELECT v FROM p") == [(1, 1, 1, 1, 7), (3, 9, 2, 1, 8), (4, 2, 3, 1, 9)]


LATE = {"p": pushed((4, 2, 9))}
EVERY_SECOND = "SELECT v FROM p [FROM NOW-3 TO NOW SLIDE 1 SEC]"


def test_1_5_late_revise():
    # A tuple with timestamp 2 delivered at 4: the windows at 2 and 3 are revised, 4 and 5 contain it, 6 does not.
    assert updates_of(P, LATE, EVERY_SECOND, until=6) == [
        (0, 0, 0, [], []), (1, 1, 0, [], []), (2, 2, 0, [], []), (3, 3, 0, [], []),
        (4, 2, 1, [], [9]), (4, 3, 1, [], [9]), (4, 4, 0, [], [9]), (5, 5, 0, [], [9]), (6, 6, 0, [], []),
    ]  # fmt: skip


def test_1_5_late_append():
    found = updates_of(P + " late append", LATE, EVERY_SECOND, until=6)
    assert [(tick, added) for _, tick, _, _, added in found] == [
        (0, []), (1, []), (2, []), (3, []), (4, [9]), (5, [9]), (6, []),
    ]  # fmt: skip


def test_1_5_late_append_with_a_wait():
    # Tick 15, delivered 23, wait 5: not in 20, 21, 22, though they are answered at 25, 26, 27.
    found = windows(P + " wait 5 sec late append", {"p": pushed((23, 15, 9))},
                    "SELECT v FROM p [FROM NOW-8 TO NOW SLIDE 1 SEC]", until=40)  # fmt: skip
    assert [tick for tick, rows in found if rows] == [23]


def test_1_5_late_drop():
    result = run(P + " late drop", LATE, ["SELECT v FROM p", "SELECT v FROM p.history [SCAN 4 SEC]"], until=4)
    assert result.answers[0].current() == []
    assert list(result.answers[1].current().values()) == [[], []]
    assert result.ledger["p"]["dropped"] == 1


def test_1_5_beyond_the_horizon():
    schema, data = P + " late revise by 3 sec", {"p": pushed((0, 1), (5, 2, 2), (5, 1, 3), (6, 6, 4))}
    assert stream(schema, data, "SELECT v FROM p") == [(0, 1, 1), (2, 2, 2), (6, 3, 4)]
    assert windows(schema, data, "SELECT v FROM p [FROM NOW-9 TO NOW SLIDE 6 SEC]")[-1] == (6, [1, 2, 4])
    assert windows(schema, data, "SELECT v FROM p.history [SCAN 6 SEC]")[-1] == (6, [1, 2, 3, 4])
    assert run(schema, data, []).ledger["p"]["beyond horizon"] == 1


def test_1_5_stamped_ahead():
    # Timestamp 9, delivery 3: in the stream at 3 with tick 9, and in time windows from 9 on.
    data = {"p": pushed((3, 9, 5))}
    assert updates_of(P, data, "SELECT v FROM p") == [(3, 9, 1, 1, 5)]
    found = windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 1 SEC]", until=11)
    assert [tick for tick, rows in found if rows] == [9, 10]
    assert run(P + " ahead 5 sec", data, []).ledger["p"] == {"received": 1, "ahead": 1}


def test_1_5_sensed_watermark_waits_only_for_missing_readings():
    schema = "r: sensed (v:integer) every 2 sec at sites 1 wait 3 sec"
    rows = [{"_tick": 0, "_site": 1, "v": 1}, {"_tick": 2, "_site": 1, "v": 2, "_arrival": 4}]
    # 4 never comes: its windows wait until 4 + 3.
    assert [(c, t) for c, t, *_ in updates_of(schema, {"r": rows}, "SELECT v FROM r [FROM NOW TO NOW SLIDE 1 SEC]", until=9)] == [
        (0, 0), (1, 1), (4, 2), (4, 3), (7, 4), (7, 5), (9, 6), (9, 7), (9, 8), (9, 9),
    ]  # fmt: skip


def test_1_5_pushed_watermark_is_clock_minus_wait():
    schema, data = P + " wait 2 sec", {"p": pushed((0, 1), (2, 1, 2), (3, 0, 3))}
    # 0 and 1 are on time (arrival 0, and 1 above the watermark -1 of clock tick 1); tick 0 at 3 is late, arrival 3.
    assert updates_of(schema, data, "SELECT v FROM p", until=9) == [(2, 0, 1, 1, 1), (3, 1, 2, 1, 2), (5, 0, 3, 1, 3)]
    assert updates_of(schema, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 SEC]", until=9)[:3] == [
        (2, 0, 0, [], [1]), (3, 0, 1, [], [3]), (3, 1, 0, [], [2]),
    ]  # fmt: skip


def test_1_5_entry_order_is_arrival_then_site_then_late():
    schema = "r: sensed (site:integer, v:integer) every 1 sec at sites 2, 1 wait 1 sec"
    rows = [
        {"_tick": 2, "_site": 1, "v": 21}, {"_tick": 2, "_site": 2, "v": 22},
        {"_tick": 1, "_site": 1, "v": 11, "_arrival": 2}, {"_tick": 0, "_site": 1, "v": 1, "_arrival": 2},
        {"_tick": 0, "_site": 2, "v": 2, "_arrival": 2}, {"_tick": 1, "_site": 2, "v": 12, "_arrival": 1},
    ]  # fmt: skip
    # Tick 1 site 1 at 2 is late only if the watermark had reached 1 at the end of 1: it had reached 0.
    assert [v for _, _, v in stream(schema, {"r": rows}, "SELECT v FROM r")] == [12, 11, 22, 21, 2, 1]


def test_1_5_row_windows_count_in_the_order_of_arrival():
    data = {"p": pushed((1, 1), (2, 2), (4, 1, 3))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 1 ROW]") == [(1, [1]), (2, [1, 2]), (4, [2, 3])]


def test_1_5_duplicates_and_conflicts():
    one = {"_tick": 0, "_site": 1, "v": 5}
    result = run(R, {"r": [one, {**one, "_arrival": 1}, {**one, "v": 6, "_arrival": 1}]}, ["SELECT v FROM r"])
    assert result.answers[0].current() == [(0, 1, (5,))]
    assert result.ledger["r"] == {"received": 3, "accepted": 1, "duplicate": 1, "conflict": 1}


def test_1_5_off_the_schedule():
    schema = "r: sensed (v:integer) every 2 sec at sites 1"
    rows = [{"_tick": t, "_site": s, "_arrival": 2, "v": 0} for t, s in ((1, 1), (-2, 1), (2, 9), (2, 1))]
    assert run(schema, {"r": rows}, []).ledger["r"] == {"received": 4, "rejected: off the schedule": 3, "accepted": 1}


def test_1_5_a_tick_set_aside_does_not_move_the_end():
    assert run(P + " ahead 5 sec", {"p": pushed((3, 50, 1))}, []).until == 3
    assert run(P + " ahead 5 sec", {"p": pushed((3, 8, 1))}, []).until == 8


def test_1_5_the_end_of_a_replay_answers_every_window():
    schema = P + " wait 1 min"
    assert updates_of(schema, {"p": pushed((0, 1), (4, 2))}, "SELECT v FROM p [FROM NOW TO NOW SLIDE 2 SEC]") == [
        (4, 0, 0, [], [1]), (4, 2, 0, [], []), (4, 4, 0, [], [2]),
    ]  # fmt: skip


T = "t: stored (v:integer)"


def test_1_6_a_scan_sees_the_newest_version():
    versions = [(2, [{"v": 1}, {"v": 1}]), (3, [{"v": 2}]), (4, [])]
    assert windows(T, {"t": versions}, "SELECT v FROM t [SCAN 2 SEC]", until=4) == [(0, []), (2, [1, 1]), (4, [])]


def test_1_7_tick_and_index_in_a_stream_query():
    data = {"r": sensed([5, 6, 7])}
    assert stream(R, data, "SELECT tick, r.index AS i, v FROM r WHERE index > 1") == [
        (1, 2, (1, 2, 6)),
        (2, 3, (2, 3, 7)),
    ]
    assert rejection_kind(R, "SELECT tick FROM r [NOW]") == "name"
    assert windows(R, data, "SELECT MAX(t) FROM (SELECT tick AS t FROM r) [FROM NOW TO NOW SLIDE 2 SEC]") == [
        (0, [0]),
        (2, [2]),
    ]


def test_1_7_a_column_called_tick_is_meant_before_the_tag():
    text = "SELECT tick, index FROM (SELECT v AS tick FROM r) x"
    assert stream(R, {"r": sensed([5])}, text) == [(0, 1, (5, 1))]


def test_1_7_not_declared():
    assert rejection_kind("r: pushed (tick:integer)", "SELECT tick FROM r") is not None


def test_1_8_values():
    schema = "t: stored (i:integer, f:float, s:string, w:time)"
    data = {"t": [(0, [{"i": 2**53 + 1, "f": 1, "s": "ä", "w": 5}, {"i": 2**53, "f": -0.0, "s": "Z", "w": None}])]}
    found = ask(schema, data, "SELECT i, f, s, w + 1 FROM t").current()[0, 1, None]
    assert found == [(2**53 + 1, 1.0, "ä", 6), (2**53, 0.0, "Z", None)] and type(found[0][1]) is float
    assert windows(schema, data, "SELECT i FROM t WHERE i > 9007199254740992")[0][1] == [2**53 + 1]
    assert windows(schema, data, "SELECT f FROM t WHERE f = 0")[0][1] == [0.0]
    assert windows(schema, data, "SELECT s FROM t WHERE s > 'a'")[0][1] == ["ä"]  # by code point, no folding


def test_2_1_grammar_corners():
    for window in ("SLIDE 0 SEC", "SLIDE 1.5 SEC"):
        assert rejection_kind(R, f"SELECT v FROM r [FROM NOW TO NOW {window}]") == "syntax"
    for begin in ("NOW-0", "NOW+1", "NOW-1.5"):
        assert rejection_kind(R, f"SELECT v FROM r [FROM {begin} TO NOW SLIDE 1 SEC]") == "syntax"
    assert rejection_kind(R, "SELECT v FROM r WHERE 1 < v < 3") == "syntax"
    assert windows(R, {"r": sensed([5])}, "select v from r [from now−1 to now slide 1 row];") == [(0, [5])]
    assert rejection_kind(R, "SELECT V FROM r") == "name"  # names are case-sensitive


def test_2_2_types_of_queries():
    schema = "\n".join((R, P, T))
    static = [
        "SELECT v FROM r, p [FROM NOW TO NOW SLIDE 1 SEC]", "SELECT v FROM t [FROM NOW TO NOW SLIDE 1 SEC]",
        "SELECT v FROM r [SCAN 1 SEC]", "RSTREAM(SELECT v FROM r)", "SELECT SUM(MAX(v)) FROM r [NOW]",
        "SELECT v FROM r [NOW] WHERE MAX(v) > 1", "SELECT MAX(v) FROM r", "SELECT v, MAX(v) FROM r [NOW]",
        "SELECT MAX(v) FROM r [NOW] HAVING v > 1", "SELECT v FROM r HAVING COUNT(*) > 1",
    ]  # fmt: skip
    assert [rejection_kind(schema, text) for text in static] == ["static"] * len(static)
    typed = ["SELECT 'a' + 1 FROM r", "SELECT SUM('a') FROM r [NOW]", "SELECT v FROM r WHERE v = 'a'", "SELECT v = 1 FROM r",
             "SELECT v FROM r WHERE v", "SELECT v FROM r WHERE (v = 1) = (v = 2)", "SELECT COUNT(v = 1) FROM r [NOW]"]  # fmt: skip
    assert {rejection_kind(schema, text) for text in typed} <= {"type", "syntax"}


def test_2_3_names():
    schema = "\n".join((R, P))
    assert rejection_kind(schema, "SELECT r.v FROM r AS x") == "name"  # with an alias the extent's name is gone
    assert rejection_kind(schema, "SELECT v FROM r [NOW], r [NOW]") == "name"
    assert rejection_kind(schema, "SELECT v FROM r [NOW], p [FROM NOW TO NOW SLIDE 1 SEC]") == "name"  # ambiguous
    assert rejection_kind(schema, "SELECT v AS w FROM r WHERE w = 1") == "name"  # visible outside only
    assert rejection_kind(schema, "SELECT r.v FROM (SELECT v FROM r) x") == "name"
    data = {"r": sensed([5])}
    assert stream(schema, data, "SELECT x.v FROM (SELECT v FROM r) x") == [(0, 1, 5)]
    assert stream(schema, data, "SELECT r.v FROM (SELECT v FROM r)") == [(0, 1, 5)]  # keeps name and qualifier
    assert stream(schema, data, "SELECT w FROM (SELECT v AS w FROM r)") == [(0, 1, 5)]
    assert rejection_kind(schema, "SELECT r.w FROM (SELECT v AS w FROM r)") == "name"
    assert rejection_kind(schema, "SELECT v FROM (SELECT v + 1 FROM r)") == "name"
    assert rejection_kind(schema, "SELECT v FROM (SELECT v, v FROM r)") == "name"
    assert ask(schema, data, "SELECT v, v + 1, v AS w FROM r").columns == [
        ("v", "integer"),
        (None, "integer"),
        ("w", "integer"),
    ]


def test_2_4_offsets_are_in_the_unit_of_slide():
    data = {"p": pushed((0, 1), (30, 2), (60, 3), (120, 4))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 1 MIN]")[-1] == (120, [3, 4])
    assert windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 2 ROWS]") == [(30, [1, 2]), (120, [3, 4])]


def test_2_5_from_after_to_is_always_empty():
    data = {"r": sensed([5, 6])}
    assert windows(R, data, "SELECT v FROM r [FROM NOW TO NOW-5 SLIDE 1 SEC]") == [(0, []), (1, [])]
    assert windows(R, data, "SELECT v FROM r [FROM NOW TO NOW-5 SLIDE 1 ROW]") == [(0, []), (1, [])]


def test_2_6_one_off_queries():
    data = {"t": [(0, [{"v": 1}, {"v": 2}]), (1, [{"v": 3}])]}
    assert windows(T, data, "SELECT v FROM t") == [(0, [1, 2])]
    assert stream(T, data, "RSTREAM(SELECT v FROM t)") == [(0, 1, 1), (0, 2, 2)]
    assert stream(T, data, "ISTREAM(SELECT v FROM t)") == [(0, 1, 1), (0, 2, 2)]
    assert stream(T, data, "DSTREAM(SELECT v FROM t)") == []
    both = "\n".join((R, T))
    assert rejection_kind(both, "SELECT r.v FROM r [NOW], t") == "static"
    assert rejection_kind(both, "SELECT x.v FROM t, t AS x [SCAN 1 SEC]") == "static"


def test_2_7_a_window_query_directly_in_from():
    assert rejection_kind(R, "SELECT v FROM (SELECT v FROM r [NOW])") == "static"
    assert rejection_kind(R, "SELECT v FROM (SELECT v FROM r [NOW]) [FROM NOW TO NOW SLIDE 1 SEC]") == "static"


def test_2_8_q1_is_an_ordinary_query():
    rows = [
        {"_tick": 0, "_site": s, "temp": t, "vibration": v}
        for s, t, v in ((1, 49, 21), (2, 50, 21), (3, 49, 20), (4, None, 99))
    ]
    text = "SELECT road.time, road.site, road.vibration FROM road WHERE road.temp < 50 AND road.vibration > 20"
    assert stream(ROAD, {"road": rows}, text) == [(0, 1, (0, 1, 21))]


def test_2_9_operators_apply_in_the_stated_order():
    data = {"r": sensed([1, 2, 3, 4])}
    text = "RSTREAM(SELECT SUM(v) FROM r [FROM NOW-3 TO NOW SLIDE 3 SEC] WHERE v > 1 HAVING COUNT(*) > 1)"
    assert stream(R, data, text) == [(3, 1, 9)]  # 2 + 3 + 4; the window at 0 has nothing above 1


@pytest.mark.parametrize("clause", ["LIFETIME 30 DAY"])
def test_uncovered_feature_raises_not_covered(clause):
    with pytest.raises(NotCoveredError):
        run(R, {"r": []}, [f"SELECT v FROM r {clause}"])
