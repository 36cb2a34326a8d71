"""A tuple has an index from when it enters its stream (semantics 14): what reads the index is revised then."""

import pytest

from tests.agreement.compare import agree

SCHEMA = "p: pushed (v:integer) wait 2 sec"
INDEXED = "(SELECT index AS x, v FROM p)"
QUERIES = {
    "passes then": f"SELECT v FROM {INDEXED} WHERE x > 0",
    "passes until then": f"SELECT v FROM (SELECT v FROM {INDEXED} WHERE x IS NULL) [FROM NOW-2 TO NOW SLIDE 1 SEC]",
    "has another group": f"SELECT x, COUNT(*) FROM {INDEXED} [FROM NOW-2 TO NOW SLIDE 10 SEC] GROUP BY x",
    "is emitted": f"DSTREAM(SELECT x, v FROM {INDEXED} [FROM NOW-2 TO NOW SLIDE 1 SEC])",
}


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_tuple_that_enters_after_its_answer_revises_it(text):
    """Tuples come out of order and wait for two seconds; windows that hold them are answered before."""
    come = ((10, 10), (11, 8), (20, 19), (20, 18))
    rows = [{"_arrival": arrival, "_tick": tick, "v": number} for number, (arrival, tick) in enumerate(come, 1)]
    outcome = agree(SCHEMA, {"p": rows}, [text])
    assert outcome.verdict == "agree", outcome.report
    assert outcome.non_empty
