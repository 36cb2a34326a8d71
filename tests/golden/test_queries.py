"""Golden queries: plans, answers and errors match the files, and answers match the oracle."""

import pytest

from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.plan import Plan
from basestation.planner.rewriter import rewrite
from tests.algebra.invariants import find_violations
from tests.golden.case_run import CONFIRMED, answer_of, compare_with_oracle, ledger_of, ordered_rows
from tests.golden.expectations import QUERIES, plan_of, refusal_of
from tests.golden.golden_file import golden_files, read_golden

GOLDEN = [read_golden(path) for path in golden_files(QUERIES)]


def _cases(word):
    return [pytest.param(g, c, id=f"{g.path.stem}:{c.name}") for g in GOLDEN for c in g.cases if c.word == word]


@pytest.mark.promise("explain")
@pytest.mark.parametrize(("golden", "case"), _cases("query"))
def test_query_plan_matches_golden_file(golden, case):
    assert plan_of(golden, case) == case.expected.get("plan")


@pytest.mark.promise("explain")
@pytest.mark.parametrize(("golden", "case"), _cases("query"))
def test_plan_invariants_hold_after_each_rewrite(golden, case):
    for bound in bind_text(case.text, read_schema(golden.schema)):
        if isinstance(bound, Plan):
            assert find_violations(bound.root) == []
            better, steps = rewrite(bound)
            for step in steps:
                assert find_violations(step.after) == [], step.rule
            assert [(c.label, c.type) for c in better.root.columns] == [(c.label, c.type) for c in bound.root.columns]


@pytest.mark.promise("oracle")
@pytest.mark.parametrize(("golden", "case"), _cases("query"))
def test_query_answer_matches_golden_file(golden, case):
    assert answer_of(golden, case) == case.expected.get("answer")


@pytest.mark.promise("oracle")
@pytest.mark.parametrize(("golden", "case"), _cases("query"))
def test_engine_agrees_with_oracle(golden, case):
    outcome = compare_with_oracle(golden, case)
    later = case.expected["answer"].startswith("later: ")
    assert outcome.verdict in (("not yet", "not covered") if later else CONFIRMED), outcome.report or outcome.what


@pytest.mark.parametrize(("golden", "case"), [c for c in _cases("query") if "ORDER BY" in c.values[1].text])
def test_rows_follow_order_by(golden, case):
    got, expected = ordered_rows(golden, case)
    assert got == expected


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: g.path.stem)
def test_ledger_matches_golden_file(golden):
    assert ledger_of(golden) == next(c.expected[""] for c in golden.cases if c.word == "ledger")


@pytest.mark.promise("errors-point")
@pytest.mark.parametrize(("golden", "case"), _cases("error"))
def test_error_matches_golden_file(golden, case):
    assert refusal_of(golden, case) == case.expected.get("")


def test_golden_files_have_promised_number_of_cases():
    assert len(_cases("query")) >= 150
    assert len(_cases("error")) >= 100


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: g.path.stem)
def test_golden_file_roundtrips(golden):
    assert golden.render() == golden.path.read_text(encoding="utf-8")
