"""Values for tests of aggregates, the calls that fold them, and the oracle's answers."""

import math

import numpy as np
import pytest
from hypothesis import strategies as st

from innet.aggregates import create_aggregate
from tests.oracles import aggregates as oracle
from tests.oracles.values import Multiple

SCALE = 2
MERGING = ("COUNT", "SUM", "AVG", "MIN", "MAX", "VARIANCE", "STDEV", "FIRST", "LAST")
UNDOING = ("COUNT", "SUM", "AVG", "VARIANCE", "STDEV")
OF_STRINGS = ("COUNT", "MIN", "MAX", "FIRST", "LAST")
N_GROUPS = 3
DTYPES = {"integer": np.int64, "scaled": np.int64, "float": np.float64, "string": object}

# --- values worth trying ---------------------------------------------------------------------------------------------

floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, -5e-324, 2.0**-1022, 1e-160, 1e160, 0.1]),
    st.integers(-5000, 5000).map(lambda n: n / 100),
    st.builds(lambda m, e: math.ldexp(m, e), st.integers(-3, 3), st.integers(-1074, 1020)),
)
integers = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([2**63 - 1, -(2**63), 2**53, 2**53 + 1, 2**31, -(2**31), 2**32 - 1, 0]),
    st.integers(-100, 100),
)
VALUES = {"integer": integers, "scaled": integers, "float": floats, "string": st.text(max_size=4)}
orders = st.integers(0, 1)  # few, so that keys are often equal


def rows_of(type_, max_size=40):
    """(group, value or None, tick, second)."""
    value = st.none() | VALUES[type_]
    return st.lists(st.tuples(st.integers(0, N_GROUPS - 1), value, orders, orders), max_size=max_size)


every_type = pytest.mark.parametrize("type_", sorted(VALUES))
numeric_type = pytest.mark.parametrize("type_", ["float", "integer", "scaled"])


def made(name, type_, **more):
    return create_aggregate(name, type_, scale=SCALE if type_ == "scaled" else None, **more)


def arrays(type_, rows):
    """Return the arguments of `update` as arrays."""
    values = np.empty(len(rows), DTYPES[type_])
    values[:] = [("" if type_ == "string" else 0) if value is None else value for _, value, _, _ in rows]
    groups, ticks, seconds = (np.array([row[i] for row in rows], np.int64) for i in (0, 2, 3))
    valid = np.array([value is not None for _, value, _, _ in rows], bool)
    return {"groups": groups, "values": values, "valid": valid, "order": (ticks, seconds)}


def fold(aggregate, type_, rows, state=None, **more):
    state = aggregate.init(N_GROUPS) if state is None else state
    aggregate.update(state, **arrays(type_, rows), **more)
    return state


# --- what it should be -----------------------------------------------------------------------------------------------


def expected(name, type_, rows):
    """Return the oracle's answer for the rows of one group."""
    there = [row for row in rows if row[1] is not None]
    values = [row[1] for row in there]
    if name in ("FIRST", "LAST"):
        if not there:
            return None
        keys = [(tick, second) for _, _, tick, second in there]
        if name == "FIRST":
            return values[keys.index(min(keys))]
        return values[len(keys) - 1 - keys[::-1].index(max(keys))]
    if name in ("MIN", "MAX"):
        return {"MIN": min, "MAX": max}[name](values, default=None)
    if type_ == "scaled":
        values = [Multiple(value, SCALE) for value in values]
    return oracle.PLAIN[name](values)


def same(found, wanted):
    """Whether two answers are equal to the last bit; 0.0 and -0.0 are equal."""
    if wanted is None or found is None:
        return found is wanted
    return type(found) is type(wanted) and found == wanted


def answers(finalized):
    values, valid = finalized
    assert valid.dtype == bool
    return [v if there else None for v, there in zip(values.tolist(), valid.tolist(), strict=True)]


def check(name, type_, rows, finalized):
    found = answers(finalized)
    for group in range(N_GROUPS):
        wanted = expected(name, type_, [row for row in rows if row[0] == group])
        if name == "SUM" and type_ == "integer" and wanted is not None:
            wanted = wanted if -(2**63) <= wanted < 2**63 else None
        assert same(found[group], wanted), (name, group, found[group], wanted)


def dumped_bytes(aggregate, state):
    return {name: (a.tolist() if a.dtype == object else a.tobytes()) for name, a in aggregate.dump(state).items()}


def names_for(type_, names=MERGING):
    return [name for name in names if type_ != "string" or name in OF_STRINGS]
