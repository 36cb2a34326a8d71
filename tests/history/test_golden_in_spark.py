"""The golden queries give in Spark, over the archived input, the current answer of the live engine."""

from collections import Counter
from itertools import islice

import pytest

from basestation.history.refusal import SparkRefusedError
from tests.conftest import ROOT
from tests.history.golden_history import golden_queries
from tests.history.in_spark import (
    answer_of,
    archive,
    compact,
    compiled,
    corrections_of,
    difference,
    engine_answers,
    named_views,
    views,
)

MOST_REFUSED = 0.05
"""The share of golden queries that Spark may refuse; docs/history.md lists why."""


def refusal(query):
    """Why a golden query is refused before it runs; None if it is not."""
    statements = query.statements()
    corrected = corrections_of(query.recording, statements, query.until())
    try:
        for given in statements:
            if given.is_query:
                sources = named_views(query.recording.catalog, query.recording.versions, corrected)
                compiled(given, sources, query.until())
    except SparkRefusedError as why:
        return str(why)
    return None


@pytest.mark.promise("history-is-live")
def test_few_golden_queries_are_refused(tally):
    reasons = [refusal(query) for query in golden_queries()]
    tally("golden queries in Spark", Counter(reason or "answered" for reason in reasons))
    refused = sum(reason is not None for reason in reasons)
    assert len(reasons) >= 470
    assert refused <= MOST_REFUSED * len(reasons)
    page = " ".join((ROOT / "docs" / "history.md").read_text().split())
    assert f"Of the {len(reasons)} golden queries it answers {len(reasons) - refused} and refuses {refused}," in page


@pytest.mark.spark
@pytest.mark.timeout(1800)
@pytest.mark.promise("history-is-live", "placement")
def test_golden_queries_agree_with_engine(spark, tmp_path, rng, counts, tally):
    queries = list(golden_queries())
    rng.shuffle(queries)
    compiling = (query for query in queries if refusal(query) is None)
    sources, verdicts = {}, Counter()
    for query in islice(compiling, counts(12, None)):
        statements, until = query.statements(), query.until()
        has_statements = not all(given.is_query for given in statements)
        root = tmp_path / (query.name.replace(":", "_") if has_statements else query.golden.path.stem)
        if root not in sources:
            archive(query.recording, root, rng, corrections_of(query.recording, statements, until))
            if rng.random() < 0.5:
                compact(query.recording, root)
            sources[root] = views(spark, query.recording, root, f"{root.name}_")
        result = engine_answers(query.recording, statements, until)
        for given in [given for given in statements if given.is_query]:
            made = compiled(given, sources[root], until)
            try:
                got = answer_of(spark, made)
            except SparkRefusedError:
                verdicts["refused for its data"] += 1
                continue
            verdicts["agree"] += 1
            found = difference(result, given.number, made, got)
            assert found is None, f"{query.name}: {found}\n{made.text}"
    tally("answers of golden queries in Spark", verdicts)
    assert verdicts["agree"] >= 0.95 * verdicts.total()
