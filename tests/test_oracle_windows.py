"""The oracle against semantics 3, 4, 6, 7 and 8. Expected values are worked out by hand from the text."""

from tests.oracles.shortcuts import ask, pushed, sensed, stream, updates_of, windows

R = "r: sensed (v:integer) every 1 sec at sites 1"
P = "p: pushed (v:integer)"
T = "t: stored (v:integer)"
ALL = "\n".join((R, P, T))


def test_3_1_both_ends_are_inside():
    """Rows NOW-2 to NOW at row 4, and minutes NOW-5 to NOW at tick 600:

    v      1   2   3   4          tick   0 . . . . 300 . . . . 600
    row 4      [-------]          600                [-----------]   the reading of 300 is in both windows
                                  300    [-----------]
    """
    assert windows(R, {"r": sensed([1, 2, 3, 4])}, "SELECT v FROM r [FROM NOW-2 TO NOW SLIDE 1 ROW]")[-1] == (
        3,
        [2, 3, 4],
    )
    schema = "r: sensed (v:integer) every 1 min at sites 1"
    data = {"r": sensed(range(11), every=60)}
    found = windows(schema, data, "SELECT v FROM r [FROM NOW-5 TO NOW SLIDE 5 MIN]")
    assert found == [(0, [0]), (300, [0, 1, 2, 3, 4, 5]), (600, [5, 6, 7, 8, 9, 10])]


def test_3_2_time_windows_exist_without_arrivals():
    """A window every 3 ticks over NOW-1 to NOW; one tuple at tick 2:

    tick  0   1   2   3   4   5   6
    v             1
          ]       [---]       [---]
    """
    text = "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 3 SEC]"
    assert windows(P, {"p": pushed((2, 1))}, text, until=7) == [(0, []), (3, [1]), (6, [])]


def test_3_3_row_windows_at_rows_s_2s_3s():
    """SLIDE 3 ROWS over the rows NOW-1 to NOW; the first window is at row 3:

    row  1   2   3   4   5   6   7
             [---]       [---]
    """
    text = "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 3 ROWS]"
    data = {"p": pushed(*((i, i) for i in range(1, 8)))}
    assert windows(P, data, text) == [(3, [2, 3]), (6, [5, 6])]
    assert windows(P, {"p": pushed((1, 1), (2, 2))}, text) == []


def test_3_4_windows_before_enough_data_exists():
    """Windows that reach back before the first tuple hold the tuples there are:

    tick  -9  …  -1   0   1
    v                 1   2
    at 0   [----------]
    at 1      [-----------]
    """
    data = {"r": sensed([1, 2])}
    assert windows(R, data, "SELECT v FROM r [FROM NOW-9 TO NOW SLIDE 1 SEC]") == [(0, [1]), (1, [1, 2])]
    assert windows(R, data, "SELECT v FROM r [FROM NOW-9 TO NOW SLIDE 1 ROW]") == [(0, [1]), (1, [1, 2])]


def test_3_5_empty_windows_are_windows():
    data = {"r": sensed([1, 2, 1]), "t": [(0, [])]}
    assert windows(R, data | {}, "SELECT v FROM r [NOW] WHERE v > 1") == [(0, []), (1, [2]), (2, [])]
    assert windows(R, data, "SELECT COUNT(*) FROM r [NOW] HAVING MAX(v) > 1") == [(0, []), (1, [1]), (2, [])]
    assert windows(T, data, "SELECT v FROM t [SCAN 1 SEC]", until=1) == [(0, []), (1, [])]
    assert windows(R, data, "SELECT v FROM r [FROM NOW-3 TO NOW-2 SLIDE 1 ROW]") == [(0, []), (1, []), (2, [1])]
    # … and count as "the window before".
    assert stream(R, data, "ISTREAM(SELECT v FROM r [NOW] WHERE v < 2)") == [(0, 1, 1), (2, 2, 1)]
    assert stream(R, data, "DSTREAM(SELECT v FROM r [NOW] WHERE v < 2)") == [(1, 1, 1)]


def test_3_6_each_tuple_is_tested_on_its_own():
    """A tuple with tick 1 arrives at 6, after one with tick 5. A dropWhile would let it into the window at 6:

    arrival  5   6   6
    tick     5   1   6
    at 6     [5..6]  only ticks 5 and 6
    """
    data = {"p": pushed((5, 5), (6, 1, 9), (6, 6))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 6 SEC]") == [(0, []), (6, [5, 6])]


def test_3_7_row_window_counts_tuples_of_its_own_stream():
    """Rows count after the selection, indexes before it:

    v        5   1   6   2   7   8
    index    1   2   3   4   5   6
    v > 4    5       6       7   8
    row      1       2       3   4
    windows  [-------]       [---]
    """
    data = {"r": sensed([5, 1, 6, 2, 7, 8])}
    text = "SELECT v FROM (SELECT v FROM r WHERE v > 4) [FROM NOW-1 TO NOW SLIDE 2 ROW]"
    assert windows(R, data, text) == [(2, [5, 6]), (5, [7, 8])]
    # The visible indexes stay the retained ones.
    text = "SELECT i FROM (SELECT v, index AS i FROM r WHERE v > 4) [FROM NOW-1 TO NOW SLIDE 2 ROW]"
    assert windows(R, data, text) == [(2, [1, 3]), (5, [5, 6])]


def test_3_7_projection_keeps_rows_that_are_empty():
    """The reading of tick 1 is taken back before the query, which begins in the past. Rows are those of indexes without a selection:

    v             1   x   3   4
    index         1   2   3   4
    row, SINCE 2 -1   0   1   2
    v > 0         1       3   4
    row, SINCE 2  0       1   2
    """
    data = {"r": [*sensed([1, 2, 3, 4]), {"_tick": 1, "_site": 1, "_arrival": 4, "_weight": -1}]}
    for source, first in ("r", [3]), ("(SELECT v FROM r)", [3]), ("(SELECT v FROM r WHERE v > 0)", [1, 3]):
        text = f"SELECT v FROM {source} [FROM NOW-1 TO NOW SLIDE 1 ROW] SINCE 2"
        assert windows(R, data, (text, 5))[:2] == [(2, first), (3, [3, 4])]


def test_3_8_three_tuples_at_one_tick_make_three_windows():
    """Three tuples at tick 4, a window for each row over NOW-1 to NOW:

    row    1   2   3
    at 1   ]
    at 2   [---]
    at 3       [---]
    """
    data = {"p": pushed((4, 1), (4, 2), (4, 3))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 1 ROW]") == [(4, [1]), (4, [1, 2]), (4, [2, 3])]


def test_3_8_a_row_window_exists_as_soon_as_its_row_has_arrived():
    assert updates_of(P, {"p": pushed((1, 1), (5, 2))}, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 ROW]") == [
        (1, 1, 0, [], [1]), (5, 5, 0, [], [2]),
    ]  # fmt: skip


def test_3_9_the_tick_of_a_row_window_is_the_arrival_of_its_row():
    """(delivery, timestamp): the first tuple is stamped ahead, the second is late:

    row      1        2
    stamped  9        2
    arrival  3        4     the windows have the ticks 3 and 4
    """
    data = {"p": pushed((3, 9, 1), (4, 2, 2))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 ROW]") == [(3, [1]), (4, [2])]


def test_3_10_windows_of_one_tick_are_ordered():
    data = {"p": pushed((4, 1), (4, 2)), "r": sensed([7], name="v")}
    text = "SELECT p.v FROM p [FROM NOW TO NOW SLIDE 1 ROW], r [FROM NOW-4 TO NOW SLIDE 4 SEC]"
    assert windows(ALL, data, text) == [(4, [1]), (4, [2])]


PAIR = "SELECT r.v, p.v FROM r [FROM NOW-{} TO NOW SLIDE 2 SEC], p [FROM NOW TO NOW SLIDE 1 ROW]"


def test_4_1_and_4_2_ticks_of_the_product():
    """Each side contributes its most recent window; at 0 p has none yet, so the product has none either:

    tick     0   1   2   3   4
    r        10      12      14
    p            1       3
    product      10  12  12  14
                 1   1   3   3
    """
    data = {"r": sensed([10, ..., 12, ..., 14]), "p": pushed((1, 1), (3, 3))}
    assert windows(ALL, data, PAIR.format(1)) == [
        (1, [(10, 1)]), (2, [(12, 1)]), (3, [(12, 3)]), (4, [(14, 3)]),
    ]  # fmt: skip


def test_4_2_an_empty_window_gives_an_empty_window():
    data = {"r": [], "p": pushed((1, 1))}
    assert windows(ALL, data, PAIR.format(1), until=2) == [(1, []), (2, [])]


def test_4_3_all_most_recent_windows_take_part():
    data = {"r": sensed([10, ..., 12]), "p": pushed((1, 1), (1, 2))}
    assert windows(ALL, data, PAIR.format(1)) == [(1, [(10, 1)]), (1, [(10, 2)]), (2, [(12, 1)]), (2, [(12, 2)])]


def test_4_4_the_first_entry_varies_slowest():
    data = {"p": pushed((1, 1), (1, 2))}
    text = "SELECT a.v, b.v FROM p AS a [FROM NOW TO NOW SLIDE 1 ROW], p AS b [FROM NOW TO NOW SLIDE 1 ROW]"
    assert windows(P, data, text) == [(1, [(1, 1)]), (1, [(1, 2)]), (1, [(2, 1)]), (1, [(2, 2)])]
    # ISTREAM compares neighbours: every combination is new beside the one before.
    assert [row for _, _, row in stream(P, data, f"ISTREAM({text})")] == [(1, 1), (1, 2), (2, 1), (2, 2)]


def test_4_5_more_than_two_inputs():
    data = {"r": sensed([1, 2]), "p": pushed((0, 5), (1, 6)), "t": [(0, [{"v": 8}, {"v": 9}])]}
    text = "SELECT r.v, p.v, t.v FROM r [NOW], p [FROM NOW TO NOW SLIDE 1 SEC], t [SCAN 5 SEC]"
    assert windows(ALL, data, text) == [(0, [(1, 5, 8), (1, 5, 9)]), (1, [(2, 6, 8), (2, 6, 9)])]


def two_windows(first, second):
    return {"p": [{"_arrival": 0, "v": v} for v in first] + [{"_arrival": 1, "v": v} for v in second]}


AT_0_AND_1 = "(SELECT v FROM p [FROM NOW TO NOW SLIDE 1 SEC])"


def test_6_1_differences_are_of_bags():
    data = two_windows([7], [7, 7, 8])
    assert stream(P, data, f"ISTREAM{AT_0_AND_1}") == [(0, 1, 7), (1, 2, 7), (1, 3, 8)]
    data = two_windows([7, 7, 8], [7])
    assert stream(P, data, f"DSTREAM{AT_0_AND_1}") == [(1, 1, 7), (1, 2, 8)]
    data = two_windows([None, 1], [None])
    assert stream(P, data, f"DSTREAM{AT_0_AND_1}") == [(1, 1, 1)]  # null equals null here


def test_6_1_only_values_count():
    # The reading that left equals the one that came.
    assert stream(R, {"r": sensed([5, 5, 6])}, "ISTREAM(SELECT v FROM r [NOW])") == [(0, 1, 5), (2, 2, 6)]


def test_6_2_neighbours_at_one_tick_are_compared():
    data = {"p": pushed((4, 1), (4, 1), (4, 2))}
    text = "(SELECT v FROM p [FROM NOW TO NOW SLIDE 1 ROW])"
    assert stream(P, data, f"ISTREAM{text}") == [(4, 1, 1), (4, 2, 2)]
    assert stream(P, data, f"DSTREAM{text}") == [(4, 1, 1)]


def test_6_3_tick_of_the_window_and_a_running_index():
    data = two_windows([7, 8], [8, 9])
    assert stream(P, data, f"RSTREAM{AT_0_AND_1}") == [(0, 1, 7), (0, 2, 8), (1, 3, 8), (1, 4, 9)]
    assert stream(P, data, f"DSTREAM{AT_0_AND_1}") == [(1, 1, 7)]


def test_6_4_indexes_follow_the_order_of_the_figures():
    data = {"p": pushed((0, 1), (0, 2)), "t": [(0, [{"v": 8}, {"v": 9}])]}
    text = "RSTREAM(SELECT p.v, t.v FROM p [FROM NOW TO NOW SLIDE 1 SEC], t [SCAN 1 SEC])"
    assert [row for _, _, row in stream(ALL, data, text)] == [(1, 8), (1, 9), (2, 8), (2, 9)]
    data = {"p": pushed((0, 3), (0, 1), (0, 3))}
    text = "RSTREAM(SELECT v, COUNT(*) FROM p [FROM NOW TO NOW SLIDE 1 SEC] GROUP BY v)"
    assert [row for _, _, row in stream(P, data, text)] == [(3, 2), (1, 1)]  # groups by their first tuple


def test_7_nesting_in_both_directions():
    data = {"r": sensed([1, 5, 2])}
    inner = "RSTREAM(SELECT MAX(v) AS m FROM r [FROM NOW-1 TO NOW SLIDE 1 SEC])"
    assert stream(R, data, f"SELECT m FROM {inner} WHERE m > 1") == [(1, 2, 5), (2, 3, 5)]
    assert windows(R, data, f"SELECT SUM(m) FROM {inner} [FROM NOW-1 TO NOW SLIDE 1 SEC]") == [
        (0, [1]),
        (1, [6]),
        (2, [10]),
    ]
    deep = f"ISTREAM(SELECT SUM(m) AS s FROM {inner} [FROM NOW-1 TO NOW SLIDE 1 SEC])"
    assert windows(R, data, f"SELECT s FROM {deep} [FROM NOW TO NOW SLIDE 2 SEC]") == [(0, [1]), (2, [10])]


def test_7_a_plain_subquery_keeps_ticks_indexes_and_arrivals():
    data = {"p": pushed((3, 9, 1), (4, 2, 2), (5, 3))}
    text = "SELECT v FROM (SELECT v FROM p WHERE v > 1) WHERE index > 1"
    assert stream(P, data, text) == [(2, 2, 2), (5, 3, 3)]
    assert windows(P, data, "SELECT v FROM (SELECT v FROM p WHERE v > 1) [FROM NOW TO NOW SLIDE 1 ROW]") == [
        (4, [2]),
        (5, [3]),
    ]


def test_8_1_everything_ends_at_the_horizon():
    data = {"p": pushed((1, 1), (2, 2))}
    assert windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 ROW]") == [(1, [1]), (2, [2])]
    assert windows(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 SEC]") == [(0, []), (1, [1]), (2, [2])]


def test_8_3_nothing_selected_yet():
    text = "SELECT v FROM (SELECT v FROM r WHERE v > 9) [FROM NOW-1 TO NOW SLIDE 1 ROW]"
    assert windows(R, {"r": sensed([1, 2, 10])}, text) == [(2, [10])]


def test_8_6_a_silent_stream_does_not_hold_windows():
    text = "SELECT COUNT(*) FROM ISTREAM(SELECT MAX(v) FROM r [NOW]) [FROM NOW TO NOW SLIDE 1 SEC]"
    assert updates_of(R, {"r": sensed([5, 5, 5])}, text) == [(0, 0, 0, [], [1]), (1, 1, 0, [], [0]), (2, 2, 0, [], [0])]


def test_8_7_every_tick_counts_once_in_order():
    data = {"p": pushed((1, 1), (1, 2), (2, 3))}
    text = "SELECT a.v, b.v FROM p AS a [FROM NOW TO NOW SLIDE 1 SEC], p AS b [FROM NOW TO NOW SLIDE 1 ROW] WHERE a.v = b.v"
    assert windows(P, data, text) == [(1, [(1, 1)]), (1, [(2, 2)]), (2, [(3, 3)])]


PAPER = """
road: sensed (site:integer, time:integer, temp:integer, vibration:integer) every 1 min at sites 1, 2
traffic: pushed (site:integer, time:integer, weight:integer, vehicle:integer)
tempClass: stored (temp:integer, category:string)
"""


def test_paper_query_2():
    road = [{"_tick": t, "_site": s, "temp": 10 * t + s, "vibration": t + s} for t in (0, 60) for s in (1, 2)]
    traffic = [{"_arrival": 65, "site": 2, "time": 60}, {"_arrival": 70, "site": 1, "time": 0}]
    text = """SELECT MIN(temp), MAX(vibration) FROM road [FROM NOW-10 TO NOW SLIDE 1 MIN],
              traffic [FROM NOW-10 TO NOW SLIDE 1 ROW] WHERE road.site=traffic.site AND road.time=traffic.time"""
    assert windows(PAPER, {"road": road, "traffic": traffic}, text) == [(65, [(602, 62)]), (70, [(1, 62)])]


def test_paper_query_3():
    schema = PAPER.replace("every 1 min", "every 5 min")
    road = [{"_tick": t, "_site": 1, "temp": v} for t, v in ((0, 1), (300, 2), (600, 2), (900, 9))]
    data = {"road": road, "tempClass": [(0, [{"temp": 1, "category": "cold"}, {"temp": 2, "category": "warm"}])]}
    text = """ISTREAM(SELECT road.site, tempClass.category FROM road [FROM NOW-5 TO NOW SLIDE 5 MIN],
              tempClass [SCAN 10 MIN] WHERE tempClass.temp = road.temp)"""
    # 0: cold; 300: cold, warm; 600: warm, warm; 900: warm
    assert stream(schema, data, text) == [(0, 1, (1, "cold")), (300, 2, (1, "warm")), (600, 3, (1, "warm"))]


def test_star_lists_columns_in_the_order_of_from():
    data = {"r": sensed([1]), "t": [(0, [{"v": 8}])]}
    answer = ask(ALL, data, "SELECT * FROM t [SCAN 1 SEC], r [NOW]")
    assert answer.current() == {(0, 1, None): [(8, 1)]} and answer.columns == [("v", "integer"), ("v", "integer")]
