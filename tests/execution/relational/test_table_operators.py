"""One-off queries in the engine (semantics 2.6, 10.6), worked out by hand; and generated ones against the oracle."""

import pytest

from tests.agreement.compare import agree, replayed
from tests.execution.query_generators import once
from tests.oracles.generate import case
from tests.oracles.recompute import run

SCHEMA = """
    a: stored (k:integer, x:float, s:string, c:float {scale 2})
    b: stored (k:integer, y:float, s:string, d:float {scale 1})
    r: pushed (v:integer) wait 2 sec
"""
BIG = 2**53


def table(names, *rows):
    return [(0, [dict(zip(names, row, strict=True)) for row in rows])]


def result_of(query, a=(), b=(), **options):
    inputs = {"a": table("kxsc", *a), "b": table("kysd", *b)}
    return replayed(SCHEMA, inputs, [query], **options).result


def rows(query, a=(), b=()):
    """The rows of the one window, in their order."""
    window, *others = result_of(query, a, b).windows()
    assert not others and (window.tick, window.n, window.revision) == (0, 1, 0)
    return window.added


def ks(*values):
    """Rows in which all but k is null."""
    return [(k, None, None, None) for k in values]


A, B = ks(1, 2, 2, None), ks(2, None, 3, 2)


# --- joins -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("INNER", [(2, 2), (2, 2), (2, 2), (2, 2)]),
        ("LEFT", [(1, None), (2, 2), (2, 2), (2, 2), (2, 2), (None, None)]),
        ("RIGHT", [(2, 2), (2, 2), (2, 2), (2, 2), (None, None), (None, 3)]),
        ("FULL", [(1, None), (2, 2), (2, 2), (2, 2), (2, 2), (None, None), (None, None), (None, 3)]),
    ],
)
def test_outer_join_keeps_row_without_partner_once(kind, expected):
    assert rows(f"SELECT a.k AS p, b.k AS q FROM a {kind} JOIN b ON a.k = b.k", A, B) == expected


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_join_with_empty_table(kind):
    here, there = ("a", "b") if kind != "RIGHT" else ("b", "a")
    query = f"SELECT {here}.k AS p, {there}.s AS q FROM a {kind} JOIN b ON a.k = b.k"
    given = {here: ks(1, 2)}
    assert rows(query, **given) == [(1, None), (2, None)]
    assert rows(query) == []


def test_on_takes_any_condition():
    a, b = ks(1, 5, None), ks(2, 4)
    assert rows("SELECT a.k AS p, b.k AS q FROM a LEFT JOIN b ON a.k < b.k", a, b) == [
        (1, 2), (1, 4), (5, None), (None, None),
    ]  # fmt: skip
    one_sided = "SELECT a.k AS p, b.k AS q FROM a FULL JOIN b ON a.k = b.k + 1 AND b.k > 2 AND a.k IS NOT NULL"
    assert rows(one_sided, a, b) == [(1, None), (5, 4), (None, None), (None, 2)]
    assert rows("SELECT a.k AS p, b.k AS q FROM a LEFT JOIN b ON NULL = b.k", a, b) == [
        (1, None),
        (5, None),
        (None, None),
    ]
    assert rows("SELECT a.k AS p, b.k AS q FROM a LEFT JOIN b ON 1 = 1", ks(1), b) == [(1, 2), (1, 4)]


def test_where_filters_outer_rows_and_on_does_not():
    query = "SELECT a.k AS p, b.k AS q FROM a LEFT JOIN b ON a.k = b.k AND a.k > 1"
    assert rows(query, ks(1, 2), ks(1, 2)) == [(1, None), (2, 2)]
    assert rows(query + " WHERE b.k IS NULL", ks(1, 2), ks(1, 2)) == [(1, None)]


def test_nested_joins_beside_other_entries():
    query = (
        "SELECT a.k AS p, b.k AS q, z.k AS u, w.k AS v "
        "FROM a LEFT JOIN b ON a.k = b.k FULL JOIN a AS z ON z.k = b.k, b AS w"
    )
    assert rows(query, ks(1, 2), ks(2)) == [(1, None, None, 2), (2, 2, 2, 2), (None, None, 1, 2)]


def test_keys_of_different_types_compare_exactly():
    a = [(BIG, None, None, None), (BIG + 1, None, None, None), (3, None, None, None)]
    b = [(None, float(BIG), None, None), (None, 3.0, None, None), (None, 3.5, None, None)]
    query = "SELECT a.k AS p, b.y AS q FROM a FULL JOIN b ON a.k = b.y"
    assert rows(query, a, b) == [(BIG, float(BIG)), (BIG + 1, None), (3, 3.0), (None, 3.5)]


def test_scaled_attributes_join_by_value():
    a, b = [(None, None, None, 0.5), (None, None, None, 0.25)], [(None, 0.25, None, 0.5)]
    assert rows("SELECT a.c AS p, b.d AS q FROM a LEFT JOIN b ON a.c = b.d", a, b) == [(0.5, 0.5), (0.25, None)]
    assert rows("SELECT a.c AS p, b.y AS q FROM a RIGHT JOIN b ON a.c = b.y", a, b) == [(0.25, 0.25)]


def test_pairs_without_equality_are_made_in_portions(monkeypatch):
    from basestation.execution import thresholds

    a, b = ks(*range(7)), ks(*range(5))
    query = "SELECT a.k AS p, b.k AS q FROM a FULL JOIN b ON a.k < b.k"
    whole = rows(query, a, b)
    listed = rows("SELECT a.k AS p, b.k AS q FROM a, b WHERE a.k < b.k", a, b)
    monkeypatch.setattr(thresholds, "JOIN_COMBINATIONS", 6)
    assert rows(query, a, b) == whole
    assert rows("SELECT a.k AS p, b.k AS q FROM a, b WHERE a.k < b.k", a, b) == listed == whole[:10]
    assert whole == [(i, j) for i in range(4) for j in range(i + 1, 5)] + [(4, None), (5, None), (6, None), (None, 0)]


# --- DISTINCT, ORDER BY, LIMIT ---------------------------------------------------------------------------------------


def test_distinct_keeps_the_first_of_equal_rows():
    a = [
        (2, 0.0, "u", None),
        (1, -0.0, "u", None),
        (2, -0.0, "u", None),
        (None, None, None, None),
        (None, None, None, 1.0),
    ]
    assert rows("SELECT DISTINCT x FROM a", a) == [(0.0,), (None,)]
    assert rows("SELECT DISTINCT k, s FROM a", a) == [(2, "u"), (1, "u"), (None, None)]
    assert rows("SELECT DISTINCT CASE WHEN k = 1 THEN 1 ELSE 1.0 END AS one FROM a", a) == [(1.0,)]


def test_distinct_runs_before_order_and_limit():
    a = ks(3, 1, 3, 2, 1)
    assert rows("SELECT DISTINCT k FROM a ORDER BY k DESC", a) == [(3,), (2,), (1,)]
    assert rows("SELECT DISTINCT k FROM a LIMIT 2", a) == [(3,), (1,)]


def test_order_by_is_stable_over_several_keys():
    a = [(1, 2.0, "first", None), (2, 1.0, "b", None), (1, 2.0, "second", None), (1, 3.0, "c", None)]
    assert rows("SELECT s FROM a ORDER BY k, x DESC", a) == [("c",), ("first",), ("second",), ("b",)]
    assert rows("SELECT s FROM a ORDER BY k DESC", a) == [("b",), ("first",), ("second",), ("c",)]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("", [None, 1, 2]),
        (" DESC", [2, 1, None]),
        (" NULLS LAST", [1, 2, None]),
        (" DESC NULLS FIRST", [None, 2, 1]),
    ],
)
def test_position_of_nulls_in_order(how, expected):
    assert rows(f"SELECT k FROM a ORDER BY k{how}", ks(2, None, 1)) == [(k,) for k in expected]


def test_order_by_compares_exactly():
    big = [BIG + 1, BIG, 2**63 - 1, -(2**63), 2**63 - 2]
    assert [k for (k,) in rows("SELECT k FROM a ORDER BY k", ks(*big))] == sorted(big)
    words = ["z", "Z", "", "é", "e\u0301", "木", "😀", "\uffff", "aa", "a"]
    a = [(None, None, s, None) for s in words]
    assert [s for (s,) in rows("SELECT s FROM a ORDER BY s", a)] == sorted(words)  # by code point
    zeros = [(1, 0.0, None, None), (2, -0.0, None, None), (3, -1.0, None, None)]
    assert rows("SELECT k FROM a ORDER BY x", zeros) == [(3,), (1,), (2,)]


def test_order_by_alias_expression_and_unlisted_column():
    a = [(1, 5.0, "p", 0.25), (2, 1.0, "q", 0.5), (3, 3.0, "r", -1.0)]
    assert rows("SELECT -k AS n, s FROM a ORDER BY n", a) == [(-3, "r"), (-2, "q"), (-1, "p")]
    assert rows("SELECT s FROM a ORDER BY x + k", a) == [("q",), ("p",), ("r",)]
    assert rows("SELECT s FROM a ORDER BY c DESC", a) == [("q",), ("p",), ("r",)]
    assert rows("SELECT s, k AS x FROM a ORDER BY x DESC", a) == [("r", 3), ("q", 2), ("p", 1)]  # the alias comes first


def test_limit_cuts_the_rows():
    assert rows("SELECT k FROM a LIMIT 2", ks(1, 2, 3)) == [(1,), (2,)]
    assert rows("SELECT k FROM a LIMIT 9", ks(1)) == [(1,)]
    assert rows("SELECT k FROM a LIMIT 9") == []
    assert rows(f"SELECT k FROM a LIMIT {10**18}", ks(1)) == [(1,)]


def test_groups_are_sorted_and_limited():
    a = [(1, 2.0, None, None), (2, 9.0, None, None), (1, 3.0, None, None), (None, 1.0, None, None)]
    query = "SELECT k, SUM(x) AS t FROM a GROUP BY k HAVING COUNT(*) < 3 ORDER BY t DESC LIMIT 2"
    assert rows(query, a) == [(2, 9.0), (1, 5.0)]
    assert rows("SELECT k FROM a GROUP BY k ORDER BY COUNT(*) DESC, k", a) == [(1,), (None,), (2,)]
    assert rows("SELECT COUNT(*), SUM(k) FROM a LEFT JOIN b ON a.k = b.k".replace("SUM(k)", "SUM(b.k)"), a) == [
        (4, None)
    ]


# --- UNION ALL -------------------------------------------------------------------------------------------------------


def test_union_keeps_duplicates_in_order_of_parts():
    assert rows("SELECT k FROM a UNION ALL SELECT k FROM b UNION ALL SELECT k FROM a", ks(2, 1), ks(2)) == [
        (2,), (1,), (2,), (2,), (1,),
    ]  # fmt: skip
    assert rows("SELECT k AS n FROM a UNION ALL SELECT k FROM b ORDER BY n LIMIT 2", ks(3, 1), ks(2)) == [(1,), (2,)]


def test_union_of_different_scales_gives_doubles():
    a, b = [(None, None, None, 1.25)], [(None, 0.1, None, 0.3)]
    assert rows("SELECT c FROM a UNION ALL SELECT d FROM b UNION ALL SELECT y FROM b", a, b) == [
        (1.25,),
        (0.3,),
        (0.1,),
    ]
    assert rows("SELECT c FROM a UNION ALL SELECT c FROM a ORDER BY c", a, b) == [(1.25,), (1.25,)]
    assert rows("SELECT k, c FROM a UNION ALL SELECT k, d FROM b", a, b) == [(None, 1.25), (None, 0.3)]


# --- subqueries outside FROM -----------------------------------------------------------------------------------------


def test_scalar_subquery_gives_its_value():
    a = ks(1, 2, 3)
    assert rows("SELECT k FROM a WHERE k >= (SELECT MAX(k) FROM b)", a, ks(2, 1)) == [(2,), (3,)]
    assert rows("SELECT (SELECT y FROM b) AS v FROM a", ks(1)) == [(None,)]  # no row is null
    assert rows("SELECT k + (SELECT d FROM b) AS v FROM a", ks(1), [(None, None, None, 0.5)]) == [(1.5,)]
    assert rows("SELECT SUM(k + (SELECT COUNT(*) FROM b)) FROM a", ks(1, 2), ks(7)) == [(5,)]


def test_scalar_subquery_with_two_rows_ends_the_query():
    found = result_of("SELECT k FROM a WHERE k = (SELECT k FROM b)", ks(1), ks(1, 1))
    assert (found.errors[1].code, found.errors[1].clock) == ("SN511", 0)
    assert found.errors[1].message == "a subquery gives 2 rows where one value is needed"
    assert found.windows() == []


def test_exists_is_true_for_any_row():
    assert rows("SELECT k FROM a WHERE EXISTS (SELECT k FROM b WHERE k > 5)", ks(1), ks(6)) == [(1,)]
    assert rows("SELECT k FROM a WHERE EXISTS (SELECT k FROM b WHERE k > 5)", ks(1), ks(5)) == []
    assert rows("SELECT k FROM a WHERE NOT EXISTS (SELECT k FROM b WHERE k > 5)", ks(1), ks(5)) == [(1,)]


@pytest.mark.parametrize(
    ("members", "inside", "outside"),
    [
        ([2, 3], [2], [1]),  # null is neither in nor not in
        ([2, None], [2], []),  # 1 may be what is missing
        ([None], [], []),
        ([], [], [1, 2, None]),  # nothing is in nothing
    ],
)
def test_in_is_three_valued(members, inside, outside):
    a = ks(1, 2, None)
    assert rows("SELECT k FROM a WHERE k IN (SELECT k FROM b)", a, ks(*members)) == [(k,) for k in inside]
    assert rows("SELECT k FROM a WHERE k NOT IN (SELECT k FROM b)", a, ks(*members)) == [(k,) for k in outside]


def test_in_compares_exactly():
    floats = [(None, y, None, None) for y in (float(BIG), 2.5, -0.0, 1e300)]
    assert rows("SELECT k FROM a WHERE k IN (SELECT y FROM b)", ks(BIG, BIG + 1, 2, 0), floats) == [(BIG,), (0,)]
    a = [(None, x, None, None) for x in (float(BIG), 2.5, 0.0, -1e300)]
    assert rows("SELECT x FROM a WHERE x IN (SELECT k FROM b)", a, ks(BIG + 1, 0)) == [(0.0,)]
    strings = [(None, None, s, None) for s in ("x", "", None)]
    assert rows("SELECT s FROM a WHERE s IN (SELECT s FROM b)", strings, strings[:2]) == [("x",), ("",)]
    assert rows(
        "SELECT c FROM a WHERE c IN (SELECT d FROM b)", [(None, None, None, 0.5)], [(None, None, None, 0.5)]
    ) == [(0.5,)]


def test_subqueries_nest_in_all_clauses():
    a, b = ks(1, 2, 3), ks(2, 3)
    inner = "SELECT k FROM b WHERE k > (SELECT MIN(k) FROM b)"
    assert rows(f"SELECT k FROM a WHERE k IN ({inner})", a, b) == [(3,)]
    assert rows(f"SELECT a.k AS p, b.k AS q FROM a LEFT JOIN b ON a.k = b.k AND b.k IN ({inner})", a, b) == [
        (1, None), (2, None), (3, 3),
    ]  # fmt: skip
    assert rows("SELECT k FROM a GROUP BY k HAVING COUNT(*) < (SELECT COUNT(*) FROM b) ORDER BY -k", a, b) == [
        (3,), (2,), (1,),
    ]  # fmt: skip
    assert rows("SELECT k FROM a ORDER BY ABS(k - (SELECT MAX(k) FROM b))", a, b) == [(3,), (2,), (1,)]


# --- when it is evaluated --------------------------------------------------------------------------------------------


def test_one_off_query_reads_version_at_its_start():
    inputs = {"a": [(0, [{"k": 1}]), (5, [{"k": 2}])], "b": [(0, []), (5, [{"k": 2}])]}
    asked = "SELECT k, (SELECT COUNT(*) FROM b) AS n FROM a"
    said = replayed(SCHEMA, inputs, [asked, (asked, 5)], until=9).result
    assert [(w.tick, w.added) for w in said.windows(1)] == [(0, [(1, 0)])]
    assert [(w.tick, w.added) for w in said.windows(2)] == [(5, [(2, 1)])]


@pytest.mark.parametrize(("kind", "expected"), [("RSTREAM", [1, 2]), ("ISTREAM", [1, 2]), ("DSTREAM", [])])
def test_table_operators_inside_a_converter(kind, expected):
    query = f"{kind}(SELECT k FROM a WHERE k IN (SELECT k FROM b) ORDER BY k)"
    said = result_of(query, ks(2, 3, 1), ks(1, 2), until=3)
    assert [(t.tick, t.index, t.row) for t in said.tuples()] == [(0, i, (k,)) for i, k in enumerate(expected, 1)]


def test_windows_over_tuples_of_a_one_off_query():
    query = "SELECT COUNT(*) FROM RSTREAM(SELECT DISTINCT k FROM a WHERE k <= (SELECT MAX(k) FROM b)) AS z [FROM NOW-2 TO NOW SLIDE 2 SEC]"
    said = result_of(query, ks(1, 1, 2), ks(2), until=6)
    assert [(w.tick, w.added) for w in said.windows()] == [(0, [(2,)]), (2, [(2,)]), (4, [(0,)]), (6, [(0,)])]


def test_one_off_query_waits_for_history():
    inputs = {"r": [{"_arrival": 0, "v": 4}, {"_arrival": 0, "v": 7}], "a": table("kxsc", *ks(1)), "b": []}
    said = replayed(SCHEMA, inputs, ["SELECT k, (SELECT MAX(v) FROM r.history) AS m FROM a"], until=5, every_tick=True)
    assert [(w.tick, w.added) for w in said.result.windows()] == [(0, [(1, 7)])]
    assert said.clocks[1] == [2]  # r waits 2 ticks


# --- against the oracle ----------------------------------------------------------------------------------------------


def in_order(made):
    """The rows of all windows as both give them, so that ORDER BY shows."""
    oracle = run(made.schema, made.inputs, made.queries).answers[0]
    engine = replayed(made.schema, made.inputs, made.queries).result
    return [w.added for w in engine.windows()], [list(w.added) for w in oracle.windows]


def test_generated_queries_over_tables_agree_with_the_oracle(counts, rng):
    found = 0
    for _ in range(counts(40, 400)):
        made = once(rng.getrandbits(48))
        outcome = agree(made.schema, made.inputs, made.queries, seconds=20)
        assert outcome or outcome.verdict == "too slow", outcome.report
        if outcome.verdict in ("agree", "order"):
            engine, oracle = in_order(made)
            assert engine == oracle, made.query
            found += any(engine)
    assert found


def test_generated_one_off_cases_agree_with_the_oracle(counts, rng):
    left = counts(10, 100)
    while left:
        made = case(rng.getrandbits(48))
        if "oneoff" in made.traits:
            outcome = agree(made.schema, made.inputs, made.queries, seconds=20)
            assert outcome or outcome.verdict == "too slow", outcome.report
            left -= 1
