"""The parser: the tree of each construct, and all errors of a text."""

import random
import sys

import pytest

from basestation.errors import CATALOGUE
from basestation.language import syntax as s
from basestation.language.parser import parse
from basestation.language.schema_parser import parse_schema
from gateway.source import Source
from tests.language.texts import QUERIES, SCHEMAS


def read(text):
    """The only statement of a text that has no errors."""
    parsed = parse(Source(text))
    assert not parsed.diagnostics, parsed.diagnostics[0].render()
    (statement,) = parsed.statements
    return statement


def codes(text):
    return [d.code for d in parse(Source(text)).diagnostics]


def where(text):
    return read(f"SELECT a FROM r WHERE {text}").query.where


def value(text):
    return read(f"SELECT {text} FROM r").query.items[0].expr


def col(name, qualifier=None):
    return s.ColumnRef(qualifier and s.Name(qualifier), s.Name(name))


def binary(op, left, right):
    return s.Binary(op, left, right)


A, B, C = col("a"), col("b"), col("c")
ONE, TWO = s.Number(1), s.Number(2)


@pytest.mark.promise("paper-queries")
@pytest.mark.parametrize("text", QUERIES)
def test_corpus_text_parses_without_errors(text):
    parsed = parse(Source(text))
    assert [d.render() for d in parsed.diagnostics] == []
    assert parsed.statements


@pytest.mark.parametrize("text", SCHEMAS)
def test_corpus_schema_parses_without_errors(text):
    parsed = parse_schema(Source(text))
    assert [d.render() for d in parsed.diagnostics] == []
    assert parsed.extents


# --- expressions ---


def test_operators_have_the_precedence_of_the_grammar():
    assert where("a = 1 OR b = 2 AND NOT c = 1") == binary(
        "OR", binary("=", A, ONE), binary("AND", binary("=", B, TWO), s.Unary("NOT", binary("=", C, ONE)))
    )
    assert value("a + b * -c - 1") == binary("-", binary("+", A, binary("*", B, s.Unary("-", C))), ONE)
    assert value("a - b - c") == binary("-", binary("-", A, B), C)
    assert value("a / (b / c)") == binary("/", A, binary("/", B, C))


def test_equivalent_spellings_give_the_same_tree():
    assert where("a != 1") == where("a <> 1") == where("a<>1")
    assert value("a − 1") == value("a - 1")
    assert read("select a from r where a and b") == read("SELECT a FROM r WHERE a AND b")


def test_names_keep_their_case():
    assert value("Temp") != value("temp")


@pytest.mark.parametrize("name", "count now slide sec distinct min history t is in like between end when since".split())
def test_unreserved_word_is_a_name(name):
    assert value(name) == col(name)
    assert value(f"r.{name}") == col(name, "r")
    assert read(f"SELECT a AS {name} FROM {name}").query.items[0].alias == s.Name(name)


def test_null_and_case_are_names_only_after_a_qualifier():
    assert value("null") == s.Null()
    assert value("r.null") == col("null", "r")
    assert value("r.case + CASE WHEN a THEN 1 END") == binary("+", col("case", "r"), s.Case(((A, ONE),), None))


def test_number_text_decides_between_integer_and_float():
    assert [value(text).value for text in ("12", "1.5", "2e-3", "1.5E6")] == [12, 1.5, 2e-3, 1.5e6]
    assert value("1") != value("1.0")
    assert value("9007199254740993").value == 2**53 + 1


def test_sql_predicates_have_their_nodes():
    assert where("a NOT BETWEEN 1 AND 2 AND b") == binary("AND", s.Between(A, ONE, TWO, True), B)
    assert where("a + 1 IN (1, b) OR c LIKE 'x'") == binary(
        "OR", s.InList(binary("+", A, ONE), (ONE, B), False), s.Like(C, s.String("x"), False)
    )
    assert where("NOT a IS NOT NULL") == s.Unary("NOT", s.IsNull(A, True))
    query = read("SELECT b FROM s").query
    assert where("a NOT IN (SELECT b FROM s)") == s.InQuery(A, query, True)
    assert where("EXISTS(SELECT b FROM s) AND a = (SELECT b FROM s)") == binary(
        "AND", s.Exists(query), binary("=", A, s.ScalarSubquery(query))
    )


def test_calls_have_star_and_distinct():
    assert value("count(*)") == s.Call(s.Name("count"), (), star=True)
    assert value("COUNT(DISTINCT a)") == s.Call(s.Name("COUNT"), (A,), distinct=True)
    assert value("COUNT(distinct)") == s.Call(s.Name("COUNT"), (col("distinct"),))
    assert value("CAST(a AS float)") == s.Cast(A, s.Name("float"))
    assert value("f()") == s.Call(s.Name("f"), ())


def test_distinct_is_a_column_where_the_text_allows_one():
    assert read("SELECT DISTINCT a FROM r").query.distinct
    assert read("SELECT DISTINCT * FROM r").query.distinct
    assert not read("SELECT distinct FROM r").query.distinct
    assert not read("SELECT distinct * 2, a FROM r").query.distinct
    assert not read("SELECT distinct - a FROM r").query.distinct


# --- FROM ---


def entry(text):
    (made,) = read(f"SELECT a FROM {text}").query.entries
    return made


def extent(name):
    return s.ExtentSource(s.Name(name))


def test_window_is_read_before_and_after_the_alias():
    slide = s.RangeWindow(s.WindowBound(10), s.WindowBound(0), s.Duration(1, "MIN"))
    expected = s.FromEntry(extent("r"), s.Name("x"), slide)
    assert entry("r x [FROM NOW-10 TO NOW SLIDE 1 MIN]") == expected
    assert entry("r [FROM NOW-10 TO NOW SLIDE 1 MINUTES] AS x") == expected
    assert entry("(SELECT a FROM r) [NOW] x") == entry("(SELECT a FROM r) AS x [NOW]")
    assert entry("ISTREAM(SELECT a FROM r) [NOW] x") == entry("ISTREAM(SELECT a FROM r) AS x [NOW]")


def test_each_form_of_window_has_its_node():
    assert entry("r [FROM NOW-10 MIN TO NOW-90 SEC SLIDE 500 ms]").window == s.RangeWindow(
        s.WindowBound(10, "MIN"), s.WindowBound(90, "SEC"), s.Duration(500, "MS")
    )
    assert entry("r [FROM NOW - 2 ROWS TO NOW]").window == s.RangeWindow(
        s.WindowBound(2, "ROW"), s.WindowBound(0), None
    )
    assert entry("r [now]").window == s.NowWindow()
    assert entry("r [UNBOUNDED SLIDE 1 DAY]").window == s.UnboundedWindow(s.Duration(1, "DAY"))
    assert entry("r [UNBOUNDED]").window == s.UnboundedWindow(None)
    assert entry("r [SCAN 10 MIN]") == entry("r [RESCAN 10 MIN]")


def test_history_is_a_keyword_only_in_from():
    assert (
        entry("road.HISTORY") == entry("road.history") == s.FromEntry(s.ExtentSource(s.Name("road"), True), None, None)
    )
    assert value("road.history") == col("history", "road")


def test_joins_associate_left_and_before_commas():
    query = read("SELECT a FROM x, r LEFT OUTER JOIN s ON a JOIN t ON b CROSS JOIN u").query
    x, r, t, u = (s.FromEntry(extent(name), None, None) for name in "xrtu")
    joined = s.Join("CROSS", s.Join("INNER", s.Join("LEFT", r, s.FromEntry(extent("s"), None, None), A), t, B), u, None)
    assert query.entries == (x, joined)


# --- statements ---


def test_order_and_limit_apply_to_the_whole_union():
    union = read("SELECT a FROM r UNION ALL SELECT b FROM s ORDER BY a DESC NULLS FIRST LIMIT 0").query
    assert [part.order_by for part in union.parts] == [(), ()]
    assert (union.order_by, union.limit) == ((s.OrderItem(A, True, True),), s.Number(0))


def test_for_with_a_parenthesis_is_a_loop():
    ask = read("SELECT a FROM r for (t = ST; t == 5 MIN; t--) { WindowIs(r ROWS, t - 4, t); } FOR 3 DAYS")
    t = s.LoopName("t")
    window = s.WindowIs(s.Name("r"), True, binary("-", t, s.Number(4)), t)
    condition = binary("=", t, s.Duration(5, "MIN"))
    assert ask.loops == (s.Loop(s.LoopName("ST"), condition, binary("-", t, ONE), (window,)),)
    assert ask.clauses == s.StatementClauses(run_for=s.Duration(3, "DAY"))


@pytest.mark.parametrize(
    "change, expected",
    [("t++", "t = t + 1"), ("t--", "t = t - 1"), ("t += 2 * 3", "t = t + 2 * 3"), ("t-=5 MIN", "t = t - 5 MIN")],
)
def test_loop_change_becomes_an_expression(change, expected):
    text = "SELECT a FROM r FOR (; t < 5; %s) { WindowIs(r, 1, t); }"
    assert read(text % change) == read(text % expected)


def test_two_dashes_are_a_decrement_only_in_a_loop_change():
    assert read("SELECT t--, b\n FROM r") == read("SELECT t FROM r")
    assert read("SELECT a FROM r; -- t").query == read("SELECT a FROM r").query


def test_clauses_are_read_in_any_order():
    asked = "ACQUIRE EVERY 2 MIN", "DELIVER WITHIN 1 SEC", "FOR 1 DAY", "LIFETIME 9 DAYS"
    expected = read("SELECT a FROM r SINCE 5 " + " ".join(asked))
    assert expected.since == s.SinceClause(5)
    for _ in range(10):
        assert read("SELECT a FROM r SINCE 5 " + " ".join(random.sample(asked, 4))) == expected


def test_each_statement_has_its_node():
    assert read("EXPLAIN ANALYZE SELECT a FROM r") == s.Explain(read("SELECT a FROM r"), True)
    assert read("DELETE FROM r WHERE a") == s.Delete(s.Name("r"), A)
    assert read("REVISE r SET a = 1, b = c WHERE a") == s.Revise(s.Name("r"), ((s.Name("a"), ONE), (s.Name("b"), C)), A)
    assert read("INSERT INTO r (a, b) VALUES (1, 2), (b, c)") == s.Insert(
        s.Name("r"), (s.Name("a"), s.Name("b")), ((ONE, TWO), (B, C))
    )


def test_semicolons_separate_statements():
    assert len(parse(Source("SELECT a FROM r; SELECT b FROM s;")).statements) == 2
    assert codes("SELECT a FROM r SELECT b FROM s") == ["SN105"]
    assert codes("") == codes(" -- nothing\n") == codes(";") == ["SN105"]


# --- places ---


def test_every_node_has_the_span_of_its_text():
    text = "SELECT a + b FROM (SELECT x FROM r) [NOW] AS z WHERE a IN (1, 2)"
    query = read(text).query
    cut = Source(text).cut
    assert cut(query.span) == text
    assert cut(query.items[0].span) == "a + b"
    assert cut(query.entries[0].span) == "(SELECT x FROM r) [NOW] AS z"
    assert cut(query.entries[0].window.span) == "[NOW]"
    assert cut(query.where.span) == "a IN (1, 2)"
    assert cut(query.where.items[1].span) == "2"


# --- errors ---


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("code", [code for code, entry in CATALOGUE.items() if entry.kind == "syntax"])
def test_error_example_causes_only_its_error(code):
    entry = CATALOGUE[code]
    parsed = (parse_schema if entry.schema else parse)(Source(entry.example))
    assert [d.code for d in parsed.diagnostics] == [code]


@pytest.mark.promise("errors-point")
def test_all_independent_errors_are_reported_together():
    text = (
        "SELECT a + , temp tmp x, SUM(*) FROM road [FROM NOW-0 TO NOW SLIDE 5 FORTNIGHTS], (SELECT b FROM c WHERE) d "
        "WHERE 1 < a < 3 GROUP BY a + 1 HAVING FROM ACQUIRE EVERY 0 MIN; DELETE road WHERE a; SELECT FROM x"
    )
    assert codes(text) == [
        "SN105", "SN105", "SN105", "SN107", "SN106", "SN105", "SN108", "SN105", "SN105", "SN107", "SN105", "SN105",
    ]  # fmt: skip


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(
    "text",
    [
        "SELECT ? FROM r", "SELECT a ? FROM r", "SELECT MAX(a ? b) FROM r", "SELECT a FROM r ? x WHERE b", "? SELECT a FROM r",
        "SELECT a FROM r [FROM NOW ? TO NOW]", "SELECT a, FROM r", "SELECT MAX(a FROM r WHERE b", "SELECT a b c, d FROM r",
        "SELECT ((((a FROM r", "SELECT a FROM (SELECT b FROM WHERE c) d", "SELECT a FROM r)", "SELECT a FROM r WHERE (b, c)",
        "SELECT a FROM r [FROM NWO-5 TO NOW SLIDE 1 SEC]", "SELECT a FROM r [FROM NOW-5 TO SLIDE 1 SEC] WHERE b",
        "SELECT a FROM r FOR (t = 0; t < 5) { WindowIs(r, 1, 2); }", "SELECT a FROM r FOR (t = 0 t < 5; t++) { WindowIs(r, 1, 2); }",
        "SELECT a FROM r FOR (x = 0; t < 5; t++) { WindowIs(r, 1, 2); }", "SELECT a FROM r FOR (; t < 5; t++) { WindowIs(r 1, 2); }",
        "SELECT a FROM r WHERE CASE WHEN b THEN 1", "SELECT CASE a WHEN 1 THEN 2 END FROM r", "SELECT a FROM r JOIN s WHERE b",
        "SELECT a FROM r WHERE b IN", "SELECT a FROM r WHERE b IN ()", "SELECT a FROM r GROUP b HAVING c", "SELECT a FROM r ORDER a LIMIT 5",
        "SELECT a FROM r WHERE 'b", "SELECT a FROM r /* b", "SELECT a FROM r WHERE b = = c", "SELECT a.b.c, d FROM r", "SELECT a left FROM r",
        "SELECT \"a\" FROM r", "SELECT a FROM r WHERE b ≤ 3 GROUP BY c", "INSERT INTO r VALUES (1)", "REVISE r SET a 1 WHERE b",
    ],
)  # fmt: skip
def test_one_mistake_gives_one_error(text):
    assert len(codes(text)) == 1


def test_broken_from_is_empty_and_broken_expression_is_bad():
    parsed = parse(Source("SELECT a FROM r, [NOW] WHERE b = GROUP BY"))
    query = parsed.statements[0].query
    assert query.entries == ()
    assert query.where == binary("=", B, s.Bad())
    assert query.group_by == (s.Bad(),)


# --- size ---

NESTED = {
    "parentheses": ("SELECT {} FROM r", "(", "a", ")"),
    "sums": ("SELECT {} FROM r", "1 + (", "a + 1", ")"),
    "minus": ("SELECT {} FROM r", "- ", "a", ""),
    "not": ("SELECT a FROM r WHERE {}", "NOT ", "a = 1", ""),
    "calls": ("SELECT {} FROM r", "ABS(", "a", ")"),
    "lists": ("SELECT a FROM r WHERE {}", "1 IN (", "a", ")"),
    "case": ("SELECT {} FROM r", "CASE WHEN a THEN ", "a", " END"),
    "from": ("SELECT a FROM {}", "(SELECT a FROM ", "r", ")"),
    "scalar": ("SELECT a FROM r WHERE {}", "a = (SELECT b FROM r WHERE ", "a = 1", ")"),
    "in query": ("SELECT a FROM r WHERE {}", "a IN (SELECT b FROM r WHERE ", "a = 1", ")"),
    "converters": ("{}", "RSTREAM(", "SELECT a FROM r", ")"),
    "loops": ("SELECT a FROM r FOR (t = {}; t < 5; t++) {{ WindowIs(r, 1, t); }}", "(", "1", ")"),
}


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize("shape", NESTED)
def test_nesting_beyond_100_gives_one_error(shape):
    frame, opening, inside, closing = NESTED[shape]
    made = [frame.format(opening * n + inside + closing * n) for n in (100, 101, 20_000)]
    assert [codes(text) for text in made] == [[], ["SN109"], ["SN109"]]


def test_joins_in_a_row_beyond_300_give_one_error():
    made = ["SELECT a FROM r" + " JOIN s ON a" * n for n in (300, 301, 20_000)]
    assert [codes(text) for text in made] == [[], ["SN109"], ["SN109"]]
    assert codes("SELECT a FROM r" + ", r JOIN s ON a" * 1_000) == []


def test_operators_nested_beyond_the_limit_give_one_error():
    text = "SELECT a FROM r WHERE " + "a OR b AND c = d + e * (" * 90 + "1" + ")" * 90
    assert codes(text) == ["SN109"]


@pytest.mark.parametrize("operator", ["AND a =", "OR a + 2 * b <", "+", "* 2 -"])
def test_flat_chain_of_operators_has_no_limit(operator):
    text = "SELECT a FROM r WHERE a = 1" + f" {operator} 1" * 10_000
    first, again = read(text), read(text)
    assert first == again
    assert hash(first) == hash(again)


@pytest.mark.promise("errors-point")
def test_steps_grow_linearly_with_the_text():
    text = "\n;\n".join(text for text in QUERIES if not text.rstrip().endswith(";")) + "\n;\n"
    once, twice = _steps(text), _steps(text * 2)
    assert once > len(text) / 10 and 1.9 * once < twice < 2.1 * once


def _steps(text):
    """The number of function calls while a text is parsed."""
    called = 0

    def count(frame, event, argument):
        nonlocal called
        called += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        parse(Source(text))
    finally:
        sys.setprofile(None)
    return called
