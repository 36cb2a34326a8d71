"""Evaluation over columns against the scalar interpreter, row by row: random expressions over extreme values."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schema import Type
from basestation.algebra import expressions as ex
from basestation.algebra.evaluation import Evaluation, compile_like_pattern, round_half_away
from basestation.algebra.window_project import WindowProject
from basestation.planner.binder import bind_text
from basestation.planner.rules.fold_constants import fold_constants
from tests.algebra import strategies
from tests.algebra.oracle import CATALOG, TYPES, evaluated, interpreted, predicate_of, value_of
from tests.algebra.vectors import vector_of
from tests.oracles import values

VALUES = st.one_of(strategies.whole(2), strategies.real(2), strategies.text(2))
PREDICATES = strategies.predicate(2)
NOTHING = (None,) * len(TYPES)


def agree(found, wanted):
    """Compare row by row; types count."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one == other and type(one) is type(other), (found, wanted)


@given(VALUES, strategies.rows)
def test_values(text, rows):
    agree(evaluated(*value_of(text), rows), interpreted(text, rows))


@given(PREDICATES, strategies.rows)
def test_predicates(text, rows):
    agree(evaluated(*predicate_of(text), rows), interpreted(text, rows))


_STEPS = (
    *(f"{left} {op} {right}" for left, right in ("ab", "ax", "xa", "xy") for op in "+-*/%"),
    *(f"{name}({column})" for name in ("ABS", "ROUND", "FLOOR", "CEIL") for column in "ax"),
    *(
        f"{name}({arguments})"
        for name in ("LEAST", "GREATEST", "COALESCE")
        for arguments in ("a, b", "a, x", "s, u", "y, a")
    ),
    *(f"NULLIF({arguments})" for arguments in ("a, b", "a, x", "x, a", "s, u")),
    *(f"{name}(s)" for name in ("UPPER", "LOWER", "LENGTH")),
    *(f"CAST({column} AS {to})" for column, to in (("x", "integer"), ("a", "float"), ("a", "string"), ("x", "string"))),
    *(f"CAST({column} AS {to})" for column, to in (("s", "integer"), ("s", "float"), ("at", "integer"), ("a", "time"))),
    *("-a", "-x", "SQRT(x)", "DIST(x, y, a, b)", "CASE WHEN a > b THEN x WHEN a < b THEN at ELSE y END"),
    *("CASE WHEN s > u THEN s WHEN a IS NULL THEN u END", "CASE WHEN x = y THEN 1 ELSE 2 END"),
)


@pytest.mark.parametrize("text", _STEPS)
@given(rows=strategies.rows)
def test_each_operation_alone_equals_the_oracle(text, rows):
    agree(evaluated(*value_of(text), rows), interpreted(text, rows))


# --- folding ---------------------------------------------------------------------------------------------------------


def folded(expression):
    """The expression after the rewrite `fold_constants`."""
    (plan,) = bind_text("SELECT a FROM t", CATALOG)
    return fold_constants(WindowProject(((plan.root.columns[0], expression),), plan.root.child)).outputs[0][1]


def with_values(expression, columns, row):
    """The expression with constants in place of its columns."""
    values_of = {c: ex.Literal(v, c.type) for c, v in zip(columns, row, strict=True)}
    return ex.substitute(expression, values_of)


@given(st.one_of(VALUES.map(value_of), PREDICATES.map(predicate_of)), strategies.rows)
def test_constant_expression_folds_to_its_value(bound, rows):
    expression, columns = bound
    for row in rows:
        constant = folded(with_values(expression, columns, row))
        assert evaluated(constant, columns, [NOTHING]) == evaluated(expression, columns, [row])


@given(st.one_of(VALUES.map(value_of), PREDICATES.map(predicate_of)), strategies.rows)
def test_folding_constants_keeps_outcome_and_type(bound, rows):
    expression, columns = bound
    parts = folded(expression)
    assert evaluated(parts, columns, rows) == evaluated(expression, columns, rows)
    assert parts.is_predicate == expression.is_predicate
    assert (parts.type or Type.INTEGER) is (expression.type or Type.INTEGER)


@given(PREDICATES, strategies.rows)
def test_negated_predicate_keeps_false_and_drops_unknown(text, rows):
    held = interpreted(text, rows)
    negated = evaluated(*predicate_of(f"NOT {text}"), rows)
    agree(negated, [None if v is None else not v for v in held])


# --- examples by hand -----------------------------------------------------------------------------------------------


def one(text, **row):
    """The value of an expression over one row."""
    return evaluated(*value_of(text), [tuple(row.get(name) for name in TYPES)])[0]


def holds(text, **row):
    return evaluated(*predicate_of(text), [tuple(row.get(name) for name in TYPES)])[0]


@pytest.mark.parametrize(
    ("a", "b", "quotient", "rest"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (6, 3, 2, 0), (0, -5, 0, 0), (1, 0, None, None)],
)
def test_integer_division_truncates_toward_zero(a, b, quotient, rest):
    assert (one("a / b", a=a, b=b), one("a % b", a=a, b=b)) == (quotient, rest)


def test_extreme_integers_divide_exactly():
    assert one("a / b", a=2**63 - 1, b=2) == 2**62 - 1
    assert one("a / b", a=-(2**63), b=3) == -(2**63 // 3)
    assert one("a % b", a=2**63 - 1, b=2**62) == 2**62 - 1
    assert (one("a / b", a=-(2**63), b=-1), one("a % b", a=-(2**63), b=-1)) == (None, 0)


@pytest.mark.parametrize(
    ("text", "fitting", "beyond"),
    [
        ("a + b", (2**63 - 2, 1), (2**63 - 1, 1)),
        ("a - b", (-(2**63) + 1, 1), (-(2**63), 1)),
        ("a * b", (2**62, -2), (2**62, 2)),
        ("a * b", (-(2**32), 2**31), (2**32, 2**32)),
        ("a * b", (-(2**63), 1), (-(2**63), -1)),
        ("-a", (-(2**63) + 1, 0), (-(2**63), 0)),
        ("ABS(a)", (-(2**63) + 1, 0), (-(2**63), 0)),
        ("a * 2 + b - b", (2**61, 2**62 - 1), (2**62, -1)),
    ],
)
def test_integer_outside_64_bits_is_null(text, fitting, beyond):
    rows = [tuple({"a": a, "b": b}.get(name) for name in TYPES) for a, b in (fitting, beyond, (3, 2))]
    first, second, third = evaluated(*value_of(text), rows)
    assert first is not None and second is None and third is not None


def test_intermediate_result_outside_64_bits_is_null():
    assert one("a + b - b", a=2**63 - 1, b=1) is None
    assert holds("a + b > 0 OR a > 0", a=2**63 - 1, b=1) is True


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("a", [2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0])
@pytest.mark.parametrize("x", [2.0**53, -(2.0**53), 2.0**63, -(2.0**63), 1e300, 0.5])
def test_integers_beyond_2_to_53_compare_exactly_with_floats(op, a, x):
    assert holds(f"a {op} x", a=a, x=x) is values.compare(op, a, x)
    assert holds(f"x {op} a", a=a, x=x) is values.compare(op, x, a)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ROUND(0.5)", 1.0),
        ("ROUND(-0.5)", -1.0),
        ("ROUND(2.5)", 3.0),
        ("ROUND(-2.5)", -3.0),
        ("ROUND(0.49999999999999994)", 0.0),
        ("ROUND(4503599627370497.5)", 4503599627370498.0),
        ("ROUND(7)", 7),
        ("CAST(1.9 AS integer)", 1),
        ("CAST(-1.9 AS integer)", -1),
        ("CAST(1e300 AS integer)", None),
        ("CAST('1.5' AS integer)", 1),
        ("CAST('9007199254740993.0' AS integer)", 2**53 + 1),
        ("CAST('9223372036854775808' AS integer)", None),
        ("CAST('1e99999999999999999999' AS integer)", None),
        ("CAST('1e-99999999999999999999' AS integer)", 0),
        ("CAST('1e400' AS float)", None),
        ("CAST(' 12' AS integer)", None),
        ("CAST('12 ' AS float)", None),
        ("CAST('twelve' AS float)", None),
        ("CAST('' AS integer)", None),
        ("CAST('NaN' AS float)", None),
        ("CAST('0x10' AS integer)", None),
        ("CAST('1_000' AS integer)", None),
        ("CAST(12 AS string)", "12"),
        ("CAST(1.5 AS string)", "1.5"),
        ("CAST(NULL AS string)", None),
        ("SQRT(-1)", None),
        ("LN(0)", None),
        ("LN(-1)", None),
        ("EXP(1000)", None),
        ("POWER(0, -1)", None),
        ("POWER(-8, 0.5)", None),
        ("POWER(2, 10)", 1024.0),
        ("1e308 * 10", None),
        ("1e308 + 1e308 - 1e308", None),
        ("LEAST(NULL, NULL)", None),
        ("LEAST(3, NULL, 1.5)", 1.5),
        ("GREATEST('a', NULL, 'b')", "b"),
        ("COALESCE(NULL, NULL, 2)", 2),
        ("COALESCE(1, 2.5)", 1.0),
        ("NULLIF(1, 1.0)", None),
        ("NULLIF(NULL, 1)", None),
        ("NULLIF(2, NULL)", 2),
        ("UPPER('straße é')", "STRAßE é"),
        ("LOWER('ÀB')", "Àb"),
        ("LENGTH('x😀é')", 3),
        ("DIST(0, 0, 3, 4)", 5.0),
        ("CASE WHEN NULL = 1 THEN 1 WHEN 1 = 1 THEN 2 END", 2),
        ("CASE WHEN 1 = 2 THEN 1.5 END", None),
        ("NULL", None),
        ("-NULL", None),
    ],
)
def test_function_at_a_corner_has_its_value(text, value):
    found = one(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("name", ["SQRT", "LN", "EXP"])
@pytest.mark.parametrize("x", [0.0, 1.0, 0.5, 2.0, 100.0, 1e-300, 1e300, 709.0, -1.5, None])
def test_real_functions_equal_the_math_library(name, x):
    found, wanted = one(f"{name}(x)", x=x), getattr(values, name.lower())(x)
    assert (found is None) == (wanted is None)
    assert found is None or math.isclose(found, wanted, rel_tol=1e-14)


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True), (True, False, False, True), (True, None, None, True), (False, False, False, False),
        (False, None, False, None), (None, None, None, None),
    ],
)  # fmt: skip
def test_and_or_not_follow_three_valued_logic(left, right, both, either):
    written = {True: "1 = 1", False: "1 = 2", None: "a = 1"}
    for one_side, other in ((left, right), (right, left)):
        assert holds(f"{written[one_side]} AND {written[other]}") is both
        assert holds(f"{written[one_side]} OR {written[other]}") is either
    assert holds(f"NOT {written[left]}") is (None if left is None else not left)


def test_in_equals_the_disjunction_of_equalities():
    assert holds("a IN (1, 2)", a=2) is True
    assert holds("a IN (1, NULL)", a=1) is True
    assert holds("a IN (1, NULL)", a=3) is None
    assert holds("a NOT IN (1, NULL)", a=3) is None
    assert holds("a IN (1, 2)") is None
    assert holds("a IN (1, 2.0)", a=2) is True


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("", "", True), ("", "a", False), ("%", "", True), ("%", "a\nb", True), ("a%", "ab", True), ("a%a", "a", False),
        ("a%a", "aa", True), ("%b%", "abc", True), ("_", "é", True), ("_", "", False), ("_%_", "a", False),
        ("a.c", "abc", False), ("[a]", "a", False), ("\\%", "%", True), ("\\%", "a", False), ("\\_%", "_x", True),
        ("a\\", "a\\", True), ("\\\\", "\\", True), ("\\a", "a", True), ("%ab%ab", "abab", True), ("%ab%ab", "ab", False),
        ("%a_%b", "xaab", True), ("A%", "ab", False),
    ],
)  # fmt: skip
def test_like(pattern, text, matches):
    assert holds("s LIKE u", s=text, u=pattern) is matches is values.like(text, pattern)


@given(st.text("ab%_\\.", max_size=7), st.text("ab%_\\.", max_size=8))
def test_like_equals_its_definition(pattern, text):
    assert (compile_like_pattern(pattern).fullmatch(text) is not None) is values.like(text, pattern)


def test_like_with_many_percent_signs_is_fast():
    assert holds("s LIKE u", s="a" * 5_000, u="%a" * 30 + "b") is False


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_round_takes_halves_away_from_zero(x):
    (found,) = round_half_away(vector_of([x], Type.FLOAT).values).tolist()
    assert found == values.half_away(x)


@pytest.mark.parametrize(
    "nested",
    ["CASE WHEN {} BETWEEN 0 AND 1 THEN 1 ELSE 0 END", "CASE WHEN {} IN (1, 2, 3) THEN 1 ELSE 0 END", "NULLIF({}, 5)"],
)
def test_deeply_nested_operand_is_computed_once(nested):
    text = "a"
    for _ in range(45):
        text = nested.format(text)
    assert one(text, a=1) == 1


def test_empty_batch_gives_empty_vectors():
    for text in ("a + 1", "UPPER(s)", "x / 0", "CASE WHEN a > 1 THEN s END", "COALESCE(a, x)", "NULL"):
        assert evaluated(*value_of(text), []) == []
    assert evaluated(*predicate_of("s LIKE 'a%' AND a IN (1, 2)"), []) == []


def test_constant_has_the_length_of_the_batch():
    assert Evaluation({}, 3).of(ex.Literal("x", Type.STRING)).to_list() == ["x"] * 3


X = ex.Column(1, Type.FLOAT, "x")
N = ex.Column(1, Type.INTEGER, "n")


def among(column, type_, value, members, of):
    """Whether a value is among the values of a subquery: True, False, or None for unknown."""
    batch = Evaluation({column.id: vector_of([value], type_)}, 1)
    said = batch.of(ex.InValues(ex.Attr(column), vector_of(members, of)))
    return bool(said.values[0]) if said.validity[0] else None


@pytest.mark.parametrize(
    ("value", "members", "is_one"),
    [
        (1.5, [0, 1, 2], False), (2.0, [1, 2], True), (1.5, [1, None], None), (1.0, [1, None], True), (None, [1], None),
        (None, [], False), (1.5, [], False), (2.0**53, [2**53 + 1], False), (1e300, [0, 1], False),
    ],
)  # fmt: skip
def test_float_in_integers_is_found_exactly(value, members, is_one):
    assert among(X, Type.FLOAT, value, members, Type.INTEGER) is is_one


@pytest.mark.parametrize(
    ("value", "members", "is_one"),
    [(1, [1.5], False), (2, [2.0, None], True), (1, [2.0, None], None), (1, [2.0], False), (None, [None], None)],
)
def test_integer_in_floats_is_found_exactly(value, members, is_one):
    assert among(N, Type.INTEGER, value, members, Type.FLOAT) is is_one
