"""Plans: invariants, mapping of expressions, and the notation of the paper."""

from dataclasses import replace

import pytest

from acquisition.schema import Type
from basestation.algebra import converters, window
from basestation.algebra import expressions as ex
from basestation.algebra.mapping import map_expressions
from basestation.algebra.node import PlanNode, rebuild, walk
from basestation.algebra.notation import label, notation, outline
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.algebra.stream_join import StreamJoin
from basestation.algebra.stream_merged import StreamMerged
from basestation.algebra.stream_project import StreamProject
from basestation.algebra.stream_select import StreamSelect
from basestation.algebra.window_aggregation import WindowAggregation
from basestation.algebra.window_cross_product import WindowCrossProduct
from basestation.algebra.window_join import WindowJoin
from basestation.algebra.window_project import WindowProject
from basestation.algebra.window_select import WindowSelect
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from tests.algebra.invariants import find_violations
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden

CATALOG = read_schema("""
r: sensed (site:integer, time:integer, v:integer) every 10 sec at sites 1, 2
t: stored (a:integer, s:string)
""")
_BASES = {
    "PlanNode",
    "StreamNode",
    "WindowNode",
    "StreamWindow",
    "Converter",
    "ResultModifier",
    "UnaryOperator",
    "SelectMixin",
    "ProjectMixin",
    "AggregateMixin",
    "ProductMixin",
    "UnionMixin",
}


def plan(text):
    (found,) = bind_text(text, CATALOG)
    return found.root


STREAM = plan("SELECT v FROM r").child
WINDOW = plan("SELECT v FROM r [NOW]").child
TABLE = plan("SELECT a FROM t").child
V = STREAM.attributes[2]
ELSEWHERE = ex.Column(999, Type.INTEGER, "elsewhere")
HOLDS = ex.Compare("<", ex.Attr(V), ex.Literal(3, Type.INTEGER))


def operators(kind=PlanNode):
    """The names of all operators. (By name: a class with slots stands twice among the subclasses.)"""
    return {kind.__name__}.union(*(operators(below) for below in kind.__subclasses__())) - _BASES


def all_trees():
    """Every golden plan, as it was bound and as it was rewritten."""
    for path in golden_files(QUERIES):
        golden = read_golden(path)
        for case in golden.cases:
            if case.word == "query":
                for bound in bind_text(case.text, read_schema(golden.schema)):
                    if isinstance(bound, Plan):
                        yield bound.root
                        yield rewrite(bound)[0].root


def over_partials(tree):
    """A plan as a deployment creates it, without a text: motes fold the stream of an aggregation."""
    folded = [found for found in walk(tree) if isinstance(found, SliceAggregation)]
    return rebuild(
        tree,
        lambda found: replace(found, child=StreamMerged(7, (None,), found.child)) if found in folded else found,
    )


BOUND = list(all_trees())
TREES = [*BOUND, *filter(lambda tree: StreamMerged in map(type, walk(tree)), map(over_partials, BOUND))]


# --- invariants ------------------------------------------------------------------------------------------------------


def test_bound_plan_has_no_violations():
    assert (
        find_violations(plan("ISTREAM(SELECT site, MAX(v) FROM r [NOW] WHERE v > 1 GROUP BY site HAVING COUNT(*) > 1)"))
        == []
    )


@pytest.mark.parametrize(
    ("tree", "sentence"),
    [
        (
            StreamSelect(ex.IsNull(ex.Attr(ELSEWHERE)), STREAM),
            "StreamSelect reads elsewhere, which no child gives",
        ),
        (StreamProject(((V, ex.Attr(ELSEWHERE)),), STREAM), "StreamProject reads elsewhere, which no child gives"),
        (WindowSelect(ex.Attr(WINDOW.columns[2]), WINDOW), "WindowSelect selects by a value"),
        (StreamProject(((V, ex.Attr(V)), (V, ex.Attr(V))), STREAM), "StreamProject gives a column twice"),
        (
            WindowProject(((ELSEWHERE, ex.Aggregate("COUNT", None, Type.INTEGER)),), WINDOW),
            "WindowProject evaluates an aggregate",
        ),
        (window.TimeWindow(WINDOW, 0, 0, 10), "TimeWindow reads TimeWindow, which is no stream"),
        (StreamSelect(HOLDS, TABLE), "StreamSelect reads Once, which is no stream"),
        (WindowCrossProduct((STREAM, TABLE)), "WindowCrossProduct reads StreamAcquire, which has no windows"),
        (WindowCrossProduct((WINDOW, WINDOW)), "WindowCrossProduct gives a column twice"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, PlanNode) else value[:40],
)
def test_violation_of_a_plan_is_found(tree, sentence):
    assert sentence in find_violations(tree)


def test_violation_below_the_root_is_found():
    tree = converters.RStream(WindowSelect(ex.Attr(WINDOW.columns[2]), WINDOW), STREAM.tags)
    assert find_violations(tree) == ["WindowSelect selects by a value"]


# --- walking and rebuilding ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", TREES[::7])
def test_rebuild_without_change_returns_the_same_object(tree):
    assert rebuild(tree, lambda found: found) is tree
    assert map_expressions(tree, lambda e: e) is tree


def test_walk_goes_top_down_left_before_right():
    tree = plan("SELECT r.v FROM r [NOW], t [SCAN 10 SEC]")
    assert [type(found).__name__ for found in walk(tree)] == [
        *("WindowProject", "WindowCrossProduct", "TimeWindow", "StreamAcquire", "Scan"),
    ]


def test_rebuild_changes_bottom_up_and_shares_the_rest():
    tree = plan("SELECT r.v FROM r [NOW], t [SCAN 10 SEC] WHERE r.v = t.a")
    changed = rebuild(tree, lambda found: found.child if isinstance(found, WindowSelect) else found)
    assert isinstance(changed, WindowProject) and isinstance(changed.child, WindowCrossProduct)
    assert changed.child is tree.child.child


def doubled(e):
    """Every comparison becomes its opposite's negation; everything else stays."""
    return ex.transform(e, lambda part: ex.Not(part) if isinstance(part, ex.Compare) else part)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT v FROM r WHERE v > 1",
        "SELECT CASE WHEN v > 1 THEN 1 END FROM r",
        "SELECT MAX(CASE WHEN v > 1 THEN 1 END) FROM r [NOW]",
        "SELECT a FROM t ORDER BY CASE WHEN a > 1 THEN 1 END",
        "SELECT t.a FROM t LEFT JOIN t AS u ON t.a > u.a",
    ],
)
def test_map_expressions_changes_every_operator(text):
    tree = plan(text)
    changed = map_expressions(tree, doubled)
    assert "not " in notation(changed) and "not " not in notation(tree)
    assert [type(found) for found in walk(changed)] == [type(found) for found in walk(tree)]


def test_mapped_aggregate_stays_an_aggregate():
    changed = map_expressions(plan("SELECT MAX(CASE WHEN v > 1 THEN 1 END), COUNT(*) FROM r [NOW]"), doubled)
    assert all(isinstance(e, ex.Aggregate) for _, e in changed.child.aggregates)


# --- notation --------------------------------------------------------------------------------------------------------


def test_every_operator_occurs_in_a_golden_plan():
    assert operators() <= {type(found).__name__ for tree in TREES for found in walk(tree)}
    for tree in TREES:
        for found in walk(tree):
            assert label(found).startswith(found.operator)


def test_operator_without_notation_raises():
    with pytest.raises(TypeError):
        label(PlanNode())


@pytest.mark.parametrize("tree", TREES[::7])
def test_notation_balances_parentheses_and_names_operators(tree):
    text = notation(tree)
    bare = "".join(part for i, part in enumerate(text.split('"')) if i % 2 == 0)
    assert bare.count("(") == bare.count(")")
    assert all(text.count(label(found)) for found in walk(tree))
    assert [text for _, text in outline(tree)] == [
        label(found)
        if found.children
        else f"{label(found)} of {', '.join(c.label for c in found.columns) or 'no columns'}"
        for found in walk(tree)
    ]


def test_label_shows_key_and_residual():
    tree = WindowJoin((WINDOW, TABLE), ((ex.Attr(WINDOW.columns[2]), ex.Attr(TABLE.columns[0])),), HOLDS)
    assert label(tree) == 'WindowJoin ["r.v=t.a"] (Predicate "r.v<3")'
    assert label(StreamJoin((), STREAM, STREAM, STREAM.tags)) == "StreamJoin []"


def test_label_shows_many_sites_as_a_range():
    for written, shown in (
        ("1 .. 54", "[1..54]"),
        ("1 .. 3", "[1,2,3]"),
        ("9, 1 .. 8", "[9,1,2,3,4,5,6,7,8]"),
        ("all", "all"),
    ):
        catalog = read_schema(f"m: sensed (v:integer) every 1 sec at sites {written}")
        (found,) = bind_text("SELECT v FROM m", catalog)
        assert label(found.root.child) == f'StreamAcquire "m" (Tick 1) {shown}'


def test_aggregations_give_columns_in_order():
    tree = plan("SELECT site, MAX(v), COUNT(*) FROM r [NOW] GROUP BY site").child
    assert isinstance(tree, WindowAggregation)
    slices = SliceAggregation(tree.groups, tree.aggregates, 0, 0, 10, tree.child.child, True)
    assert slices.columns == tree.columns
    assert label(slices) == "SliceAggregation [r.site] [MAX(r.v), COUNT(*)] (TimeScope (Tick 0) (Tick 0)) (Tick 10)"


@pytest.mark.parametrize(
    ("begin", "end", "slide", "edges"), [(-9, 0, 10, 1), (-10, 0, 10, 2), (0, 0, 1, 1), (-19, -10, 5, 1), (-3, 0, 2, 1)]
)
def test_slide_has_its_number_of_slice_edges(begin, end, slide, edges):
    """If a window ends just before another begins, they share an edge."""
    assert SliceAggregation((), (), begin, end, slide, STREAM, False).edges == edges
