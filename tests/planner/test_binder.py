"""Binder cases without a golden file: query options, units and scales of columns, no follow-up errors."""

import pytest

from acquisition.extent import ExtentKind
from acquisition.schema import Type
from basestation.algebra.node import walk
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import QueryOptions
from gateway.diagnostics import DiagnosticError
from tests.planner.binder_helpers import CATALOG, bound, codes, columns

# --- what is asked ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clauses", "options"),
    [
        ("", QueryOptions()),
        ("SINCE 40", QueryOptions(since=40)),
        ("SINCE '1970-01-01T00:01:00Z'", QueryOptions(since=60)),
        ("SINCE '1970-01-01T00:01:00'", QueryOptions(since=60)),
        ("SINCE '1970-01-01T02:01:00+02:00'", QueryOptions(since=60)),
        ("SINCE NOW - 5 MIN", QueryOptions(since_ago=300)),
        ("ACQUIRE EVERY 1 MIN", QueryOptions(acquire_every=60)),
        ("DELIVER WITHIN 2 MIN", QueryOptions(deliver_within=120)),
        ("FOR 1 HOUR", QueryOptions(run_for=3_600)),
        ("LIFETIME 2 DAYS", QueryOptions(lifetime=172_800)),
        ("SINCE 0 FOR 1 MIN ACQUIRE EVERY 20 SEC", QueryOptions(since=0, run_for=60, acquire_every=20)),
    ],
)
def test_clauses_become_query_options(clauses, options):
    assert bound(f"SELECT v FROM r {clauses}").options == options


def test_durations_convert_with_other_tick_length():
    catalog = read_schema("r: sensed (v:integer) every 1 sec at sites 1", tick_ms=100)
    plan = bound("SELECT v FROM r [FROM NOW-1500 MS TO NOW SLIDE 200 MS] FOR 1 MIN", catalog)
    assert (plan.root.child.begin, plan.root.child.slide, plan.options.run_for) == (-15, 2, 600)
    assert codes("SELECT v FROM r [FROM NOW-150 MS TO NOW SLIDE 200 MS]", catalog) == ["SN412"]


def test_acquire_every_applies_to_nested_extents():
    text = "SELECT x.v FROM (RSTREAM(SELECT v FROM r [NOW])) AS x [FROM NOW TO NOW SLIDE 20 SEC], q [NOW] ACQUIRE EVERY 20 SEC"
    assert [n.interval for n in walk(bound(text).root) if isinstance(n, StreamAcquire)] == [20, 20]


@pytest.mark.parametrize(
    ("text", "kind", "once"),
    [
        ("SELECT v FROM r", "stream", False),
        ("SELECT v FROM r [NOW]", "window", False),
        ("SELECT a FROM t", "window", True),
        ("SELECT a FROM t [SCAN 1 SEC]", "window", False),
        ("RSTREAM(SELECT a FROM t)", "stream", False),
        ("SELECT a FROM t UNION ALL SELECT a FROM u", "window", True),
        ("SELECT v FROM r UNION ALL SELECT a FROM p", "stream", False),
        ("SELECT v FROM r FOR (; t < 3; t++) { WindowIs(r, t, t); }", "window", False),
        ("SELECT v FROM r.HISTORY", "window", True),
    ],
)
def test_query_kind_follows_from_sources(text, kind, once):
    assert (bound(text).kind, bound(text).is_one_off) == (kind, once)


# --- columns ---------------------------------------------------------------------------------------------------------


def shown(text):
    return [(c.name, c.qualifier, c.scale, c.unit) for c in bound(text).root.columns]


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT x FROM scaled", ("x", "scaled", 2, "Cel")),
        ("SELECT x AS y FROM scaled", ("y", None, 2, "Cel")),
        ("SELECT x FROM scaled [NOW]", ("x", "scaled", 2, "Cel")),
        ("SELECT z.x FROM (SELECT x FROM scaled) AS z", ("x", "z", 2, "Cel")),
        ("SELECT z.x FROM (RSTREAM(SELECT x FROM scaled [NOW])) AS z", ("x", "z", 2, "Cel")),
        ("SELECT x FROM scaled [NOW] GROUP BY x", ("x", "scaled", 2, "Cel")),
        ("SELECT x + 0 FROM scaled", (None, None, None, None)),
        ("SELECT MAX(x) FROM scaled [NOW]", (None, None, None, None)),
        ("SELECT x FROM scaled UNION ALL SELECT x FROM p", ("x", "scaled", None, "Cel")),
        ("SELECT x FROM scaled UNION ALL SELECT x FROM scaled", ("x", "scaled", 2, "Cel")),
    ],
)
def test_plain_column_keeps_scale_expression_loses_it(text, column):
    assert shown(text) == [column]


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("v", "integer"), ("w", "float"), ("v + 1", "integer"), ("v + 1.0", "float"), ("v / 2", "integer"), ("NULL", "integer"),
        ("NULL + 1.5", "float"), ("-v", "integer"), ("ABS(w)", "float"), ("ROUND(v)", "integer"), ("SQRT(v)", "float"),
        ("COALESCE(v, w)", "float"), ("COALESCE(NULL, v)", "integer"), ("NULLIF(v, w)", "integer"), ("LEAST(v, 1)", "integer"),
        ("CASE WHEN v > 1 THEN 'a' END", "string"), ("CASE WHEN v > 1 THEN 1 ELSE 2.5 END", "float"), ("LENGTH('a')", "integer"),
        ("CASE WHEN v > 1 THEN NULL END", "integer"), ("CAST(v AS time)", "time"), ("CAST(v AS time) + 1", "integer"),
        ("CAST(NULL AS string)", "string"), ("tick", "integer"), ("index", "integer"),
    ],
)  # fmt: skip
def test_value_expression_types(expression, type_):
    assert columns(f"SELECT {expression} FROM r")[0][1] == type_


@pytest.mark.parametrize(
    ("aggregate", "type_"),
    [
        ("COUNT(*)", "integer"), ("COUNT(s)", "integer"), ("COUNT(DISTINCT s)", "integer"), ("SUM(a)", "integer"), ("SUM(x)", "float"),
        ("AVG(a)", "float"), ("MIN(s)", "string"), ("MAX(x)", "float"), ("FIRST(s)", "string"), ("LAST(a)", "integer"),
        ("STDEV(a)", "float"), ("VARIANCE(a)", "float"), ("MEDIAN(a)", "float"), ("QUANTILE(a, 0)", "float"), ("SUM(NULL)", "integer"),
        ("MAX(NULL)", "integer"), ("SUM(a) / 2", "integer"), ("AVG(a) + COUNT(*)", "float"),
    ],
)  # fmt: skip
def test_aggregate_types(aggregate, type_):
    assert columns(f"SELECT {aggregate} FROM p [FROM NOW TO NOW SLIDE 1 SEC]")[0][1] == type_


@pytest.mark.parametrize(
    ("written", "label"),
    [("v+1", "v + 1"), ("r.v", "v"), ("max( v )", "max(v)"), ("v AS x", "x"), ("'it''s'", "'it''s'"), ("1.50", "1.5")],
)
def test_column_labels(written, label):
    window = " [NOW]" if "max" in written else ""
    assert columns(f"SELECT {written} FROM r{window}")[0][0] == label


def test_column_ids_are_unique_with_extent_read_twice():
    root = bound("SELECT x.v, y.v FROM r AS x [NOW], r AS y [NOW]").root
    assert len({c.id for n in walk(root) if isinstance(n, StreamAcquire) for c in (*n.columns, *n.tags)}) == 2 * (4 + 2)


# --- one mistake is reported once ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("SELECT v FROM r [FROM NOW-1 TO NOW SLIDE 1 FORTNIGHT]", ["SN106"]),
        ("SELECT v FROM r [FROM NOW-1 FORTNIGHT TO NOW SLIDE 1 MIN]", ["SN106"]),
        ("SELECT v FROM r ACQUIRE EVERY 1 FORTNIGHT", ["SN106"]),
        ("SELECT v FROM r ACQUIRE EVERY 1500 MS", ["SN412"]),
        ("SELECT v FROM r WHERE 1 < v < 3", ["SN108"]),
        ("SELECT SUM(*) FROM r [NOW]", ["SN105"]),
        ("SELECT ABS(*) FROM r", ["SN105"]),
        ("SELECT v FROM raod WHERE temp > 3 AND x.y = 2", ["SN201"]),
        ("SELECT vv + 1, ABS(vv) FROM r", ["SN202", "SN202"]),
        ("SELECT x.nix FROM (SELECT nix FROM r) AS x", ["SN202"]),
        ("SELECT vv, MAX(v) FROM r [NOW] GROUP BY vv", ["SN202", "SN202"]),
        ("SELECT v FROM r [NOW] GROUP BY v + 1", ["SN105"]),
        ("SELECT a FROM t ORDER BY aa", ["SN202"]),
        ("SELECT t.a FROM t JOIN u ON t.a = u.aa", ["SN202"]),
        ("ISTREAM(ISTREAM(SELECT vv FROM r [NOW]))", ["SN202"]),
        ("SELECT v FROM r UNION ALL SELECT s, a FROM p UNION ALL SELECT s FROM p", ["SN306"]),
    ],
)
def test_consequences_of_error_are_not_reported(text, reported):
    assert codes(text) == reported


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("SELECT vv FROM r WHERE ww > 3", ["SN202", "SN202"]),
        ("SELECT v > 1, s + 1 FROM r, p", ["SN303", "SN301", "SN401", "SN401"]),
        ("SELECT v FROM r [FROM NOW-1 ROW TO NOW-500 MS SLIDE 700 MS]", ["SN411", "SN412", "SN412"]),
        ("SELECT v FROM q1; SELECT v FROM q2", ["SN201", "SN201"]),
        ("SELECT nix FROM r [NOW], t WHERE MAX(v) > 1", ["SN202", "SN408", "SN405"]),
        (
            "SELECT MAX(vv), NIX(ww) FROM r WHERE MAX(v) > 1 GROUP BY site",
            ["SN202", "SN205", "SN202", "SN405", "SN421"],
        ),
        ("SELECT v FROM r LIMIT 3 ACQUIRE EVERY 15 SEC", ["SN409", "SN419"]),
    ],
)
def test_independent_errors_are_reported_in_text_order(text, reported):
    assert codes(text) == reported


def test_wrong_statement_raises_all_errors_of_text():
    with pytest.raises(DiagnosticError) as refused:
        bind_text("SELECT v FROM r; SELECT vv FROM r", CATALOG)
    (diagnostic,) = refused.value.diagnostics
    assert (diagnostic.code, diagnostic.source.line_column(diagnostic.span.start)) == ("SN202", (1, 25))


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("SELECT x.tick FROM (SELECT v FROM r) AS x", []),
        ("SELECT tick FROM (SELECT v FROM r)", []),
        ("SELECT r.tick FROM (SELECT v FROM r)", ["SN202"]),
        ("SELECT r.tick FROM (SELECT tick FROM r)", []),
        ("SELECT x.tick FROM (SELECT x.tick FROM (SELECT v FROM r) AS x)", []),
        ("SELECT d.tick FROM (SELECT d.index, d.tick FROM (ISTREAM(SELECT v FROM r [NOW])) AS d)", []),
        ("SELECT tick FROM r [NOW]", ["SN209"]),
        ("SELECT tick FROM (SELECT tick FROM r) AS x [NOW]", []),
        ("SELECT index FROM (SELECT tick FROM r) AS x [NOW]", ["SN209"]),
        ("SELECT tick FROM r.HISTORY", []),
        ("SELECT tick FROM t", ["SN209"]),
    ],
)
def test_tick_and_index_resolve_in_stream_queries_only(text, reported):
    assert codes(text) == reported


def test_history_columns():
    for extent in (e for e in CATALOG if e.kind is not ExtentKind.STORED):
        names = ["tick", "index", *extent.schema.names, "_site", "_arrival"]
        assert [label for label, _ in columns(f"SELECT * FROM {extent.name}.HISTORY")] == names


# --- corrections -----------------------------------------------------------------------------------------------------


def test_revise_pairs_columns_with_values():
    found = bound("REVISE r SET v = v + 1, w = 2 WHERE site = 1 AND tick > 10")
    assert found.how == "revise" and [c.name for c, _ in found.changes] == ["v", "w"]
    assert found.predicate is not None and [c.name for c in found.tags] == ["tick", "index"]


def test_insert_rows_follow_column_order():
    found = bound("INSERT INTO p (s, tick, a) VALUES ('x', 3, 1), (NULL, 4, 2 + 3)")
    assert [c.name for c in found.columns] == ["s", "tick", "a"] and [len(row) for row in found.rows] == [3, 3]
    assert all(value.type in (Type.STRING, None) for value in (row[0] for row in found.rows))


def test_insert_names_site_as_extent_does():
    catalog = read_schema(
        "bare: sensed (v:integer) every 1 sec at sites 1\nr: sensed (site:integer) every 1 sec at sites 1"
    )
    assert [c.name for c in bound("INSERT INTO bare (tick, _site, v) VALUES (1, 1, 5)", catalog).columns] == [
        "tick",
        "_site",
        "v",
    ]
    assert codes("INSERT INTO bare (tick, site, v) VALUES (1, 1, 5)", catalog) == ["SN202"]
    assert codes("INSERT INTO r (tick, _site) VALUES (1, 1)", catalog) == ["SN202"]
