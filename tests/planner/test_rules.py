"""Each rule applies where it should, and not where its documented reason does not hold."""

import pytest

from basestation.algebra.converters import IStream
from basestation.algebra.expression_text import format_expression
from basestation.algebra.expressions import columns_of
from basestation.algebra.expressions import walk as walk_expression
from basestation.algebra.node import walk
from basestation.algebra.one_off import TableJoin
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_acquire import StreamAcquire
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window import LandmarkWindow, LoopWindow, RowWindow, TimeWindow
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_select import WindowSelect
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan
from basestation.planner.rewriter import RULES, reason_of, rewrite
from basestation.planner.rules.select_over_product_to_join import select_over_product_to_join
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.planner.binder_helpers import bound, only, rewritten

TIME = "[FROM NOW-20 TO NOW SLIDE 10 SEC]"
ROWS = "[FROM NOW-20 TO NOW SLIDE 10 ROWS]"


def shape(root):
    """The operators of a tree from the top, by name."""
    return [type(node).__name__ for node in walk(root)]


def labels(columns):
    return [c.label for c in columns]


# --- selections ------------------------------------------------------------------------------------------------------


def test_selection_moves_below_time_window():
    rules, root = rewritten(f"SELECT v FROM r {TIME} WHERE v > 3")
    assert "push_select_below_window" in rules
    assert isinstance(root, TimeWindow) and "WindowSelect" not in shape(root) and "StreamSelect" in shape(root)


def test_selection_moves_below_landmark_and_loop_of_ticks():
    for text, window in (
        ("SELECT v FROM r [UNBOUNDED SLIDE 10 SEC] WHERE v > 3 FOR 1 MIN", LandmarkWindow),
        ("SELECT v FROM r WHERE v > 3 FOR (; t < 9; t++) { WindowIs(r, t, t); }", LoopWindow),
    ):
        rules, root = rewritten(text)
        assert "push_select_below_window" in rules
        assert isinstance(only(root, StreamSelect), StreamSelect) and isinstance(only(root, window), window)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT v FROM r {ROWS} WHERE v > 3",
        "SELECT v FROM r [UNBOUNDED SLIDE 10 ROWS] WHERE v > 3 FOR 1 MIN",
        "SELECT v FROM r WHERE v > 3 FOR (; t < 9; t++) { WindowIs(r ROWS, t, t); }",
    ],
)
def test_selection_stays_above_row_window(text):
    rules, root = rewritten(text)
    assert "push_select_below_window" not in rules
    assert "WindowSelect" in shape(root) and "StreamSelect" not in shape(root)


def test_selection_moves_below_projection():
    rules, root = rewritten("SELECT y FROM (SELECT v + 1 AS y, w FROM r) AS x WHERE y > 3")
    assert "push_select_below_project" in rules
    assert shape(root) == ["StreamProject", "StreamSelect", "StreamAcquire"]


def test_selection_stays_above_column_it_reads_twice():
    rules, root = rewritten("SELECT y FROM (SELECT v + 1 AS y FROM r) AS x WHERE y > 3 OR y < -3")
    assert "push_select_below_project" not in rules
    assert "StreamSelect" in shape(root)[:2]


def test_plain_column_may_be_read_twice():
    rules, _ = rewritten("SELECT y FROM (SELECT v AS y FROM r) AS x WHERE y > 3 OR y < -3")
    assert "push_select_below_project" in rules


def test_selection_stays_above_converter():
    """The difference of two windows changes if tuples are missing from both."""
    _, root = rewritten(f"SELECT v FROM (ISTREAM(SELECT v, w FROM r {TIME})) AS x WHERE w > 1")
    assert "StreamSelect" in shape(root)[: shape(root).index("IStream")]
    assert "StreamSelect" not in shape(root)[shape(root).index("IStream") :]


def test_having_stays_above_aggregation():
    _, root = rewritten(f"SELECT site FROM r {TIME} GROUP BY site HAVING COUNT(*) > 1")
    assert shape(root).index("WindowSelect") < shape(root).index("SliceAggregation")


def test_adjacent_selections_merge():
    rules, root = rewritten("SELECT v FROM (SELECT v, w FROM r WHERE v > 1) AS x WHERE w > 2")
    assert "merge_selects" in rules and shape(root).count("StreamSelect") == 1


def test_true_selection_is_dropped():
    rules, root = rewritten("SELECT v FROM r WHERE 1 < 2")
    assert {"fold_constants", "drop_true_select"} <= set(rules) and "StreamSelect" not in shape(root)


@pytest.mark.parametrize("never", ["1 > 2", "1 / 0 > 1", "NOT 1 / 0 > 1"])
def test_false_selection_stays(never):
    rules, root = rewritten(f"SELECT v FROM r {TIME} WHERE {never}")
    assert "drop_true_select" not in rules and "StreamSelect" in shape(root)


# --- products --------------------------------------------------------------------------------------------------------


def test_conjunct_moves_to_its_input():
    rules, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE r.v > 3 AND p.a < 4 AND r.w > p.x")
    assert "push_select_below_product" in rules
    assert isinstance(root.child, WindowSelect) and len(root.child.expressions) == 1
    left, right = only(root, WindowCrossProduct).inputs
    assert "StreamSelect" in shape(left)  # a window of time lets it through
    assert isinstance(right, WindowSelect) and isinstance(right.child, RowWindow)  # one of rows does not


def test_conjunct_without_columns_stays_above_product():
    rules, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE 1 > 2")
    assert "push_select_below_product" not in rules and isinstance(root.child, WindowSelect)


def test_disjunction_of_both_inputs_stays_above_product():
    rules, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE r.v > 3 OR p.a < 4")
    assert rules == ["drop_dead_columns"] and isinstance(root.child, WindowSelect)


@pytest.mark.parametrize("kind", ["LEFT", "RIGHT", "FULL"])
def test_outer_join_stays_with_selection_above(kind):
    rules, root = rewritten(f"SELECT t.s FROM t {kind} JOIN u ON t.a = u.a AND u.b > 1 WHERE t.a > 1 AND u.b > 2")
    assert rules in ([], ["drop_dead_columns"])
    assert isinstance(root.child, WindowSelect) and isinstance(root.child.child, TableJoin)


def test_inner_join_becomes_product_then_join():
    rules, root = rewritten("SELECT t.s FROM t JOIN u ON t.a = u.a WHERE u.b > 2")
    assert {"inner_join_to_product", "select_over_product_to_join"} <= set(rules)
    assert isinstance(only(root, WindowJoin), WindowJoin)


def test_nested_products_become_one():
    rules, root = rewritten("SELECT t.s FROM t CROSS JOIN u, t AS x")
    assert "flatten_products" in rules and len(only(root, WindowCrossProduct).inputs) == 3


def test_flat_product_keeps_order_of_inputs():
    """The leftmost varies slowest, and ISTREAM sees it."""
    _, root = rewritten("SELECT x.a FROM t, t AS x CROSS JOIN u AS y, u AS z")
    assert labels(c for i in only(root, WindowCrossProduct).inputs for c in i.columns) == ["a"]  # only what is read
    assert [i.extent.name for i in only(root, WindowCrossProduct).inputs] == ["t", "t", "u", "u"]


@pytest.mark.parametrize("key", ["r.v = p.a", "p.a = r.v", "r.v + 1 = p.a * 2", "r.w = p.a"])
def test_equality_makes_join(key):
    rules, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE {key}")
    assert "select_over_product_to_join" in rules
    ((left, right),) = only(root, WindowJoin).keys
    first, second = only(root, WindowJoin).inputs
    assert {c.qualifier for c in columns_of(left)} == {"r"} and {c.qualifier for c in columns_of(right)} == {"p"}
    assert columns_of(left) <= set(first.columns) and columns_of(right) <= set(second.columns)


@pytest.mark.parametrize("no_key", ["r.v < p.a", "r.v = p.a OR r.v > 1", "NOT r.v = p.a", "r.v + p.a = 3"])
def test_other_conditions_make_no_join(no_key):
    rules, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE {no_key}")
    assert "select_over_product_to_join" not in rules and isinstance(root.child, WindowSelect)


def test_equality_within_one_input_is_no_key():
    """Pushdown moves it below the product; a join rule that runs alone leaves it in the selection."""
    rules = (select_over_product_to_join,)
    plan = bound(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE r.v = r.site")
    assert rewrite(plan, rules)[1] == ()
    better, _ = rewrite(bound(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE r.v = r.site AND r.v = p.a"), rules)
    join = only(better.root, WindowJoin)
    assert len(join.keys) == 1 and format_expression(join.residual) == "r.v=r.site"


def test_other_conjuncts_become_residual_of_join():
    _, root = rewritten(f"SELECT r.v FROM r {TIME}, p {ROWS} WHERE r.v = p.a AND r.w > p.x")
    assert only(root, WindowJoin).residual is not None


# --- joins by tick ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT r.v FROM r {TIME}, q {TIME} WHERE r.time = q.time",
        f"SELECT r.v FROM r {TIME}, q {TIME} WHERE q.time = r.time AND r.site = q.site AND r.v > q.v",
        f"SELECT x.v FROM (SELECT tick AS n, v FROM r) AS x {TIME}, (SELECT tick AS m, a FROM p) AS y {TIME} WHERE x.n = y.m",
        "SELECT r.v FROM r [NOW], q [NOW] WHERE r.site = q.site",  # windows of one tick say it themselves
        "SELECT r.v FROM r [FROM NOW-5 TO NOW-5 SLIDE 10 SEC], q [FROM NOW-5 TO NOW-5 SLIDE 10 SEC] WHERE r.site = q.site",
        f"SELECT x.v FROM (SELECT time AS n, v FROM r WHERE v > 1) AS x {TIME}, q {TIME} WHERE x.n = q.time",
    ],
)
def test_join_of_equal_windows_on_ticks_moves_below_window(text):
    rules, root = rewritten(text)
    assert "join_below_window" in rules
    assert shape(root).count("TimeWindow") == 1 and isinstance(only(root, StreamJoin), StreamJoin)


def test_residual_of_tick_join_becomes_selection():
    _, root = rewritten(f"SELECT r.v FROM r {TIME}, q {TIME} WHERE r.time = q.time AND r.site = q.site AND r.v > q.v")
    assert len(only(root, StreamJoin).keys) == 1  # the sites; the ticks are what the join is by
    assert isinstance(only(root, StreamSelect).child, StreamJoin)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT r.v FROM r {TIME}, q [FROM NOW-10 TO NOW SLIDE 10 SEC] WHERE r.time = q.time",
        f"SELECT r.v FROM r {TIME}, q [FROM NOW-20 TO NOW SLIDE 5 SEC] WHERE r.time = q.time",
        f"SELECT r.v FROM r {ROWS}, q {ROWS} WHERE r.time = q.time",
        f"SELECT r.v FROM r {TIME}, q {TIME} WHERE r.site = q.site",
        "SELECT r.v FROM r [NOW], q [FROM NOW-5 TO NOW-5 SLIDE 10 SEC] WHERE r.site = q.site",
        f"SELECT r.v FROM r {TIME}, q {TIME} WHERE r.time = q.time + 10",
        f"SELECT r.v FROM r {TIME}, q {TIME} WHERE r.time < q.time",
        f"SELECT r.v FROM r {TIME}, p {TIME} WHERE r.time = p.a",
        f"SELECT r.v FROM r {TIME}, t [SCAN 10 SEC] WHERE r.time = t.a",
        f"SELECT r.v FROM r {TIME}, q {TIME}, p {TIME} WHERE r.time = q.time",
        # A window over a `late append` extent holds the tuples that had arrived, whatever their ticks.
        f"SELECT r.v FROM r {TIME}, (SELECT tick AS n, a FROM log) AS y {TIME} WHERE r.time = y.n",
        f"SELECT r.v FROM r {TIME}, (RSTREAM(SELECT a AS n FROM log {TIME})) AS y {TIME} WHERE r.time = y.n",
    ],
)
def test_join_of_other_windows_stays_above(text):
    rules, root = rewritten(text)
    assert "join_below_window" not in rules and "StreamJoin" not in shape(root)


# --- projections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [TIME, ROWS])
def test_projection_moves_below_any_window(window):
    rules, root = rewritten(f"SELECT v + 1 AS y FROM r {window}")
    assert "push_project_below_window" in rules
    assert shape(root) == [type(root).__name__, "StreamProject", "StreamAcquire"]


def test_projection_stays_above_aggregation_product_scan():
    for text in (
        f"SELECT MAX(v) + 1 FROM r {TIME}",
        f"SELECT r.v + p.a FROM r {TIME}, p {ROWS}",
        "SELECT a + 1 FROM t [SCAN 10 SEC]",
    ):
        rules, root = rewritten(text)
        assert "push_project_below_window" not in rules and shape(root)[0] == "WindowProject"


def test_adjacent_projections_merge():
    rules, root = rewritten("SELECT y * 2 FROM (SELECT v + 1 AS y FROM r) AS x")
    assert "merge_projects" in rules and shape(root) == ["StreamProject", "StreamAcquire"]


def test_projections_stay_if_merge_computes_twice():
    rules, root = rewritten("SELECT y * y FROM (SELECT v + 1 AS y FROM r) AS x")
    assert "merge_projects" not in rules and shape(root).count("StreamProject") == 2


def test_nested_projections_do_not_grow():
    query = "r"
    for _ in range(40):
        query = f"(SELECT v + v AS v FROM {query}{'' if query == 'r' else ' AS x'})"
    _, root = rewritten(f"SELECT v FROM {query} AS x WHERE v > 3 AND v < 9")
    assert sum(len(list(_walked(node))) for node in walk(root)) < 1_000


def _walked(node):
    return (e for expression in node.expressions for e in walk_expression(expression))


# --- aggregates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT COUNT(*), SUM(v), AVG(w), MIN(v), MAX(v), STDEV(v), VARIANCE(w), FIRST(v), LAST(v) FROM r {TIME}",
        f"SELECT site FROM r {TIME} GROUP BY site",
        f"SELECT COUNT(*) FROM p {TIME} WHERE a > 1",
        "SELECT COUNT(*) FROM r [FROM NOW-20 TO NOW-10 SLIDE 30 SEC]",
        f"SELECT SUM(n) FROM (ISTREAM(SELECT v AS n FROM r {TIME})) AS x {TIME}",
    ],
)
def test_mergeable_aggregates_use_slices(text):
    rules, root = rewritten(text)
    assert "aggregate_by_slices" in rules and isinstance(only(root, SliceAggregation), SliceAggregation)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT MEDIAN(v) FROM r {TIME}",
        f"SELECT QUANTILE(v, 0.5) FROM r {TIME}",
        f"SELECT COUNT(DISTINCT v) FROM r {TIME}",
        f"SELECT MAX(v) FROM r {TIME} HAVING MEDIAN(v) > 1",
        f"SELECT SUM(v) FROM r {ROWS}",
        f"SELECT SUM(a) FROM log {TIME}",
        f"SELECT SUM(n) FROM (RSTREAM(SELECT a AS n FROM log {TIME})) AS x {TIME}",
        f"SELECT SUM(n) FROM (SELECT a AS n FROM p UNION ALL SELECT a FROM log) AS x {TIME}",
        f"SELECT FIRST(n) FROM (SELECT v AS n FROM r UNION ALL SELECT a FROM p) AS x {TIME}",
        f"SELECT COUNT(*), LAST(n) FROM (SELECT v AS n FROM r UNION ALL SELECT a FROM p) AS x {TIME}",
        "SELECT SUM(v) FROM r [FROM NOW TO NOW-10 SLIDE 10 SEC]",
        f"SELECT SUM(r.v) FROM r {TIME}, p {TIME}",
        "SELECT SUM(a) FROM t [SCAN 10 SEC]",
        "SELECT SUM(v) FROM r [UNBOUNDED SLIDE 10 ROWS]",
    ],
)
def test_other_aggregates_use_no_slices(text):
    rules, root = rewritten(text)
    assert "aggregate_by_slices" not in rules
    assert "SliceAggregation" not in shape(root)
    assert any(isinstance(node, WindowAggregation) for node in walk(root))


# --- columns ---------------------------------------------------------------------------------------------------------


def test_unread_columns_are_not_sampled():
    _, root = rewritten(f"SELECT MAX(v) FROM r {TIME} WHERE site = 1")
    assert labels(only(root, StreamAcquire).columns) == ["site", "v"]


def test_count_samples_no_column():
    _, root = rewritten(f"SELECT COUNT(*) FROM r {TIME}")
    assert only(root, StreamAcquire).columns == ()


def test_dead_columns_are_dropped_in_subqueries():
    _, root = rewritten("SELECT x.v FROM (SELECT v, w, site FROM r) AS x")
    assert labels(only(root, StreamAcquire).columns) == ["v"]


@pytest.mark.parametrize("converter", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_columns_below_converter_stay(converter):
    _, root = rewritten(f"SELECT x.v FROM ({converter}(SELECT v, w FROM r {TIME})) AS x")
    assert labels(only(root, StreamAcquire).columns) == ["v", "w"]


def test_columns_not_in_windows_are_dropped_below_converter():
    _, root = rewritten(f"ISTREAM(SELECT v FROM r {TIME})")
    assert isinstance(root, IStream) and labels(only(root, StreamAcquire).columns) == ["v"]


def test_columns_below_distinct_stay():
    _, root = rewritten("SELECT DISTINCT a, s FROM t ORDER BY a")
    assert labels(root.columns) == ["a", "s"]


def test_columns_below_union_stay():
    _, root = rewritten("SELECT n FROM (SELECT v AS n, site FROM r UNION ALL SELECT a, a FROM p) AS x")
    assert labels(only(root, StreamAcquire).columns) == ["site", "v"]


def test_unread_aggregate_is_dropped():
    _, root = rewritten(f"SELECT MAX(v) FROM r {TIME} HAVING 1 < 2 OR SUM(w) > 3")
    assert len(only(root, SliceAggregation).aggregates) == 1
    assert labels(only(root, StreamAcquire).columns) == ["v"]


def test_unread_grouping_column_stays():
    _, root = rewritten(f"SELECT x.n FROM (RSTREAM(SELECT site, MAX(v) AS n FROM r {TIME} GROUP BY site)) AS x")
    assert len(only(root, SliceAggregation).groups) == 1


# --- constants -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("2 + 3 * 4", "14"),
        ("-7 / 2", "-3"),
        ("1 / 0", "null"),
        ("UPPER('ab') ", "'AB'"),
        ("CASE WHEN 1 < 2 THEN 3 ELSE 4 END", "3"),
        ("COALESCE(NULL, 5)", "5"),
        ("9223372036854775807 + 1", "null"),
        ("4611686018427387904 + 4611686018427387903", "9223372036854775807"),
        ("-9223372036854775808 - 1", "null"),
        ("CAST('12' AS integer) + v", "12+r.v"),
    ],
)
def test_constants_fold_and_are_null_outside_64_bits(written, folded):
    _, root = rewritten(f"SELECT {written} AS y FROM r")
    assert format_expression(only(root, StreamProject).outputs[0][1]) == folded


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("v > 1 AND 1 < 2", "r.v>1"),
        ("v > 1 OR 1 > 2", "r.v>1"),
        ("v > 1 AND 1 > 2", "false"),
        ("v > 1 AND 1 / 0 > 1", "r.v>1 and unknown"),
        ("v > 1 OR NOT 1 / 0 > 1", "r.v>1 or unknown"),
        ("NULL IS NULL AND v IS NULL", "r.v is null"),
    ],
)
def test_and_or_drop_decided_terms_not_unknown(written, folded):
    _, root = rewritten(f"SELECT v FROM r WHERE {written}")
    assert format_expression(only(root, StreamSelect).predicate) == folded


# --- all of them -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_returns_same_object_if_it_does_not_apply(rule):
    root = bound("SELECT v, site, time, w FROM r").root
    assert rule(root) is root


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_has_reason(rule):
    assert reason_of(rule).endswith(".") and len(reason_of(rule)) > 60


def test_golden_queries_use_every_rule():
    met = set()
    for path in golden_files(QUERIES):
        golden = read_golden(path)
        schema = read_schema(golden.schema)
        for case in golden.cases:
            for plan in bind_text(case.text, schema) if case.word == "query" else ():
                if isinstance(plan, Plan):
                    met.update(step.rule for step in rewrite(plan)[1])
    assert {rule.__name__ for rule in RULES} <= met


def test_rewriting_is_idempotent():
    for path in golden_files(QUERIES):
        golden = read_golden(path)
        for case in golden.cases:
            if case.word == "query":
                for plan in bind_text(case.text, read_schema(golden.schema)):
                    if isinstance(plan, Plan):
                        better, _ = rewrite(plan)
                        assert rewrite(better)[1] == (), case.name


def test_landmark_aggregation_uses_slices():
    rules, root = rewritten("SELECT SUM(v) FROM r [UNBOUNDED SLIDE 10 SEC]")
    assert "aggregate_by_slices" in rules
    assert not any(isinstance(node, LandmarkWindow) for node in walk(root))
