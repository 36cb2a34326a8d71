"""Aggregates against fractions, group by group: batches, slices, order and undo never change a bit."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from innet.aggregates import create_aggregate
from innet.aggregates.grouping import order_by_group
from innet.aggregates.protocol import StateField
from tests.innet.aggregate_fixtures import (
    MERGING,
    N_GROUPS,
    SCALE,
    UNDOING,
    VALUES,
    answers,
    arrays,
    check,
    dumped_bytes,
    every_type,
    expected,
    fold,
    made,
    names_for,
    numeric_type,
    rows_of,
    same,
)
from tests.oracles import aggregates as oracle
from tests.oracles.values import Multiple

# --- merging aggregates ----------------------------------------------------------------------------------------------


@every_type
@given(st.data())
def test_aggregate_agrees_with_oracle(type_, data):
    rows = data.draw(rows_of(type_))
    for name in names_for(type_):
        aggregate = made(name, type_)
        check(name, type_, rows, aggregate.finalize(fold(aggregate, type_, rows)))
        check(name, type_, rows, aggregate.evaluate(N_GROUPS, **arrays(type_, rows)))


@pytest.mark.promise("exact-aggregates")
@every_type
@given(st.data())
def test_result_is_independent_of_batches_and_merges(type_, data):
    """Rows are cut into slices, which merge in any tree that keeps their order."""
    rows = data.draw(rows_of(type_))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    pieces = [rows[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    for name in names_for(type_):
        aggregate = made(name, type_)
        whole = fold(aggregate, type_, rows)
        batches = aggregate.init(N_GROUPS)
        for piece in pieces:
            fold(aggregate, type_, piece, batches)
        slices = [fold(aggregate, type_, piece) for piece in pieces]
        while len(slices) > 1:
            at = data.draw(st.integers(0, len(slices) - 2))
            aggregate.merge(slices[at], slices.pop(at + 1), np.arange(N_GROUPS))
        for state in (batches, slices[0]):
            assert answers(aggregate.finalize(state)) == answers(aggregate.finalize(whole))
            assert dumped_bytes(aggregate, state) == dumped_bytes(aggregate, whole)
        check(name, type_, rows, aggregate.finalize(batches))


@every_type
@given(st.data(), st.lists(st.integers(0, 1), min_size=N_GROUPS, max_size=N_GROUPS))
def test_many_groups_merge_into_one(type_, data, into):
    """Groups merge in order, which matters for FIRST and LAST of rows with equal keys only."""
    rows = data.draw(rows_of(type_))
    together = sorted([(into[group], group, *rest) for group, *rest in rows], key=lambda row: row[1])
    together = [(group, *rest) for group, _, *rest in together]
    for name in names_for(type_):
        aggregate = made(name, type_)
        state = aggregate.init(N_GROUPS)
        aggregate.merge(state, fold(aggregate, type_, rows), np.array(into, np.int64))
        check(name, type_, together, aggregate.finalize(state))


@every_type
@given(st.data(), st.integers(1, 5))
def test_reduced_segments_equal_merged_groups(type_, data, rows):
    for name in names_for(type_):
        aggregate = made(name, type_)
        if not aggregate.is_mergeable or aggregate.folds is None:
            continue
        states = [fold(aggregate, type_, data.draw(rows_of(type_))) for _ in range(rows)]
        found = aggregate.reduce_segments(
            aggregate.concatenate(states),
            N_GROUPS,
            rows,
            lambda fold, column, blank: fold.reduce(column.reshape(rows, -1), axis=0),
        )
        for other in states[1:]:
            aggregate.merge(states[0], other, np.arange(N_GROUPS))
        assert answers(aggregate.finalize(found)) == answers(aggregate.finalize(states[0]))
        assert dumped_bytes(aggregate, found) == dumped_bytes(aggregate, states[0])


@pytest.mark.promise("exact-aggregates")
@every_type
@given(st.data())
def test_rows_without_groups_are_groups_of_their_own(type_, data):
    rows = data.draw(rows_of(type_))
    given_ = arrays(type_, rows) | {"groups": None}
    for name in names_for(type_):
        aggregate = made(name, type_)
        if not aggregate.is_mergeable:
            continue
        alone = aggregate.init(len(rows))
        aggregate.update(alone, **arrays(type_, rows) | {"groups": np.arange(len(rows))})
        found = aggregate.aggregate_rows(np.ones(len(rows), np.int64), **given_)
        assert answers(aggregate.finalize(found)) == answers(aggregate.finalize(alone))
        assert dumped_bytes(aggregate, found) == dumped_bytes(aggregate, alone)


@pytest.mark.promise("exact-aggregates")
@every_type
@given(st.data(), st.randoms(use_true_random=False))
def test_result_is_independent_of_row_order(type_, data, random):
    rows = data.draw(rows_of(type_))
    shuffled = random.sample(rows, len(rows))
    for name in names_for(type_):
        if name not in ("FIRST", "LAST"):
            aggregate = made(name, type_)
            one, other = fold(aggregate, type_, rows), fold(aggregate, type_, shuffled)
            assert answers(aggregate.finalize(one)) == answers(aggregate.finalize(other))
            assert dumped_bytes(aggregate, one) == dumped_bytes(aggregate, other)


@pytest.mark.promise("exact-aggregates")
@every_type
@given(st.data())
def test_undo_restores_earlier_state(type_, data):
    rows = data.draw(rows_of(type_))
    gone = data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=len(rows))) if rows else set()
    kept = [row for i, row in enumerate(rows) if i not in gone]
    taken = [rows[i] for i in sorted(gone)]
    weights = np.array([1] * len(rows) + [-1] * len(taken), np.int64)
    for name in names_for(type_, UNDOING):
        aggregate = made(name, type_)
        assert aggregate.can_undo
        undone = fold(aggregate, type_, rows)
        found = arrays(type_, taken)
        aggregate.undo(undone, found["groups"], found["values"], found["valid"])
        weighted = fold(aggregate, type_, rows + taken, weights=weights)
        early = fold(aggregate, type_, taken, weights=-np.ones(len(taken), np.int64))
        fold(aggregate, type_, rows, early)
        for state in (undone, weighted, early):
            check(name, type_, kept, aggregate.finalize(state))
            assert dumped_bytes(aggregate, state) == dumped_bytes(aggregate, fold(aggregate, type_, kept))


@pytest.mark.promise("exact-aggregates")
@pytest.mark.parametrize("name", ["MIN", "MAX", "FIRST", "LAST"])
def test_undo_without_support_raises_value_error(name):
    aggregate = made(name, "integer")
    assert not aggregate.can_undo
    with pytest.raises(ValueError, match=name):
        fold(aggregate, "integer", [(0, 1, 0, 0)], weights=np.array([-1]))
    check(name, "integer", [(0, 1, 0, 0)], aggregate.finalize(fold(aggregate, "integer", [(0, 1, 0, 0)])))


@every_type
@given(st.data(), st.lists(st.integers(0, N_GROUPS - 1), max_size=5), st.integers(0, 3))
def test_states_grow_take_concatenate_dump_and_load(type_, data, positions, more):
    """The resulting states can be used further."""
    rows = data.draw(rows_of(type_))
    for name in names_for(type_):
        aggregate = made(name, type_)
        state = fold(aggregate, type_, rows)
        plain = answers(aggregate.finalize(state))
        nothing = answers(aggregate.finalize(aggregate.init(1)))
        loaded = aggregate.load(pickle.loads(pickle.dumps(aggregate.dump(state))))
        assert answers(aggregate.finalize(loaded)) == plain
        assert dumped_bytes(aggregate, loaded) == dumped_bytes(aggregate, state)

        taken = aggregate.take(state, np.array(positions, np.int64))
        assert answers(aggregate.finalize(taken)) == [plain[p] for p in positions]
        masked = aggregate.take(state, np.array([True, False, True]))
        assert answers(aggregate.finalize(masked)) == [plain[0], plain[2]]

        beside = aggregate.concatenate([loaded, taken, state])
        assert answers(aggregate.finalize(beside)) == plain + [plain[p] for p in positions] + plain
        fold(aggregate, type_, rows, beside)  # leaves the original state unchanged
        assert answers(aggregate.finalize(state)) == plain

        aggregate.grow(state, N_GROUPS + more)
        assert answers(aggregate.finalize(state)) == plain + nothing * more
        fold(aggregate, type_, [(N_GROUPS + more - 1, *row[1:]) for row in rows], state)
        if more:
            wanted = expected(name, type_, rows)
            if name != "SUM" or type_ != "integer":
                assert same(answers(aggregate.finalize(state))[-1], wanted)
        assert aggregate.nbytes(state) > 0


@every_type
def test_empty_groups_and_nulls(type_):
    """semantics 5.6: COUNT of an empty group is 0, other aggregates are null. Nulls do not count."""
    for name in names_for(type_):
        aggregate = made(name, type_)
        blank = 0 if name == "COUNT" else None
        assert answers(aggregate.finalize(aggregate.init(2))) == [blank, blank]
        assert answers(aggregate.finalize(fold(aggregate, type_, [(1, None, 0, 0)]))) == [blank] * 3
        none = aggregate.init(0)
        assert answers(aggregate.finalize(none)) == []
        aggregate.update(none, **arrays(type_, []))
        state = fold(aggregate, type_, [(1, None, 0, 0)])
        aggregate.merge(state, none, np.zeros(0, np.int64))
        assert answers(aggregate.finalize(aggregate.concatenate([none, state]))) == [blank] * 3


def test_count_star_needs_no_values():
    aggregate = made("COUNT", "integer")
    state = aggregate.init(2)
    aggregate.update(state, np.array([0, 1, 1]))
    aggregate.undo(state, np.array([0]))
    assert answers(aggregate.finalize(state)) == [0, 2]


# --- extremes --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("exact-aggregates")
@pytest.mark.parametrize(
    "values, total, mean",
    [
        ([1e308, 1.0, -1e308], 1.0, 1 / 3),
        ([1e308, 1e308], None, 1e308),
        ([1.7976931348623157e308] * 7, None, 1.7976931348623157e308),
        ([5e-324, 5e-324, 5e-324], 1.5e-323, 5e-324),
        ([5e-324, 0.0], 5e-324, 0.0),  # half of the smallest: a tie, to even
        ([-5e-324, 0.0], -5e-324, 0.0),
        ([1.0, 2.0**-53], 1.0, 0.5),  # a tie, to even
        ([1.0, 2.0**-53, 2.0**-1074], 1.0000000000000002, 0.33333333333333337),
        ([2.0**53, 1.0], 2.0**53, 2.0**52 + 0.5),
        ([-0.0, -0.0], 0.0, 0.0),
        ([0.1] * 10, 1.0, 0.1),
    ],
)
def test_float_sums_are_rounded_once(values, total, mean):
    rows = [(0, value, 0, 0) for value in values]
    for name, wanted in (("SUM", total), ("AVG", mean)):
        aggregate = made(name, "float")
        values, valid = aggregate.finalize(fold(aggregate, "float", rows))
        assert answers((values, valid))[0] == wanted
        assert math.copysign(1, values[0]) == 1 or wanted < 0
        check(name, "float", rows, (values, valid))


def test_roots_are_rounded_once():
    """Values halfway between two doubles, and above that by less than 2^-106."""
    t = 2**53 + 1
    rows = [(0, -t, 0, 0), (0, t, 0, 0), *((1, v, 0, 0) for v in (-t - 1, t + 1, 1 - t, t - 1))]
    aggregate = made("STDEV", "integer")
    assert answers(aggregate.finalize(fold(aggregate, "integer", rows))) == [2.0**53, 2.0**53 + 2, None]


@pytest.mark.parametrize("name, values, wanted", [("FIRST", "ab", "a"), ("LAST", "ab", "b"), ("FIRST", "ba", "b")])
@pytest.mark.parametrize("apart", [True, False])
def test_first_and_last_of_equal_keys_follow_batch_order(name, values, wanted, apart):
    aggregate = made(name, "string")
    rows = [(0, value, 1, 1) for value in values]
    state = aggregate.init(N_GROUPS)
    for batch in [rows[:1], rows[1:]] if apart else [rows]:
        fold(aggregate, "string", batch, state)
    assert answers(aggregate.finalize(state))[0] == wanted


@pytest.mark.parametrize("name", ["MIN", "MAX", "SUM", "AVG", "MEDIAN"])
def test_negative_zero_becomes_zero(name):
    values, _ = create_aggregate(name, "float").evaluate(1, np.zeros(2, np.int64), np.array([-0.0, -0.0]))
    assert math.copysign(1, values[0]) == 1


def test_integer_average_does_not_overflow():
    rows = [(0, 2**63 - 1, 0, 0)] * 5 + [(1, -(2**63), 0, 0)] * 5 + [(2, 2**53 + 1, 0, 0)]
    for name, wanted in (("AVG", [2.0**63, -(2.0**63), 2.0**53]), ("STDEV", [0.0, 0.0, 0.0])):
        aggregate = made(name, "integer")
        assert answers(aggregate.finalize(fold(aggregate, "integer", rows))) == wanted


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("name", ["SUM", "VARIANCE"])
def test_infinite_value_is_refused(name, number):
    with pytest.raises(ValueError, match="finite"):
        fold(made(name, "float"), "float", [(0, number, 0, 0), (0, 1.0, 0, 0)])


def kinds_of_values(n, random):
    """Return (type, scale, values): some that rounding decides quickly, some that need exact arithmetic."""
    return {
        "near": ("float", None, 20 + random.standard_normal(n)),
        "far": ("float", None, random.standard_normal(n) * 10.0 ** random.integers(-300, 300, n)),
        "close": ("float", None, 1e6 + random.standard_normal(n) * 1e-6),
        "ties": ("float", None, 2.0**53 + random.integers(-5, 6, n) * 2.0),
        "constant": ("float", None, np.repeat(0.1, n)),
        "few": ("integer", None, random.integers(-50, 50, n)),
        "large": ("integer", None, random.integers(-(2**62), 2**62, n)),
        "cents": ("scaled", 2, random.integers(-4000, 12500, n)),
        "fine": ("scaled", 25, random.integers(-(10**9), 10**9, n)),
    }


@pytest.mark.parametrize("kind", kinds_of_values(0, np.random.default_rng(0)))
def test_many_groups_agree_with_fractions(kind, rng, counts):
    random = np.random.default_rng(rng.randrange(2**32))
    n, n_groups = counts(2000, 30000), counts(500, 7500)
    type_, scale, values = kinds_of_values(n, random)[kind]
    groups = random.integers(0, n_groups, n)
    exact = [Fraction(value, 10 ** (scale or 0)) for value in values.tolist()] if type_ == "scaled" else values.tolist()
    per_group = [[] for _ in range(n_groups)]
    for group, value in zip(groups.tolist(), exact, strict=True):
        per_group[group].append(value)
    for name in ("SUM", "AVG", "VARIANCE", "STDEV"):
        if (name, kind) == ("SUM", "large"):
            continue  # beyond 64 bits
        aggregate = create_aggregate(name, type_, scale=scale)
        found = answers(aggregate.evaluate(n_groups, groups, values))
        assert all(map(same, found, [oracle.PLAIN[name](group) for group in per_group])), name
        sparse = aggregate.init(n_groups)
        for start in range(0, n, 20):  # few rows for many groups take another code path
            aggregate.update(sparse, groups[start : start + 20], values[start : start + 20])
        assert answers(aggregate.finalize(sparse)) == found


# --- aggregates that keep readings ------------------------------------------------------------------------------------


@numeric_type
@given(st.data())
def test_quantile_interpolates_exactly(type_, data):
    rows = data.draw(rows_of(type_))
    share = data.draw(st.sampled_from([0.0, 1.0, 0.5, 0.25, 0.1, 0.99, 1e-9]) | st.floats(0, 1))
    for name, q in (("MEDIAN", 0.5), ("QUANTILE", share)):
        aggregate = made(name, type_, share=q if name == "QUANTILE" else None)
        assert (aggregate.is_mergeable, aggregate.result, aggregate.name) == (False, "float", name)
        found = answers(aggregate.evaluate(N_GROUPS, **arrays(type_, rows)))
        for group in range(N_GROUPS):
            values = [value for g, value, _, _ in rows if g == group and value is not None]
            values = [Multiple(value, SCALE) for value in values] if type_ == "scaled" else values
            assert same(found[group], oracle.quantile(values, q))


@pytest.mark.parametrize(
    "type_, scale, values",
    [
        ("float", None, [1e308, 1.7e308]),
        ("float", None, [5e-324, 1e-323]),
        ("integer", None, [2**53 + 1, 2**53 + 2]),
        ("integer", None, [2**63 - 1, -(2**63)]),
        ("integer", None, [-(2**53) - 1, 2]),
        *(("scaled", 3, [-(2**63), n]) for n in range(1000, 1060)),
        ("integer", None, [2**63 - 1, 2**63 - 1]),
        *(("scaled", 25, [3 * n, 3 * n + 1]) for n in range(1, 60)),
        *(("scaled", 25, [n, n]) for n in range(1, 60)),
    ],
)
def test_median_of_extreme_values(type_, scale, values):
    found, _ = create_aggregate("MEDIAN", type_, scale=scale).evaluate(
        1, np.zeros(len(values), np.int64), np.array(values)
    )
    exact = values if scale is None else [Fraction(value, 10**scale) for value in values]
    assert found.tolist() == [oracle.quantile(exact, 0.5)]


@every_type
@given(st.data())
def test_count_distinct_counts_values_once(type_, data):
    rows = data.draw(rows_of(type_))
    aggregate = made("COUNT", type_, distinct=True)
    assert (aggregate.is_mergeable, aggregate.result) == (False, "integer")
    found = answers(aggregate.evaluate(N_GROUPS, **arrays(type_, rows)))
    for group in range(N_GROUPS):
        values = [value for g, value, _, _ in rows if g == group and value is not None]
        assert found[group] == oracle.count_distinct(values)


@example([2**33 + 1, 1, 2**17, 2**33, 2**34])
@given(st.lists(st.integers(0, 2**40) | st.integers(0, 3) | st.integers(2**16 - 2, 2**16 + 2), max_size=50))
def test_rows_are_ordered_by_group(groups):
    assert order_by_group(np.array(groups, np.int64)).tolist() == sorted(range(len(groups)), key=groups.__getitem__)


# --- making and laying out -------------------------------------------------------------------------------------------


def test_aggregate_names_its_result_type():
    def result(name, type_):
        return made(name, type_).result

    assert [result("SUM", t) for t in ("integer", "float", "scaled")] == ["integer", "float", "float"]
    assert {result(name, t) for name in ("AVG", "STDEV") for t in ("integer", "float", "scaled")} == {"float"}
    assert [result("MIN", t) for t in sorted(VALUES)] == sorted(VALUES)
    assert made("LAST", "scaled").scale == SCALE
    assert {result("COUNT", t) for t in VALUES} == {"integer"}
    assert made("SUM", "time").result == "integer"


@pytest.mark.parametrize(
    "name, type_, more",
    [
        ("SUM", "string", {}),
        ("MEDIAN", "string", {}),
        ("SUM", "scaled", {}),
        ("SUM", "integer", {"scale": 2}),
        ("SUM", "integer", {"distinct": True}),
        ("QUANTILE", "integer", {}),
        ("MEDIAN", "integer", {"share": 0.5}),
    ],
)
def test_invalid_aggregate_raises_value_error(name, type_, more):
    with pytest.raises(ValueError):
        create_aggregate(name, type_, **more)


LAYOUTS = {
    "COUNT": "count:32",
    "SUM": "count:32 sum:64",
    "AVG": "count:32 sum:64",
    "VARIANCE": "count:32 sum:64 squares:96",
    "STDEV": "count:32 sum:64 squares:96",
    "MIN": "seen:1 value:32",
    "MAX": "seen:1 value:32",
    "FIRST": "seen:1 tick:64 site:16 value:32",
    "LAST": "seen:1 tick:64 site:16 value:32",
}


@pytest.mark.parametrize("name", MERGING)
def test_layouts_match_firmware(name):
    written = tuple(StateField(n, int(bits)) for n, bits in (field.split(":") for field in LAYOUTS[name].split()))
    assert made(name, "integer").layout() == made(name, "scaled").layout() == written
    assert made(name, "float").layout() == (written if name == "COUNT" else None)
    assert made("MEDIAN", "integer").layout() is None
    assert made("COUNT", "integer", distinct=True).layout() is None
