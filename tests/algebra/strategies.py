"""Random typed expressions as text, and rows of values that are hard on them."""

from functools import cache

from hypothesis import strategies as st

EXTREME = (0, 1, -1, 2, -7, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63))
FLOATS = (
    0.0,
    -0.0,
    1.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    1.5,
    0.49999999999999994,
    2.0**53,
    2.0**63,
    -(2.0**63),
    1e300,
    -1e300,
    5e-324,
)
STRINGS = (
    "",
    "a",
    "b",
    "ab",
    "A",
    "it's",
    "%",
    "_",
    "a%b",
    "a\\",
    "Straße",
    "é",
    "\n",
    "12",
    " 12",
    "-1.5",
    "1e3",
    "x😀",
)

integers = st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(EXTREME), st.integers(-(2**63), 2**63 - 1))
floats = st.one_of(
    st.none(), st.sampled_from(FLOATS), st.floats(-100, 100), st.floats(allow_nan=False, allow_infinity=False)
)
strings = st.one_of(st.none(), st.sampled_from(STRINGS), st.text("ab%_\\ é1.-", max_size=4))
rows = st.lists(st.tuples(integers, integers, integers, floats, floats, strings, strings), max_size=5)


def _written(template, *parts):
    return st.tuples(*parts).map(lambda found: template.format(*found))


@cache
def whole(depth):
    """Text of an integer expression."""
    leaves = st.sampled_from(("a", "b", "at", "0", "1", "-3", "7", "9007199254740993", "-9223372036854775808", "NULL"))
    if depth == 0:
        return leaves
    i, f, s, p = whole(depth - 1), real(depth - 1), text(depth - 1), predicate(depth - 1)
    return st.one_of(
        leaves,
        _written("({} {} {})", i, st.sampled_from("+-*/%"), i),
        _written("(- {})", i),
        _written("{}({})", st.sampled_from(("ABS", "ROUND", "FLOOR", "CEIL")), i),
        _written("LENGTH({})", s),
        _written("CASE WHEN {} THEN {} WHEN {} THEN {} END", p, i, p, i),
        _written("COALESCE({}, {}, {})", i, i, i),
        _written("NULLIF({}, {})", i, st.one_of(i, f)),
        _written("{}({}, {})", st.sampled_from(("LEAST", "GREATEST")), i, i),
        _written("CAST({} AS integer)", st.one_of(f, s)),
    )


@cache
def real(depth):
    """Text of a float expression."""
    leaves = st.sampled_from(("x", "y", "0.0", "1.5", "-2.5", "9007199254740992.0", "1e300"))
    if depth == 0:
        return leaves
    i, f, s, p = whole(depth - 1), real(depth - 1), text(depth - 1), predicate(depth - 1)
    any_number = st.one_of(i, f)
    return st.one_of(
        leaves,
        _written("({} {} {})", f, st.sampled_from("+-*/%"), any_number),
        _written("({} {} {})", i, st.sampled_from("+-*/%"), f),
        _written("(- {})", f),
        _written("{}({})", st.sampled_from(("ABS", "ROUND", "FLOOR", "CEIL", "SQRT")), f),
        _written("DIST({}, {}, {}, {})", f, i, f, f),
        _written("CASE WHEN {} THEN {} ELSE {} END", p, f, any_number),
        _written("COALESCE({}, {})", any_number, f),
        _written("NULLIF({}, {})", f, any_number),
        _written("{}({}, {}, NULL)", st.sampled_from(("LEAST", "GREATEST")), any_number, f),
        _written("CAST({} AS float)", st.one_of(i, s)),
    )


@cache
def text(depth):
    """Text of a string expression."""
    leaves = st.sampled_from(("s", "u", "''", "'a'", "'it''s'", "'%'", "'1.5'"))
    if depth == 0:
        return leaves
    i, s, p = whole(depth - 1), text(depth - 1), predicate(depth - 1)
    return st.one_of(
        leaves,
        _written("{}({})", st.sampled_from(("UPPER", "LOWER")), s),
        _written("CASE WHEN {} THEN {} ELSE {} END", p, s, s),
        _written("COALESCE({}, {})", s, s),
        _written("NULLIF({}, {})", s, s),
        _written("{}({}, {})", st.sampled_from(("LEAST", "GREATEST")), s, s),
        _written("CAST({} AS string)", st.one_of(i, st.just("x"))),
    )


@cache
def predicate(depth):
    """Text of a predicate."""
    below = max(0, depth - 1)
    i, f, s = whole(below), real(below), text(below)
    number = st.one_of(i, f)
    op = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    simple = st.one_of(
        _written("({} {} {})", number, op, number),
        _written("({} {} {})", s, op, s),
        _written("({} IS {}NULL)", st.one_of(number, s), st.sampled_from(("", "NOT "))),
        _written("({} {}BETWEEN {} AND {})", number, st.sampled_from(("", "NOT ")), number, number),
        _written("({} {}IN ({}, {}, NULL))", number, st.sampled_from(("", "NOT ")), number, number),
        _written("({} IN ({}, 'a'))", s, s),
        _written("({} {}LIKE {})", s, st.sampled_from(("", "NOT ")), s),
    )
    if depth == 0:
        return simple
    p = predicate(depth - 1)
    return st.one_of(simple, _written("({} {} {})", p, st.sampled_from(("AND", "OR")), p), _written("(NOT {})", p))
