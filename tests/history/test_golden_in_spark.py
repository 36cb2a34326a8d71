"""The golden queries give in Spark, over the archived input, the current answer of the live engine."""

from collections import Counter

import pytest

from basestation.history.refusal import SparkRefusedError
from tests.conftest import ROOT
from tests.history.golden_history import golden_queries
from tests.history.in_spark import (
    answer_of,
    archive,
    compiled,
    difference,
    engine_answers,
    is_corrected,
    named_views,
    views,
)

MOST_REFUSED = 0.095
"""The share of golden queries that Spark may refuse; docs/history.md lists why."""


def refusal(query):
    """Why a golden query is refused before it runs; None if it is not."""
    statements = query.statements()
    if not all(given.is_query for given in statements):
        return "the case corrects the recording"
    if is_corrected(query.recording):
        return "the recording has corrections"
    try:
        for given in statements:
            compiled(given, named_views(query.recording.catalog, query.recording.versions), query.until())
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
    queries = [query for query in golden_queries() if refusal(query) is None]
    chosen = rng.sample(queries, counts(20, len(queries)))
    sources, verdicts = {}, Counter()
    for query in chosen:
        root = tmp_path / query.golden.path.stem
        if root not in sources:
            archive(query.recording, root, rng)
            sources[root] = views(spark, query.recording, root, f"{root.name}_")
        statements, until = query.statements(), query.until()
        result = engine_answers(query.recording, statements, until)
        for given in statements:
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
