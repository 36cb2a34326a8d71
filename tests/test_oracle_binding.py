"""Two independent binders, of the oracle and of the planner, accept and reject the same texts."""

import pytest

from basestation.errors import CATALOGUE, ROAD
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from tests.oracles.generate import case
from tests.oracles.recompute import run
from tests.oracles.shortcuts import rejection_kind

KINDS = ("syntax", "name", "type", "static")
EXAMPLES = [code for code, entry in CATALOGUE.items() if not entry.schema and entry.kind in KINDS]


@pytest.mark.parametrize("code", EXAMPLES)
def test_catalogue_examples_fail_with_the_same_kind(code):
    assert rejection_kind(ROAD, CATALOGUE[code].example, until=0) == CATALOGUE[code].kind


@pytest.mark.promise("oracle")
def test_generated_queries_have_the_same_columns(counts, rng):
    for _ in range(counts(150, 1_500)):
        made = case(rng.randrange(2**32))
        (plan,) = bind_text(made.query, read_schema(made.schema))
        answer = run(made.schema, {}, [made.query], until=0).answers[0]
        assert plan.kind == answer.kind, made.query
        assert [(c.name, str(c.type)) for c in plan.root.columns] == answer.columns, made.query
