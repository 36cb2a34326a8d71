"""The oracle against semantics 5, 10.4, 10.5 and their corners in 14. Expected values are worked out by hand."""

import math
from fractions import Fraction

import pytest

from tests.oracles.shortcuts import ask, holds, pushed, rejection_kind, sensed, value, windows
from tests.oracles.values import exact_sqrt

T = "t: stored (a:integer, b:integer, x:float, y:float, s:string, u:string)"


def test_5_1_nulls():
    assert value("b + 1") is None and value("x * 2.5") is None and value("-b") is None
    assert holds("b = b") is None and holds("b <> 1") is None and holds("NOT b = 1") is None
    assert holds("a = 1 AND b = 1") is False and holds("a = 0 AND b = 1") is None
    assert holds("a = 0 OR b = 1") is True and holds("a = 1 OR b = 1") is None


@pytest.mark.parametrize(("expression", "expected"), [
    ("7 / 2", 3), ("-7 / 2", -3), ("7 / -2", -3), ("-7 / -2", 3), ("7 / 2.0", 3.5), ("2 + 3 * 4", 14), ("10 - 3 - 2", 5),
    ("100 / 10 / 5", 2), ("- - 3", 3), ("1 + 2.0", 3.0), ("9007199254740993 + 0", 9007199254740993),
])  # fmt: skip
def test_5_2_arithmetic(expression, expected):
    found = value(expression)
    assert found == expected and type(found) is type(expected)


def test_5_2_integers_and_floats_compare_by_value():
    assert holds("a = x", {"a": 1, "x": 1.0}) is True
    assert holds("a = x", {"a": 2**53 + 1, "x": 2.0**53}) is False


def test_5_3_division_by_zero_is_null():
    assert value("1 / 0") is None and value("1.5 / 0") is None and value("1 % 0") is None and value("1.5 % 0.0") is None


def bag(*rows):
    return {"t": [(0, [dict(zip(("a", "b", "x", "y", "s", "u"), row, strict=False)) for row in rows])]}


def one(text, data):
    found = windows(T, data, text)
    assert len(found) == 1
    return found[0][1]


def test_5_4_bags_keep_duplicates():
    assert one("SELECT a FROM t WHERE a < 2", bag((1,), (1,), (2,))) == [1, 1]


def test_5_5_aggregates():
    data = bag((1, None, 0.5, None, "b"), (2, 5, None, None, "a"), (4, None, 0.25, None, None))
    text = "SELECT COUNT(*), COUNT(b), SUM(a), SUM(x), AVG(a), MIN(s), MAX(s), MAX(a) - MIN(a), 12 / COUNT(*) FROM t"
    assert one(text, data) == [(3, 1, 7, 0.75, 7 / 3, "a", "b", 3, 4)]
    assert one("SELECT SUM(a + b) FROM t", data) == [7]


def test_5_5_sums_of_floats_are_exact_and_rounded_once():
    data = bag(*((0, 0, x) for x in (1e16, 1.0, -1e16, 0.1, 0.2)))
    # 1 + 0.1 + 0.2 over the doubles: 0.1 + 0.2 is a little above 0.3, 1 + that rounds to 1.3.
    assert one("SELECT SUM(x) FROM t", data) == [float(1 + Fraction(0.1) + Fraction(0.2))]
    assert one("SELECT SUM(x), AVG(x) FROM t", bag((0, 0, 1e16), (0, 0, 1.0), (0, 0, -1e16))) == [(1.0, 1 / 3)]
    assert one("SELECT AVG(a) FROM t", bag((2**62,), (2**62 + 2,))) == [float(2**62 + 1)]
    assert one("SELECT AVG(a) FROM t", bag((2**53 + 1,), (2**53 + 1,), (2**53 + 1,))) == [float(2**53)]  # to even


def test_5_6_aggregates_over_nothing():
    empty = {"t": []}
    assert one("SELECT COUNT(*), COUNT(a), MIN(a), MAX(a), SUM(a), AVG(a) FROM t", empty) == [
        (0, 0, None, None, None, None)
    ]
    assert one("SELECT COUNT(*) FROM t HAVING COUNT(*) > 0", empty) == []
    assert one("SELECT COUNT(x), SUM(x) FROM t", bag((1,), (2,))) == [(0, None)]


def test_5_7_groups():
    data = bag((1, 10), (None, 20), (1, 30), (None, 40))
    assert one("SELECT a, SUM(b) FROM t GROUP BY a", data) == [(1, 40), (None, 60)]  # nulls equal each other
    assert one("SELECT SUM(b) FROM t GROUP BY a HAVING a = 1", data) == [40]
    assert one("SELECT COUNT(*) FROM t GROUP BY x", bag((1, 1, 0.0), (2, 2, -0.0))) == [2]
    assert one("SELECT COUNT(*) FROM t GROUP BY a, b", bag((1, 1), (1, 1), (1, 2))) == [2, 1]
    assert one("SELECT a FROM t GROUP BY a", {"t": []}) == []
    assert one("SELECT 7 FROM t HAVING COUNT(*) > 1", data) == [7]
    assert rejection_kind(T, "SELECT COUNT(*) FROM t GROUP BY c") == "name"
    assert rejection_kind(T, "SELECT a + 1 FROM t GROUP BY a + 1") == "syntax"  # columns only


def test_5_7_groups_are_made_inside_each_window():
    data = {"p": pushed((0, 1), (0, 1), (1, 1))}
    found = windows(
        "p: pushed (v:integer)", data, "SELECT v, COUNT(*) FROM p [FROM NOW TO NOW SLIDE 1 SEC] GROUP BY v", until=2
    )
    assert found == [(0, [(1, 2)]), (1, [(1, 1)]), (2, [])]


@pytest.mark.parametrize(("expression", "expected"), [
    ("7 % 3", 1), ("-7 % 3", -1), ("7 % -3", 1), ("-7.5 % 2", -1.5),
    ("CASE WHEN 1 > 2 THEN 1 WHEN 2 > 1 THEN 2 ELSE 3 END", 2), ("CASE WHEN 1 > 2 THEN 1 END", None),
    ("CASE WHEN 1 < 2 THEN 1 ELSE 2.5 END", 1.0), ("COALESCE(NULL, b, 3)", 3), ("COALESCE(b, 2, 1.5)", 2.0), ("NULLIF(2, 2)", None),
    ("NULLIF(2, b)", 2), ("CAST(1.9 AS integer)", 1), ("CAST(-1.9 AS integer)", -1), ("CAST('1.5' AS integer)", 1),
    ("CAST('x' AS integer)", None), ("CAST('1e2' AS float)", 100.0), ("CAST(12 AS string)", "12"), ("CAST('' AS float)", None),
    ("ABS(-3)", 3), ("ABS(-2.5)", 2.5), ("ROUND(2.5)", 3.0), ("ROUND(-2.5)", -3.0), ("ROUND(0.49999999999999994)", 0.0),
    ("ROUND(3)", 3), ("FLOOR(-1.5)", -2.0), ("CEIL(-1.5)", -1.0), ("FLOOR(4)", 4), ("SQRT(9)", 3.0), ("SQRT(-1)", None),
    ("POWER(2, 10)", 1024.0), ("POWER(0, -1)", None), ("POWER(-8, 0.5)", None), ("LN(1)", 0.0), ("LN(0)", None), ("EXP(0)", 1.0),
    ("EXP(1000)", None), ("1e308 * 10", None), ("LEAST(3, b, 2)", 2), ("GREATEST(1, 2.5)", 2.5), ("LEAST(1, 2.5)", 1.0), ("GREATEST(b, b)", None),
    ("LOWER('AÄb')", "aÄb"), ("UPPER('aäB')", "AäB"), ("LENGTH('Grüße')", 5), ("LENGTH('😀')", 1), ("LENGTH(s)", None),
    ("DIST(1, 2, 4, 6)", 5.0), ("DIST(b, 0, 3, 4)", None), ("'it''s'", "it's"),
])  # fmt: skip
def test_10_4_functions(expression, expected):
    found = value(expression)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(("predicate", "expected"), [
    ("2 BETWEEN 1 AND 2", True), ("2 BETWEEN 3 AND 5", False), ("b BETWEEN 1 AND 2", None), ("5 BETWEEN b AND 2", False),
    ("5 NOT BETWEEN 1 AND 2", True), ("1 IN (1, 2)", True), ("3 IN (1, NULL)", None), ("1 IN (1, NULL)", True),
    ("3 NOT IN (1, 2)", True), ("3 NOT IN (1, NULL)", None), ("b IS NULL", True), ("b IS NOT NULL", False), ("a IS NULL", False),
    ("'abc' LIKE 'a%'", True), ("'abc' LIKE 'A%'", False), ("'abc' LIKE '_b_'", True), ("'abc' LIKE '_b'", False),
    (r"'50%' LIKE '50\%'", True), (r"'50x' LIKE '50\%'", False), (r"'a_b' LIKE 'a\_b'", True), ("'a.c' LIKE 'a.c'", True),
    ("'abc' LIKE 'a.c'", False), ("s LIKE '%'", None), ("'' LIKE '%'", True), (r"'a\' LIKE 'a\'", True), ("'abc' NOT LIKE 'x%'", True), ("NULL = NULL", None),
])  # fmt: skip
def test_10_4_predicates(predicate, expected):
    assert holds(predicate) is expected


def test_10_4_types():
    data = {"t": [(0, [{"a": 1}])]}
    text = "SELECT NULL, CASE WHEN a = 1 THEN 1 ELSE 0.5 END, COALESCE(a, x), ROUND(x), ROUND(a), a / 2, a / 2.0, LENGTH(s) FROM t"
    assert [type_ for _, type_ in ask(T, data, text).columns] == [
        "integer", "float", "float", "float", "integer", "integer", "float", "integer",
    ]  # fmt: skip
    assert rejection_kind(T, "SELECT a FROM t WHERE NULL") in ("type", "syntax")
    assert rejection_kind(T, "SELECT COALESCE(a, s) FROM t") == "type"
    assert rejection_kind(T, "SELECT a FROM t WHERE s LIKE 1") == "type"
    assert rejection_kind(T, "SELECT NOSUCH(a) FROM t") is not None


def test_5_5_types_of_aggregates():
    text = "SELECT SUM(a), SUM(x), AVG(a), COUNT(s), MIN(s), MAX(x), STDEV(a), MEDIAN(a) FROM t"
    types = ["integer", "float", "float", "integer", "string", "float", "float", "float"]
    assert [type_ for _, type_ in ask(T, {"t": []}, text).columns] == types
    assert rejection_kind(T, "SELECT QUANTILE(a, 1.5) FROM t") == "static"


def test_10_4_star():
    data = {"t": [(0, [{"a": 1, "s": "q"}])]}
    assert one("SELECT * FROM t", data) == [(1, None, None, None, "q", None)]
    assert one("SELECT x.a, y.* FROM t AS x, t AS y", data) == [(1, 1, None, None, None, "q", None)]


def test_10_5_variance_and_stdev_divide_by_n():
    data = bag((2,), (4,), (4,), (4,), (5,), (5,), (7,), (9,))
    assert one("SELECT VARIANCE(a), STDEV(a) FROM t", data) == [(4.0, 2.0)]
    assert one("SELECT VARIANCE(a), STDEV(a) FROM t", bag((7,), (None,))) == [(0.0, 0.0)]
    assert one("SELECT VARIANCE(a), STDEV(a) FROM t", {"t": []}) == [(None, None)]
    # Exact: the mean of these is not representable, the spread is that of 0, 1, 2.
    data = bag(*((0, 0, 1e15 + i) for i in range(3)))
    assert one("SELECT VARIANCE(x), STDEV(x) FROM t", data) == [(2 / 3, math.sqrt(2 / 3))]


def test_10_5_the_exact_root_is_the_nearest_double():
    for fraction in (Fraction(2), Fraction(1, 3), Fraction(10**40 + 1), Fraction(1, 10**300), Fraction(5e-324)):
        root = exact_sqrt(fraction)
        below, above = (Fraction(math.nextafter(root, to)) for to in (0.0, math.inf))
        assert ((below + Fraction(root)) / 2) ** 2 <= fraction <= ((above + Fraction(root)) / 2) ** 2


def test_10_5_median_quantile_and_count_distinct():
    data = bag((1, 1), (2, 1), (3, None), (10, 2))
    assert one("SELECT MEDIAN(a), QUANTILE(a, 0.25), QUANTILE(a, 1), COUNT(DISTINCT b) FROM t", data) == [
        (2.5, 1.75, 10.0, 2)
    ]
    assert one("SELECT MEDIAN(a), COUNT(DISTINCT a) FROM t", {"t": []}) == [(None, 0)]
    assert rejection_kind(T, "SELECT MEDIAN(s) FROM t") == "type"


def test_10_5_first_and_last():
    schema = "r: sensed (site:integer, v:integer) every 1 sec at sites 2, 1"
    rows = [{"_tick": t, "_site": s, "v": 10 * t + s} for t in (0, 1) for s in (1, 2)]
    # By tick, then the number of the site (not its declared place).
    text = "SELECT FIRST(v), LAST(v) FROM r [FROM NOW-1 TO NOW SLIDE 1 SEC]"
    assert windows(schema, {"r": rows}, text) == [(0, [(1, 2)]), (1, [(1, 12)])]
    rows[3]["v"] = None
    assert windows(schema, {"r": rows}, text)[1] == (1, [(1, 11)])  # nulls are left out
    data = {"p": pushed((3, 1), (4, 2, 2), (4, 2, 3))}
    text = "SELECT FIRST(v), LAST(v) FROM p [FROM NOW-9 TO NOW SLIDE 4 SEC]"
    assert windows("p: pushed (v:integer)", data, text)[1] == (4, [(2, 1)])  # by tick, then index
    both = schema + "\np: pushed (v:integer)"
    assert rejection_kind(both, "SELECT FIRST(r.v) FROM r [NOW], p [FROM NOW TO NOW SLIDE 1 SEC]") == "static"


def test_10_5_what_grows_is_refused_in_a_landmark_window():
    schema = "r: sensed (v:integer) every 1 sec at sites 1"
    for text in (
        "SELECT v FROM r [UNBOUNDED]",
        "SELECT MEDIAN(v) FROM r [UNBOUNDED]",
        "SELECT COUNT(DISTINCT v) FROM r [UNBOUNDED]",
    ):
        assert rejection_kind(schema, text) == "static"
        assert rejection_kind(schema, text + " FOR 3 SEC") is None
    assert windows(schema, {"r": sensed([1, 2, 3])}, "SELECT SUM(v) FROM r [UNBOUNDED SLIDE 2 SEC]") == [
        (0, [1]),
        (2, [6]),
    ]
