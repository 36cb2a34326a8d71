"""Generated queries over generated data give in Spark the current answer of the live engine."""

import re
from collections import Counter

import pytest

from acquisition.errors import InputError
from basestation.history.refusal import SparkRefusedError
from basestation.planner.plan import Plan
from basestation.replay.driver import NotExecutableError
from basestation.replay.inputs import read_recording
from basestation.replay.statements import read_catalog, read_statements
from gateway.diagnostics import DiagnosticError
from tests.history.in_spark import (
    answer_of,
    archive,
    compact,
    compiled,
    difference,
    engine_run,
    named_views,
    views,
)
from tests.oracles.generate import Case, case

LIGHT, HEAVY = 4_000, 12_000
"""Characters of a statement. Small counts leave out those above the first, as Spark takes most of its time to plan them; other counts
those above the second: of one with 24,000, five windows and converters in each other, Spark ran out of its heap of 1 GB."""


@pytest.mark.spark
@pytest.mark.timeout(3600)
@pytest.mark.promise("history-is-live", "placement")
def test_generated_queries_agree_with_engine(spark, tmp_path, rng, counts, tally):
    verdicts, seed, number = Counter(), rng.randrange(2**32), 0
    most = counts(LIGHT, HEAVY)
    while verdicts["agree"] < counts(28, 80, 4_000) or verdicts["agree with corrections"] < counts(12, 50, 1_000):
        number += 1
        verdict, report = judge(spark, case(f"{seed}.{number}"), tmp_path / str(number), rng, most)
        assert report is None, f"case {seed}.{number}: {report}"
        verdicts[verdict] += 1
    tally("generated queries in Spark", verdicts)


def largest_named(made):
    """The largest magnitude in the columns of floats that a case's query names."""
    versions = [rows for _, rows in made.inputs.get("kinds", ())]
    rows = [row for of in (*versions, *(of for name, of in made.inputs.items() if name != "kinds")) for row in of]
    named = [name for name in ("x", "far", "c") if re.search(rf"\b{name}\b", made.query)]
    return max((abs(row[name]) for row in rows for name in named if row.get(name) is not None), default=0.0)


def test_largest_value_is_that_of_a_named_column():
    rows = [{"x": -3.0, "far": 1e300, "c": None}, {"x": 2.5, "far": None, "c": -4.5}]
    for query, largest in (("SELECT SUM(x) AS s", 3.0), ("SELECT AVG(c), x FROM p", 4.5), ("SELECT n FROM p", 0.0)):
        assert largest_named(Case(0, "", {"p": rows, "kinds": [(0, rows)]}, query, [])) == largest


def judge(spark, made, root, rng, most=HEAVY):
    """(what became of a case, the first difference or None). Statements of more than `most` characters are not asked."""
    catalog = read_catalog(made.schema)
    try:
        recording = read_recording(catalog, made.inputs)
        statements = read_statements([(made.query, 0), *made.statements], recording.catalog)
        given, until = statements[0], max([recording.end(), *(each.clock or 0 for each in statements)])
        result, corrections = engine_run(recording, statements, until)
    except (DiagnosticError, InputError, NotExecutableError):
        return "refused by the engine", None
    if not isinstance(given.bound, Plan) or result.errors:
        return "fails in the engine", None
    try:
        named = named_views(recording.catalog, recording.versions, corrections)
        if len(compiled(given, named, until).text) > most:  # before there are files
            return "too long", None
        archive(recording, root, rng, corrections)
        if rng.random() < 0.5:
            compact(recording, root)
        query = compiled(given, views(spark, recording, root, ""), until)
        got = answer_of(spark, query)
    except SparkRefusedError:
        return "refused by Spark", None
    found = difference(result, given.number, query, got, largest_named(made))
    report = None if found is None else f"{found}\n{made.schema}\n{made.inputs}\n{made.queries}\n{query.text}"
    return "agree with corrections" if corrections else "agree", report


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT v + w, v - w, v * w, v / w, v % w, -v, ABS(v) FROM p [FROM NOW TO NOW SLIDE 1 SEC]",
        "SELECT v / -1, v / 2, v + w - w FROM p [FROM NOW TO NOW SLIDE 1 SEC]",
        "SELECT SUM(v), SUM(w), SUM(v + w), SUM(-v) FROM p [FROM NOW-2 TO NOW SLIDE 1 SEC]",
    ],
)
def test_integers_outside_64_bits_are_null_in_spark(spark, tmp_path, rng, query):
    ends = (2**63 - 1, -(2**63), 2**62, -(2**62), 3, 0)
    rows = [{"_arrival": i, "v": v, "w": w} for i, (v, w) in enumerate((v, w) for v in ends for w in (*ends, 1, -1, 2))]
    made = Case(0, "p: pushed (v:integer, w:integer)", {"p": rows}, query, [])
    assert judge(spark, made, tmp_path, rng) == ("agree", None)
