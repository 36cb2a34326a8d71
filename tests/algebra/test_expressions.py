"""Expressions as values: flat conjunctions, sharing, substitution, types; and their text in the notation of the paper."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.expression_text import format_expression
from tests.algebra import strategies
from tests.algebra.oracle import evaluated, predicate_of, value_of

A, B = (ex.Column(i, Type.INTEGER, name, "t") for i, name in enumerate("ab"))
TRUE, FALSE = ex.Truth(True), ex.Truth(False)
LESS = ex.Compare("<", ex.Attr(A), ex.Attr(B))


def number(value):
    return ex.Literal(value, Type.FLOAT if isinstance(value, float) else Type.INTEGER)


# --- building --------------------------------------------------------------------------------------------------------


def test_nested_conjunctions_and_disjunctions_become_flat():
    inner = ex.conjunction((LESS, TRUE))
    assert ex.conjunction((inner, FALSE)).terms == (LESS, TRUE, FALSE)
    assert ex.disjunction((ex.disjunction((LESS, TRUE)), FALSE)).terms == (LESS, TRUE, FALSE)
    assert ex.conjunction((ex.disjunction((LESS, TRUE)), FALSE)).terms == (ex.disjunction((LESS, TRUE)), FALSE)


def test_single_term_stays_as_it_is():
    assert ex.conjunction((LESS,)) is LESS and ex.disjunction((LESS,)) is LESS


def test_conjuncts_split_only_conjunctions():
    assert ex.conjuncts(ex.conjunction((LESS, TRUE))) == (LESS, TRUE)
    assert ex.conjuncts(ex.disjunction((LESS, TRUE))) == (ex.disjunction((LESS, TRUE)),)


def test_columns_are_equal_by_id_alone():
    assert ex.Column(3, Type.INTEGER, "a", "r") == ex.Column(3, Type.INTEGER, "b", "s")
    assert ex.Column(3, Type.INTEGER, "a", "r") != ex.Column(4, Type.INTEGER, "a", "r")


def test_constants_of_different_types_differ():
    constants = [
        number(1),
        number(1.0),
        number(0.0),
        number(-0.0),
        ex.Literal("1", Type.STRING),
        ex.Literal(None, None),
    ]
    constants += [ex.Literal(None, Type.INTEGER), ex.Literal(1, Type.TIME)]
    assert len(set(constants)) == len(constants)
    assert number(1.5) == number(1.5) and hash(number(1.5)) == hash(number(1.5))


@pytest.mark.parametrize(
    ("column", "label", "written"),
    [
        (ex.Column(1, Type.INTEGER, "a", "t"), "a", "t.a"),
        (ex.Column(1, Type.INTEGER, "a"), "a", "a"),
        (ex.Column(1, Type.INTEGER, text="a + 1"), "a + 1", "a + 1"),
        (ex.Column(7, Type.INTEGER), "#7", "#7"),
    ],
)
def test_column_has_its_label(column, label, written):
    assert (column.label, str(column)) == (label, written)


# --- walking and changing ---------------------------------------------------------------------------------------------


@given(st.one_of(strategies.whole(2), strategies.real(2), strategies.text(2)))
def test_expression_with_its_own_parts_is_equal(written):
    expression, _ = value_of(written)
    for part in ex.walk(expression):
        assert part.with_parts(part.parts) == part


@given(strategies.predicate(2))
def test_transform_without_change_returns_the_same_object(written):
    expression, columns = predicate_of(written)
    assert ex.transform(expression, lambda e: e) is expression
    assert ex.substitute(expression, {}) is expression
    assert ex.columns_of(expression) <= set(columns)


def test_walk_yields_each_expression_before_its_parts():
    tree = ex.Not(LESS)
    assert list(ex.walk(tree)) == [tree, LESS, ex.Attr(A), ex.Attr(B)]


def test_substitute_replaces_every_column():
    found = ex.substitute(ex.Case(((LESS, ex.Attr(A)),), ex.Attr(B)), {A: number(7)})
    assert found == ex.Case(((ex.Compare("<", number(7), ex.Attr(B)), number(7)),), ex.Attr(B))


def test_computed_column_read_twice_is_detected():
    computed = {A: ex.Arithmetic("+", ex.Attr(B), number(1))}
    plain = {A: ex.Attr(B)}
    twice = ex.Arithmetic("*", ex.Attr(A), ex.Attr(A))
    assert ex.is_computed_once((ex.Attr(A),), computed)
    assert not ex.is_computed_once((twice,), computed)
    assert not ex.is_computed_once((ex.Attr(A), ex.Attr(A)), computed)
    assert ex.is_computed_once((twice,), plain) and ex.is_computed_once((twice,), {A: number(1)})
    assert ex.is_computed_once((twice,), {})


# --- types -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ((), None),
        ((None, None), None),
        ((None, Type.STRING), Type.STRING),
        ((Type.INTEGER, Type.FLOAT), Type.FLOAT),
        ((Type.TIME, Type.TIME), Type.TIME),
        ((Type.TIME, Type.INTEGER), Type.INTEGER),
        ((Type.TIME, Type.FLOAT, None), Type.FLOAT),
    ],
)
def test_common_type_of_branches(types, common):
    assert ex.common_type(*types) is common


@pytest.mark.parametrize(
    ("types", "result"),
    [
        ((Type.INTEGER, Type.INTEGER), Type.INTEGER),
        ((Type.TIME, Type.TIME), Type.INTEGER),
        ((Type.INTEGER, Type.FLOAT), Type.FLOAT),
        ((None, Type.FLOAT), Type.FLOAT),
        ((None, None), Type.INTEGER),
    ],
)
def test_expression_has_its_type(types, result):
    assert ex.arithmetic_type(*types) is result


def test_aggregates_are_mergeable_by_kind():
    merging = [
        ex.Aggregate(n, ex.Attr(A), Type.FLOAT).is_mergeable for n in ("COUNT", "SUM", "AVG", "MIN", "FIRST", "STDEV")
    ]
    assert all(merging) and ex.Aggregate("COUNT", None, Type.INTEGER).is_mergeable
    assert not ex.Aggregate("COUNT", ex.Attr(A), Type.INTEGER, distinct=True).is_mergeable
    assert not any(ex.Aggregate(n, ex.Attr(A), Type.FLOAT).is_mergeable for n in ("MEDIAN", "QUANTILE"))


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a+b*2", "t.a+t.b*2"),
        ("(a+b)*2", "(t.a+t.b)*2"),
        ("a-(b-1)", "t.a-(t.b-1)"),
        ("(a-b)-1", "t.a-t.b-1"),
        ("a/(b*2)", "t.a/(t.b*2)"),
        ("-(a+b)", "-(t.a+t.b)"),
        ("- -a", "-(-t.a)"),
        ("a - -1", "t.a-(-1)"),
        ("(-a)*b", "-t.a*t.b"),
        ("'it''s'", "'it''s'"),
        ("NULL", "null"),
        ("CAST(a + 1 AS STRING)", "cast(t.a+1 as string)"),
        ("round(x)", "ROUND(t.x)"),
        ("CASE WHEN a > 1 THEN 2 END", "case when t.a>1 then 2 else null end"),
    ],
)
def test_value_has_its_text(written, text):
    assert format_expression(value_of(written)[0]) == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a = 1 AND (b = 2 OR NOT a < b)", "t.a=1 and (t.b=2 or not t.a<t.b)"),
        ("NOT (a = 1 AND b = 2)", "not (t.a=1 and t.b=2)"),
        ("NOT NOT a = 1", "not not t.a=1"),
        ("a != 1", "t.a<>1"),
        ("a + 1 IS NOT NULL", "t.a+1 is not null"),
        ("s NOT LIKE 'a%'", "not t.s like 'a%'"),
        ("a IN (1, b)", "t.a in (1, t.b)"),
        ("a + 1 BETWEEN b AND 3", "t.a+1 between t.b and 3"),
        ("a BETWEEN b AND 3", "t.a>=t.b and t.a<=3"),
    ],
)
def test_predicate_has_its_text(written, text):
    assert format_expression(predicate_of(written)[0]) == text


@given(st.one_of(strategies.whole(2), strategies.real(2), strategies.text(2)), strategies.rows)
def test_value_text_parses_back_to_the_same_value(written, rows):
    expression, columns = value_of(written)
    again, its_columns = value_of(format_expression(expression))
    assert evaluated(again, its_columns, rows) == evaluated(expression, columns, rows)
    assert format_expression(again) == format_expression(expression)


@given(strategies.predicate(2), strategies.rows)
def test_predicate_text_parses_back_to_the_same_predicate(written, rows):
    expression, columns = predicate_of(written)
    again, its_columns = predicate_of(format_expression(expression))
    assert evaluated(again, its_columns, rows) == evaluated(expression, columns, rows)
    assert format_expression(again) == format_expression(expression)


def test_long_chain_has_a_text():
    chain = ex.Attr(A)
    for _ in range(5_000):
        chain = ex.Arithmetic("+", chain, number(1))
    assert format_expression(chain) == "t.a" + "+1" * 5_000
