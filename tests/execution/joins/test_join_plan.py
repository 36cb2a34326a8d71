"""Join plans as values: which there are, which texts are none, and the text form."""

import pytest

from basestation.execution.joins.join_plan import (
    InvalidJoinPlanError,
    JoinPlan,
    enumerate_join_plans,
    make_default_plan,
    parse_join_plan,
)


@pytest.mark.parametrize(("inputs", "plans"), [(2, 1), (3, 8 + 3), (4, 1296 + 6 * 16 + 4 * 8 + 12 + 3)])
def test_enumerated_plans_are_complete_and_distinct(inputs, plans):
    found = list(enumerate_join_plans(inputs))
    assert len(found) == len(set(found)) == plans


def test_plans_range_from_no_state_to_all_state():
    sizes = {len(plan.kept) for plan in enumerate_join_plans(4)}
    assert sizes == {0, 1, 2}  # two inner nodes below the root is all that a join of four can keep


@pytest.mark.parametrize("inputs", [2, 3, 4])
def test_plan_text_parses_to_the_same_plan(inputs):
    for plan in enumerate_join_plans(inputs):
        assert parse_join_plan(str(plan)) == plan


def test_plan_text_lists_orders_and_kept_nodes():
    assert str(make_default_plan(3, [(0, 2)], kept=[(2, 0)])) == "0: 2, 1 | 1: 0+2 | 2: 0, 1 | keep 0+2"


@pytest.mark.parametrize(
    "text",
    [
        "", "0: 1", "0: 1 | 1: 1", "0: 1 | 2: 0", "0: 1, 2 | 1: 0, 2 | 2: 0", "0: 1, 2 | 1: 0, 2 | 2: 0+1",
        "0: 1, 2 | 1: 0, 2 | 2: 0, 1 | keep 0+1", "0: 2, 1 | 1: 0, 2 | 2: 0+1 | keep 0+1", "0: 1 | 1: 0 | keep 0+1",
        "0: 1, 2, 2 | 1: 0, 2 | 2: 0, 1", "0: x | 1: 0",
        "0: 1, 2, 3 | 1: 0, 2, 3 | 2: 0, 1, 3 | 3: 0, 1, 2 | keep 0+1, 1+2",
    ],
)  # fmt: skip
def test_invalid_plan_text_is_refused(text):
    with pytest.raises(InvalidJoinPlanError):
        parse_join_plan(text)


def test_only_materializable_inputs_are_kept():
    assert {plan.kept for plan in enumerate_join_plans(3, materializable={0, 2})} == {(), ((0, 2),)}


def test_default_plan_follows_equalities_without_state():
    plan = make_default_plan(4, [(0, 3), (3, 1), (1, 2)])
    assert plan.orders[0] == ((3,), (1,), (2,))
    assert plan.orders[2] == ((1,), (3,), (0,))
    assert plan.kept == ()


def test_default_plan_without_equalities_follows_from():
    assert make_default_plan(3, []) == JoinPlan((((1,), (2,)), ((0,), (2,)), ((0,), (1,))))
