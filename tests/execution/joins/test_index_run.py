"""Index runs against a linear search; ranges that rise are counted in a table, others are bisected."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.execution.joins.index_run import KeyRun, TickRun
from basestation.execution.joins.probe_span import ProbeSpan

TICKS = st.integers(-4, 12)
ROWS = st.lists(st.tuples(st.integers(0, 5), TICKS), max_size=60)
EDGES = st.lists(st.tuples(TICKS, TICKS), min_size=1, max_size=6)


def integers(values):
    return np.array(list(values), np.int64)


@st.composite
def probes(draw):
    """(codes, left, right, first, last) of probes, the ranges in their order or not."""
    edges = draw(EDGES)
    left, right = [low for low, _ in edges], [high for _, high in edges]
    if draw(st.booleans()):
        left, right = sorted(left), sorted(right)
    each = st.tuples(st.integers(-1, 7), st.integers(0, len(edges) - 1), st.integers(0, len(edges) - 1))
    asked = draw(st.lists(each, max_size=60))
    return [code for code, _, _ in asked], left, right, [first for _, first, _ in asked], [last for *_, last in asked]


def check(rows, count, asked):
    codes, left, right, first, last = asked
    rows = sorted(rows, key=lambda row: row[1])
    run = KeyRun(integers(c for c, _ in rows), count, integers(t for _, t in rows), 100 + np.arange(len(rows)))
    which, at = run.find(np.array(codes, np.int32), ProbeSpan(*map(integers, (left, right, first, last))))
    assert (which[1:] >= which[:-1]).all()
    assert sorted(zip(which.tolist(), at.tolist(), strict=True)) == [
        (probe, 100 + place)
        for probe, code in enumerate(codes)
        for place, (theirs, tick) in enumerate(rows)
        if code == theirs and left[first[probe]] <= tick <= right[last[probe]]
    ]


@pytest.mark.promise("joins")
@given(ROWS, probes())
def test_run_finds_what_a_linear_search_finds(rows, asked):
    check(rows, 6, asked)


def test_counted_run_finds_every_probe_of_few_ranges():
    rows = [(code, tick) for tick in range(-2, 11) for code in (0, 1, 3)]
    codes, first, last = zip(*product(range(-1, 6), range(3), range(3)), strict=True)
    check(rows, 4, (codes, [0, 2, 4], [3, 5, 8], first, last))


@given(ROWS, probes())
def test_tick_run_matches_by_tick_alone(rows, asked):
    codes, left, right, first, last = asked
    ticks = sorted(tick for _, tick in rows)
    run = TickRun(integers(ticks), 100 + np.arange(len(rows)))
    which, at = run.find(None, ProbeSpan(*map(integers, (left, right, first, last))))
    assert list(zip(which.tolist(), at.tolist(), strict=True)) == [
        (probe, 100 + place)
        for probe in range(len(codes))
        for place, tick in enumerate(ticks)
        if left[first[probe]] <= tick <= right[last[probe]]
    ]
