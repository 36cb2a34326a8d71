"""Each extension that a statement uses is listed with its section; constructs of the paper are not."""

import pytest

from basestation.explain import explain_statement
from basestation.language.parser import parse
from basestation.planner.extensions import list_extensions
from gateway.source import Source
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import read_golden
from tests.planner.binder_helpers import bound


def additions(text):
    (statement,) = parse(Source(text)).statements
    return list(list_extensions(statement))


@pytest.mark.parametrize(
    "case", [c for c in read_golden(QUERIES / "paper.test").cases if c.word == "query"], ids=lambda case: case.name
)
def test_paper_queries_use_no_extension(case):
    assert additions(case.text) == []


def test_paper_grammar_uses_no_extension():
    text = """
    ISTREAM(SELECT x.site AS s, MIN(x.v) + 1 c, COUNT(*) FROM (SELECT site, v FROM r WHERE NOT v = -3 OR tick > 1) AS x
    [FROM NOW-5 TO NOW SLIDE 1 HOUR], p [FROM NOW-2 TO NOW SLIDE 3 ROWS], t [SCAN 1 SEC]
    WHERE x.v * 2 <= p.a / 3 GROUP BY x.site HAVING SUM(x.v) > 1.5 AND MAX(x.v) <> 2)
    """
    assert additions(text) == []


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("EXPLAIN SELECT v FROM r", ("10.1", "EXPLAIN")),
        ("SELECT v FROM r [FROM NOW TO NOW SLIDE 60000 MS]", ("10.2", "the unit MS")),
        ("SELECT v FROM r [FROM NOW-5 TO NOW SLIDE 1 DAY]", ("10.2", "the unit DAY")),
        ("SELECT v FROM r [FROM NOW-5 SEC TO NOW SLIDE 1 MIN]", ("10.2", "offsets with a unit")),
        ("SELECT v FROM r [FROM NOW-5 DAY TO NOW SLIDE 1 MIN]", ("10.2", "the unit DAY")),
        ("SELECT v FROM r [NOW]", ("10.3", "[NOW]")),
        ("SELECT v FROM r [FROM NOW TO NOW]", ("10.3", "a window without SLIDE")),
        ("SELECT MAX(v) FROM r [UNBOUNDED SLIDE 1 MIN]", ("10.3", "[UNBOUNDED …]")),
        ("SELECT * FROM r", ("10.4", "*")),
        ("SELECT r.* FROM r", ("10.4", "*")),
        ("SELECT v % 2 FROM r", ("10.4", "%")),
        ("SELECT v FROM r WHERE v BETWEEN 1 AND 2", ("10.4", "BETWEEN")),
        ("SELECT v FROM r WHERE v NOT BETWEEN 1 AND 2", ("10.4", "BETWEEN")),
        ("SELECT v FROM r WHERE v IN (1, 2)", ("10.4", "IN")),
        ("SELECT s FROM p WHERE s LIKE 'a%'", ("10.4", "LIKE")),
        ("SELECT v FROM r WHERE v IS NULL", ("10.4", "IS NULL")),
        ("SELECT v FROM r WHERE v IS NOT NULL", ("10.4", "IS NULL")),
        ("SELECT NULL FROM r", ("10.4", "NULL")),
        ("SELECT CASE WHEN v > 1 THEN v END FROM r", ("10.4", "CASE")),
        ("SELECT CAST(v AS float) FROM r", ("10.4", "CAST")),
        *(
            (f"SELECT {name}({arguments}) FROM p", ("10.4", name))
            for names, arguments in (
                ("ABS ROUND FLOOR CEIL SQRT LN EXP", "a"),
                ("POWER NULLIF", "a, 1"),
                ("LEAST GREATEST COALESCE", "a, 1, 2"),
                ("LOWER UPPER LENGTH", "s"),
                ("DIST", "a, 1, 2, 3"),
            )
            for name in names.split()
        ),
        *(
            (f"SELECT {name}(a) FROM p [FROM NOW TO NOW SLIDE 1 SEC]", ("10.5", name))
            for name in ("STDEV", "VARIANCE", "FIRST", "LAST", "MEDIAN")
        ),
        ("SELECT QUANTILE(a, 0.5) FROM t", ("10.5", "QUANTILE")),
        ("SELECT COUNT(DISTINCT a) FROM t", ("10.5", "COUNT(DISTINCT …)")),
        ("SELECT DISTINCT a FROM t", ("10.6", "DISTINCT")),
        ("SELECT a FROM t ORDER BY a", ("10.6", "ORDER BY")),
        ("SELECT a FROM t LIMIT 3", ("10.6", "LIMIT")),
        ("SELECT t.a FROM t JOIN u ON t.a = u.a", ("10.6", "INNER JOIN")),
        ("SELECT t.a FROM t LEFT JOIN u ON t.a = u.a", ("10.6", "LEFT JOIN")),
        ("SELECT t.a FROM t RIGHT JOIN u ON t.a = u.a", ("10.6", "RIGHT JOIN")),
        ("SELECT t.a FROM t FULL JOIN u ON t.a = u.a", ("10.6", "FULL JOIN")),
        ("SELECT t.a FROM t CROSS JOIN u", ("10.6", "CROSS JOIN")),
        ("SELECT a FROM t WHERE a = (SELECT MAX(a) FROM u)", ("10.6", "a subquery outside FROM")),
        ("SELECT a FROM t WHERE EXISTS (SELECT a FROM u)", ("10.6", "a subquery outside FROM")),
        ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", ("10.6", "a subquery outside FROM")),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", ("10.6", "UNION ALL")),
        ("SELECT a FROM t UNION ALL SELECT a FROM u ORDER BY a", ("10.6", "ORDER BY")),
        ("SELECT a FROM t UNION ALL SELECT a FROM u LIMIT 2", ("10.6", "LIMIT")),
        ("SELECT v FROM r.HISTORY", ("10.7", "HISTORY")),
        ("SELECT v FROM r SINCE 0", ("10.7", "SINCE")),
        ("SELECT v FROM r FOR (; t < 9; t++) { WindowIs(r, t, t); }", ("10.8", "a for-loop")),
        ("SELECT v FROM r ACQUIRE EVERY 20 SEC", ("11", "ACQUIRE EVERY")),
        ("SELECT v FROM r DELIVER WITHIN 20 SEC", ("11", "DELIVER WITHIN")),
        ("SELECT v FROM r FOR 20 SEC", ("11", "FOR")),
        ("SELECT v FROM r LIFETIME 3 DAY", ("11", "LIFETIME")),
        ("REVISE r SET v = 1 WHERE site = 1", ("12.2", "REVISE")),
        ("DELETE FROM r WHERE site = 1", ("12.2", "DELETE")),
        ("INSERT INTO p (a) VALUES (1)", ("12.2", "INSERT")),
    ],
)
def test_extension_is_listed(text, reported):
    bound(text)  # the text is one that is accepted
    assert reported in additions(text)


def test_extensions_are_listed_once_in_section_order():
    text = "SELECT ABS(v) + ABS(w), MEDIAN(v) FROM r [NOW] WHERE v IN (1) AND w IN (2) ACQUIRE EVERY 20 SEC"
    assert additions(text) == [
        ("10.3", "[NOW]"),
        ("10.4", "ABS"),
        ("10.4", "IN"),
        ("10.5", "MEDIAN"),
        ("11", "ACQUIRE EVERY"),
    ]


def test_nested_extensions_are_listed():
    assert ("10.4", "%") in additions("SELECT x.v FROM (SELECT v FROM r WHERE v % 2 = 0) AS x")


def test_extensions_of_corrections_are_listed():
    reported = explain_statement(bound("DELETE FROM r WHERE v IN (1, 2) AND w IS NULL"))["additions"]
    assert [(a["section"], a["what"]) for a in reported] == [("10.4", "IN"), ("10.4", "IS NULL"), ("12.2", "DELETE")]
