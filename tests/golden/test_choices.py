"""Every golden query has the same answer under each choice of `choices`."""

from functools import cache

import pytest

from tests.golden.case_run import case_statements
from tests.golden.choices import CHOICES, ChoiceCase
from tests.golden.expectations import QUERIES
from tests.golden.golden_file import golden_files, read_golden
from tests.golden.recordings import for_engine

GOLDEN = [read_golden(path) for path in golden_files(QUERIES)]
CASES = {
    f"{golden.path.stem}:{case.name}": (golden, case)
    for golden in GOLDEN
    for case in golden.cases
    if case.word == "query" and not case.expected["answer"].startswith(("later: ", "refused: "))
}


@cache
def choice_case(name):
    golden, case = CASES[name]
    others = tuple(c.text for c in golden.cases if c.word == "query")
    return ChoiceCase(golden.schema, for_engine(golden), case_statements(golden, case).statements, others)


def judge(name, choice, rng):
    what = choice_case(name).difference(choice, rng)
    assert what is None, f"{choice.name}: {what}"


@pytest.mark.promise("live-is-replay")
@pytest.mark.sample("name", 160)
@pytest.mark.parametrize("name", CASES)
def test_query_answers_equally_under_random_choice(name, rng):
    case = choice_case(name)
    judge(name, rng.choice([choice for choice in CHOICES if choice.suits(case)]), rng)


@pytest.mark.promise("live-is-replay")
@pytest.mark.sample("name", 8)
@pytest.mark.parametrize("name", CASES)
def test_query_answers_equally_under_every_choice(name, rng):
    case = choice_case(name)
    for choice in CHOICES:
        if choice.suits(case):
            judge(name, choice, rng)


def test_each_choice_applies_to_many_queries():
    for choice in CHOICES:
        assert sum(choice.suits(choice_case(name)) for name in sorted(CASES)[::10]) > 15, choice.name
