"""Generated queries over generated data give in Spark the current answer of the live engine."""

from collections import Counter

import pytest

from acquisition.errors import InputError
from basestation.history.refusal import SparkRefusedError
from basestation.planner.plan import Plan
from basestation.replay.driver import NotExecutableError
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog, read_statements
from gateway.diagnostics import DiagnosticError
from tests.history.in_spark import answer_of, archive, compiled, difference, engine_answers, is_corrected, views
from tests.oracles.generate import case


@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.promise("history-is-live", "placement")
def test_generated_queries_agree_with_engine(spark, tmp_path, rng, counts, tally):
    verdicts, seed, number = Counter(), rng.randrange(2**32), 0
    while verdicts["agree"] < counts(8, 80):
        number += 1
        verdict, report = judge(spark, case(f"{seed}.{number}"), tmp_path / str(number), rng)
        assert report is None, f"case {seed}.{number}: {report}"
        verdicts[verdict] += 1
    tally("generated queries in Spark", verdicts)


def judge(spark, made, root, rng):
    """(what became of a case, the first difference or None)."""
    catalog = read_catalog(made.schema)
    try:
        recording = read_recording(catalog, made.inputs)
        [given] = read_statements([(made.query, 0)], recording.catalog)
        until = recording.end()
        result = engine_answers(recording, [given], until)
    except (DiagnosticError, InputError, NotExecutableError):
        return "refused by the engine", None
    if not isinstance(given.bound, Plan) or result.errors:
        return "fails in the engine", None
    if is_corrected(recording):
        return "has corrections", None
    try:
        archive(recording, root, rng)
        query = compiled(given, views(spark, recording, root, ""), until)
        got = answer_of(spark, query)
    except SparkRefusedError:
        return "refused by Spark", None
    found = difference(result, given.number, query, got)
    report = None if found is None else f"{found}\n{made.schema}\n{made.inputs}\n{made.query}\n{query.text}"
    return "agree", report
