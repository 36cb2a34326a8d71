"""The oracle against semantics 12 and the corners of 14. Expected values are worked out by hand from the text."""

from tests.oracles.recompute import run
from tests.oracles.shortcuts import ask, pushed, rejection_kind, sensed, stream, updates_of, windows

R = "r: sensed (v:integer) every 1 sec at sites 1"
P = "p: pushed (v:integer)"
TWO = "r: sensed (site:integer, v:integer) every 1 sec at sites 1, 2 wait 1 sec"
EVERY_SECOND = "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 SEC]"


def marks(schema, inputs, text, **options):
    return [(m.clock, m.tick, m.coverage) for m in ask(schema, inputs, text, **options).marks]


# --- 12.1 ------------------------------------------------------------------------------------------------------------


def test_12_1_differences_only():
    data = {"p": pushed((1, 5), (1, 6), (3, 1, 7))}
    text = "SELECT v, COUNT(*) FROM p [FROM NOW TO NOW SLIDE 1 SEC] GROUP BY v"
    assert updates_of(P, data, text)[1] == (1, 1, 0, [], [(5, 1), (6, 1)])
    assert updates_of(P, data, text)[3] == (3, 1, 1, [], [(7, 1)])
    text = "SELECT COUNT(*), MAX(v) FROM p [FROM NOW TO NOW SLIDE 1 SEC]"
    assert updates_of(P, data, text)[3] == (3, 1, 1, [(2, 6)], [(3, 7)])


def test_12_1_one_clock_tick_makes_one_revision():
    data = {"p": pushed((3, 1, 7), (3, 1, 8), (4, 1, 9))}
    assert [u for u in updates_of(P, data, EVERY_SECOND) if u[1] == 1] == [
        (1, 1, 0, [], []),
        (3, 1, 1, [], [7, 8]),
        (4, 1, 2, [], [9]),
    ]


def test_12_1_a_revision_that_changes_nothing_uses_no_number():
    data = {"p": pushed((1, 5), (2, 1, 3), (3, 1, 9))}
    found = updates_of(P, data, "SELECT MAX(v) FROM p [FROM NOW TO NOW SLIDE 1 SEC]")
    assert [u for u in found if u[1] == 1] == [(1, 1, 0, [], [5]), (3, 1, 1, [5], [9])]


def test_12_1_revised_window_revises_istream_and_dstream():
    data = {"p": pushed((1, 5), (2, 6), (3, 1, 6))}
    # Windows at 0: {}, 1: {5}, 2: {6}, 3: {}. At 3 the window at 1 becomes {5, 6}: ISTREAM of 2 becomes {}.
    assert updates_of(P, data, f"ISTREAM({EVERY_SECOND})") == [
        (1, 1, 1, 1, 5),
        (2, 2, 2, 1, 6),
        (3, 2, 2, -1, 6),
        (3, 1, 3, 1, 6),
    ]
    # DSTREAM of 2 was {5} and stays {5}: 6 stays in both. At 3: {6}.
    assert updates_of(P, data, f"DSTREAM({EVERY_SECOND})") == [(2, 2, 1, 1, 5), (3, 3, 2, 1, 6)]


def test_12_1_added_converter_tuple_has_tick_of_its_window():
    data = {"p": pushed((1, 5), (3, 1, 6))}
    text = f"SELECT v FROM RSTREAM({EVERY_SECOND}) [FROM NOW TO NOW SLIDE 1 ROW]"
    assert windows(P, data, text) == [(1, [5]), (3, [6])]  # a row window has the arrival of its row
    text = f"SELECT v FROM RSTREAM({EVERY_SECOND}) x [FROM NOW TO NOW SLIDE 1 SEC]"
    assert windows(P, data, text) == [(0, []), (1, [5, 6]), (2, []), (3, [])]  # a time window goes by the tick


def test_12_1_highest_index_of_equal_tuples_is_taken_back():
    data = {"p": [*pushed((1, 5), (1, 5), (1, 5)), {"_arrival": 3, "_weight": -1, "_replaces": 1}]}
    found = updates_of(P, data, f"RSTREAM({EVERY_SECOND})")
    assert found == [(1, 1, 1, 1, 5), (1, 1, 2, 1, 5), (1, 1, 3, 1, 5), (3, 1, 3, -1, 5)]


def test_12_1_indexes_and_rows_never_move():
    data = {"p": [*pushed((1, 5), (2, 6)), {"_arrival": 3, "_weight": -1, "_replaces": 1}, *pushed((4, 7))]}
    assert updates_of(P, data, "SELECT v FROM p") == [
        (1, 1, 1, 1, 5),
        (2, 2, 2, 1, 6),
        (3, 1, 1, -1, 5),
        (4, 4, 3, 1, 7),
    ]
    # The row of the one taken back is empty.
    assert updates_of(P, data, "SELECT v FROM p [FROM NOW-2 TO NOW SLIDE 1 ROW]") == [
        (1, 1, 0, [], [5]), (2, 2, 0, [], [5, 6]), (3, 1, 1, [5], []), (3, 2, 1, [5], []), (4, 4, 0, [], [6, 7]),
    ]  # fmt: skip


def test_12_1_a_replacement_that_stays_keeps_index_and_row():
    data = {"p": [*pushed((1, 5), (2, 6)), {"_arrival": 3, "_replaces": 1, "v": 9}]}
    assert updates_of(P, data, "SELECT v FROM p WHERE v > 4")[2:] == [(3, 1, 1, -1, 5), (3, 1, 1, 1, 9)]
    assert updates_of(P, data, "SELECT v FROM p [FROM NOW-1 TO NOW SLIDE 2 ROWS]") == [
        (2, 2, 0, [], [5, 6]),
        (3, 2, 1, [5], [9]),
    ]


def test_12_1_tuple_that_passes_after_a_revision_is_next_row():
    data = {"p": [*pushed((1, 2), (2, 6)), {"_arrival": 3, "_replaces": 1, "v": 9}]}
    assert windows(P, data, "SELECT v FROM (SELECT v FROM p WHERE v > 4) [FROM NOW-1 TO NOW SLIDE 1 ROW]") == [
        (2, [6]), (3, [6, 9]),
    ]  # fmt: skip


def test_12_1_windows_of_one_tick_are_counted():
    data = {"p": pushed((1, 5), (1, 6))}
    found = ask(P, data, "SELECT v FROM p [FROM NOW TO NOW SLIDE 1 ROW]").windows
    assert [(u.tick, u.n) for u in found] == [(1, 1), (1, 2)]


# --- 12.2 ------------------------------------------------------------------------------------------------------------


def test_12_2_deletion_and_replacement_by_key():
    data = {"r": [*sensed([5, 6, 7]), {"_tick": 1, "_site": 1, "_arrival": 2, "_weight": -1}]}
    assert windows(R, data, "SELECT v FROM r [NOW]") == [(0, [5]), (1, []), (2, [7])]
    data["r"][3] = {"_tick": 1, "_site": 1, "_arrival": 2, "_replaces": 2, "v": 8}
    assert windows(R, data, "SELECT v FROM r [NOW]") == [(0, [5]), (1, [8]), (2, [7])]
    assert run(R, data, []).ledger["r"] == {"received": 4, "accepted": 3, "revised": 1}


def test_12_2_a_correction_of_nothing_is_counted():
    gone = {"_arrival": 3, "_weight": -1, "_replaces": 1}
    result = run(P, {"p": [*pushed((1, 5)), gone, gone, {**gone, "_replaces": 7}]}, ["SELECT v FROM p"])
    assert result.answers[0].current() == []
    assert result.ledger["p"] == {"received": 4, "accepted": 1, "revised": 1, "rejected: no such tuple": 2}


def test_12_2_replacement_by_key_and_one_that_changes_nothing():
    by_key = {"_tick": 1, "_site": 1, "_arrival": 2, "_replaces": 0}
    data = {"r": [*sensed([5, 6, 7]), {**by_key, "v": 8}, {**by_key, "v": 8}, {**by_key, "_tick": 9, "v": 8}]}
    assert windows(R, data, "SELECT v FROM r [NOW]", until=2) == [(0, [5]), (1, [8]), (2, [7])]
    ledger = run(R, data, [], until=2).ledger["r"]
    assert ledger == {"received": 6, "accepted": 3, "revised": 1, "unchanged": 1, "rejected: no such tuple": 1}


def test_12_2_correction_moves_no_tuple():
    data = {"r": [*sensed([5, 6, 7]), {"_tick": 2, "_arrival": 3, "_replaces": 2, "v": 8}]}
    data["r"].append({"_site": 9, "_arrival": 3, "_replaces": 2, "_weight": -1})
    assert windows(R, data, "SELECT v FROM r [NOW]", until=2) == [(0, [5]), (1, [6]), (2, [7])]
    assert run(R, data, []).ledger["r"] == {"received": 5, "accepted": 3, "rejected: another tick or site": 2}


def test_12_2_statements():
    data = {"r": sensed([5, 6, 7, 8])}
    queries = [
        "SELECT v FROM r [NOW]", ("REVISE r SET v = v * 10 WHERE tick >= 1 AND v < 7", 2), ("DELETE FROM r WHERE v = 60 OR index = 1", 3),
        ("INSERT INTO r (tick, _site, v) VALUES (1, 1, 66)", 3),
    ]  # fmt: skip
    found = run(R, data, queries).answers[0]
    assert [(u.clock, u.tick, u.removed, u.added) for u in found.updates if u.revision] == [
        (2, 1, ((6,),), ((60,),)), (3, 0, ((5,),), ()), (3, 1, ((60,),), ((66,),)),
    ]  # fmt: skip


def test_12_2_invalid_statements_are_rejected():
    schema = TWO + "\np: pushed (v:integer, x:float)"
    for text, kind in (
        ("REVISE r SET site = 2 WHERE v = 1", "static"), ("REVISE p SET tick = 2 WHERE v = 1", "static"),
        ("REVISE p SET v = x WHERE v = 1", "type"), ("REVISE p SET v = 'a' WHERE v = 1", "type"), ("REVISE p SET w = 1 WHERE v = 1", "name"),
        ("INSERT INTO r (tick, v) VALUES (1, 1)", "static"), ("INSERT INTO r (site, v) VALUES (1, 1)", "static"),
        ("INSERT INTO p (v) VALUES (1.5)", "type"), ("INSERT INTO p (x) VALUES (1)", None), ("REVISE p SET x = v WHERE v = 1", None),
    ):  # fmt: skip
        assert rejection_kind(schema, text) == kind, text


def test_12_2_insert_into_a_pushed_extent_defaults_to_now():
    result = run(P, {"p": pushed((1, 5))}, ["SELECT v FROM p", ("INSERT INTO p (v) VALUES (6), (NULL)", 4)])
    assert result.answers[0].current() == [(1, 1, (5,)), (4, 2, (6,)), (4, 3, (None,))]


def test_12_2_corrected_back_to_the_horizon_history_entirely():
    queries = ["SELECT v FROM p", "SELECT v FROM p.history [SCAN 9 SEC]", ("REVISE p SET v = 0 WHERE v > 0", 9)]
    live, history, _ = run(P + " late revise by 3 sec", {"p": pushed((5, 1), (6, 2))}, queries).answers
    assert live.current() == [(5, 1, (1,)), (6, 2, (0,))]
    assert history.current()[9, 1, None] == [(0,), (0,)]


def test_12_2_append_and_drop_extents_revise_only_history():
    queries = ["SELECT v FROM p", "SELECT v FROM p.history [SCAN 3 SEC]", ("DELETE FROM p WHERE v = 1", 3)]
    for late in ("append", "drop"):
        live, history, _ = run(f"{P} late {late}", {"p": pushed((1, 1), (2, 2))}, queries).answers
        assert live.current() == [(1, 1, (1,)), (2, 2, (2,))]
        assert history.current()[3, 1, None] == [(2,)]


# --- 12.3 ------------------------------------------------------------------------------------------------------------


def covers(schema, inputs, text, **options):
    return {key[0]: c for key, c in ask(schema, inputs, text, **options).current_coverage().items()}


ROWS = [{"_tick": 0, "_site": 1, "v": 1}, {"_tick": 0, "_site": 2, "v": 2}, {"_tick": 1, "_site": 1, "v": 3}]


def test_12_3_used_and_due():
    text = "SELECT v FROM r [FROM NOW-1 TO NOW SLIDE 1 SEC]"
    # At 0 nothing before tick 0 is due; at 1 site 2 of tick 1 is missing.
    assert covers(TWO, {"r": ROWS}, text, until=2) == {0: {"r": [2, 2]}, 1: {"r": [3, 4]}, 2: {"r": [1, 4]}}


def test_12_3_readings_excluded_by_site_count_as_used():
    text = "SELECT v FROM r [FROM NOW-1 TO NOW SLIDE 1 SEC] WHERE {}"
    assert covers(TWO, {"r": ROWS}, text.format("site = 1 AND v > 1"), until=1)[1] == {"r": [4, 4]}
    assert covers(TWO, {"r": ROWS}, text.format("(site = 1 OR v > 1)"), until=1)[1] == {"r": [3, 4]}
    assert covers(TWO, {"r": ROWS}, text.format("site = 2"), until=1)[1] == {"r": [3, 4]}
    inner = "SELECT v FROM (SELECT site AS s, v FROM r WHERE {}) [FROM NOW-1 TO NOW SLIDE 1 SEC] WHERE {}"
    assert covers(TWO, {"r": ROWS}, inner.format("site < 2", "v > 0"), until=1)[1] == {"r": [4, 4]}
    through_a_projection = inner.format("v > 0", "s <> 2")
    assert covers(TWO, {"r": ROWS}, through_a_projection, until=1)[1] == {"r": [4, 4]}


def test_12_3_a_row_window_ranges_over_the_ticks_of_its_rows():
    text = "SELECT v FROM r [FROM NOW-2 TO NOW SLIDE 3 ROWS]"
    assert covers(TWO, {"r": ROWS}, text, until=2) == {1: {"r": [3, 4]}}
    assert covers(TWO, {"r": ROWS}, "SELECT v FROM r [FROM NOW-9 TO NOW-5 SLIDE 3 ROWS]", until=2) == {1: {"r": [0, 0]}}


def test_12_3_pushed_extents_are_null_and_products_cover_both():
    schema = TWO + "\np: pushed (v:integer)"
    text = "SELECT r.v FROM r [FROM NOW TO NOW SLIDE 1 SEC], p [FROM NOW TO NOW SLIDE 1 SEC]"
    assert covers(schema, {"r": ROWS, "p": []}, text, until=1) == {
        0: {"r": [2, 2], "p": None},
        1: {"r": [1, 2], "p": None},
    }


def test_12_3_each_reading_counts_once():
    text = "SELECT a.v FROM r AS a [FROM NOW-1 TO NOW SLIDE 1 SEC], r AS b [FROM NOW TO NOW SLIDE 1 SEC]{}"
    assert covers(TWO, {"r": ROWS}, text.format(""), until=1)[1] == {"r": [3, 4]}
    # 14: excluded only if every occurrence whose range holds it excludes it. (2, 1) is missing and in both ranges.
    assert covers(TWO, {"r": ROWS}, text.format(" WHERE a.site = 1"), until=1)[1] == {"r": [3, 4]}
    assert covers(TWO, {"r": ROWS}, text.format(" WHERE a.site = 1 AND b.site = 1"), until=1)[1] == {"r": [4, 4]}


def test_12_3_coverage_is_revised_with_the_answer():
    rows = [*ROWS, {"_tick": 1, "_site": 2, "v": 0, "_arrival": 4}]
    found = ask(TWO, {"r": rows}, "SELECT MAX(v) FROM r [FROM NOW TO NOW SLIDE 1 SEC]").windows
    assert [(u.clock, u.tick, u.revision, u.coverage["r"], u.added) for u in found if u.tick == 1] == [
        (2, 1, 0, [1, 2], ((3,),)), (4, 1, 1, [2, 2], ()),
    ]  # fmt: skip


def test_12_3_late_append_is_used_from_its_arrival_on():
    rows = [*ROWS, {"_tick": 1, "_site": 2, "v": 0, "_arrival": 4}]
    found = covers(TWO + " late append", {"r": rows}, "SELECT v FROM r [FROM NOW-3 TO NOW SLIDE 1 SEC]", until=4)
    assert found == {0: {"r": [2, 2]}, 1: {"r": [3, 4]}, 2: {"r": [3, 6]}, 3: {"r": [3, 8]}, 4: {"r": [2, 8]}}
    assert marks(TWO + " late append", {"r": rows}, "SELECT v FROM r", until=4)[3] == (4, 1, {"r": [2, 2]})


def test_12_3_for_ends_the_marks_too():
    assert [tick for _, tick, _ in marks(TWO, {"r": ROWS}, "SELECT v FROM r FOR 1 SEC", until=4)] == [0, 1]


def test_12_3_a_range_without_inner_windows():
    text = "SELECT COUNT(*) FROM RSTREAM(SELECT v FROM r [FROM NOW TO NOW SLIDE 2 SEC]) [FROM NOW TO NOW SLIDE 1 SEC]"
    assert covers(TWO, {"r": ROWS}, text, until=1) == {0: {"r": [2, 2]}, 1: {"r": [0, 0]}}


def test_12_3_epoch_marks_of_a_plain_stream():
    rows = [*ROWS, {"_tick": 1, "_site": 2, "v": 0, "_arrival": 4}]
    assert marks(TWO, {"r": rows}, "SELECT v FROM r WHERE v > 2", until=4) == [
        (0, 0, {"r": [2, 2]}), (2, 1, {"r": [1, 2]}), (3, 2, {"r": [0, 2]}), (4, 1, {"r": [2, 2]}), (4, 3, {"r": [0, 2]}),
        (4, 4, {"r": [0, 2]}),
    ]  # fmt: skip


def test_12_3_a_converters_marks_are_those_of_its_windows():
    text = "ISTREAM(SELECT v FROM r [FROM NOW-1 TO NOW SLIDE 2 SEC])"
    assert marks(TWO, {"r": ROWS}, text, until=2) == [(0, 0, {"r": [2, 2]}), (2, 2, {"r": [1, 4]})]


def test_12_3_window_over_converter_covers_inner_windows():
    text = "SELECT COUNT(*) FROM RSTREAM(SELECT v FROM r [FROM NOW TO NOW SLIDE 1 SEC]) [FROM NOW-1 TO NOW SLIDE 2 SEC]"
    assert covers(TWO, {"r": ROWS}, text, until=2) == {0: {"r": [2, 2]}, 2: {"r": [1, 4]}}


# --- 14 --------------------------------------------------------------------------------------------------------------


def test_14_1_5_only_a_late_tuple_can_be_beyond_the_horizon():
    schema = P + " wait 10 sec late revise by 2 sec"
    assert stream(schema, {"p": pushed((5, 1, 7))}, "SELECT v FROM p") == [(1, 1, 7)]


def test_14_1_5_index_below_a_window_is_null_until_entry():
    schema = P + " wait 2 sec"
    data = {"p": pushed((0, 1), (5, 1, 9))}  # 1 is late at 5: the watermark at 4 was 2; it enters at 7
    text = "SELECT i FROM (SELECT index AS i, v FROM p) [FROM NOW TO NOW SLIDE 1 SEC]"
    assert [u for u in updates_of(schema, data, text, until=9) if u[1] == 1] == [
        (3, 1, 0, [], []), (5, 1, 1, [], [None]), (7, 1, 2, [None], [2]),
    ]  # fmt: skip


def test_14_1_5_set_aside_copies_do_not_hold_the_key():
    one = {"_tick": 3, "_site": 1, "v": 5}
    # Set aside as ahead (3 - 0 > 1): does not hold the key.
    result = run(R, {"r": [{**one, "v": 1, "_arrival": 0}, one]}, ["SELECT v FROM r"])
    assert result.answers[0].current() == [(3, 1, (5,))] and result.ledger["r"] == {
        "received": 2,
        "ahead": 1,
        "accepted": 1,
    }
    # Dropped, or beyond the horizon: holds it.
    late = [{**one, "_arrival": 9}, {**one, "_arrival": 10}, {**one, "v": 6, "_arrival": 10}]
    ledger = run(R + " late drop", {"r": late}, []).ledger["r"]
    assert ledger == {"received": 3, "dropped": 1, "duplicate": 1, "conflict": 1}
    ledger = run(R + " late revise by 2 sec", {"r": late}, []).ledger["r"]
    assert ledger == {"received": 3, "beyond horizon": 1, "late": 1, "duplicate": 1, "conflict": 1}


def test_14_1_5_on_time_at_the_end_is_judged_a_tick_before():
    schema = P + " wait 5 sec"
    assert updates_of(schema, {"p": pushed((9, 5, 7))}, "SELECT v FROM p") == [
        (9, 5, 1, 1, 7)
    ]  # 5 > 3: on time, arrival 5
    assert updates_of(schema, {"p": pushed((9, 2, 7), (9, 4, 8))}, "SELECT v FROM p") == [
        (9, 4, 1, 1, 8),
        (9, 2, 2, 1, 7),
    ]


def test_14_1_5_the_formula_holds_before_zero():
    data = {"p": pushed((0, -3, 7))}
    assert windows(P + " wait 5 sec", data, "SELECT v FROM p [FROM NOW-3 TO NOW SLIDE 1 SEC]", until=1) == [
        (0, [7]),
        (1, []),
    ]
    assert updates_of(P + " wait 5 sec", data, "SELECT v FROM p", until=9)[0][0] == 2  # -3 + 5
    assert updates_of(P, data, "SELECT v FROM p", until=9)[0] == (0, -3, 1, 1, 7)  # late, arrival 0


def test_14_3_6_converter_tuples_of_append_extents_revise():
    schema = P + " late append\nq: pushed (v:integer)"
    data = {"p": pushed((3, 1, 7)), "q": pushed((3, 1, 8))}
    text = "SELECT v FROM (SELECT v FROM p UNION ALL SELECT v FROM q) [FROM NOW-2 TO NOW SLIDE 1 SEC]"
    assert windows(schema, data, text) == [(0, []), (1, [8]), (2, [8]), (3, [7, 8])]


def test_14_12_1_added_tuples_enter_after_window_tuples():
    data = {"p": pushed((1, 5), (3, 1, 6), (3, 7))}
    assert updates_of(P, data, f"RSTREAM({EVERY_SECOND})") == [(1, 1, 1, 1, 5), (3, 3, 2, 1, 7), (3, 1, 3, 1, 6)]


def test_14_12_1_tuple_deleted_before_entry_has_no_index():
    schema = P + " wait 3 sec"
    data = {"p": [*pushed((1, 5), (2, 6)), {"_arrival": 5, "_replaces": 1, "_weight": -1}]}
    # 5 enters at 4 (index 1) and is taken back at 5, when 6 enters.
    assert updates_of(schema, data, "SELECT v FROM p", until=9) == [(4, 1, 1, 1, 5), (5, 1, 1, -1, 5), (5, 2, 2, 1, 6)]
    queries = ["SELECT v FROM p", ("DELETE FROM p WHERE v = 5", 3)]
    found = run(schema, {"p": pushed((1, 5), (2, 6))}, queries, until=9).answers[0]
    assert [(u.clock, u.tick, u.index, u.weight) for u in found.tuples] == [(5, 2, 1, 1)]


def test_14_12_3_used_counts_all_readings_in_a_row_window():
    text = "SELECT v FROM (SELECT v FROM r WHERE v < 2 OR v > 2) [FROM NOW-1 TO NOW SLIDE 2 ROWS]"
    assert covers(TWO, {"r": ROWS}, text, until=2) == {1: {"r": [3, 4]}}  # (2, 0) was read, and is no row


def test_14_12_3_windows_compared_by_istream_do_not_count():
    assert marks(TWO, {"r": ROWS}, "ISTREAM(SELECT v FROM r [FROM NOW TO NOW SLIDE 1 SEC])", until=1)[1] == (
        1,
        1,
        {"r": [1, 2]},
    )
