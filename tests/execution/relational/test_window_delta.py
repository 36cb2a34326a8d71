"""The bag difference of two windows from the tuples that came and went, against whole windows.

window before   [====|========]
window now           |========[====]
                went   stayed   came
"""

import pytest

from basestation.execution import content_evaluator
from tests.execution.joins.test_join_operator import deliveries, play

SHAPES = [
    "SELECT v, f FROM a [FROM NOW-4 TO NOW SLIDE 2 SEC] WHERE k < 2",
    "SELECT v, f FROM a [FROM NOW-4 TO NOW-1 SLIDE 1 SEC]",
    "SELECT v FROM a [FROM NOW-1 TO NOW SLIDE 5 SEC]",  # windows that have nothing in common
    "SELECT v, k FROM b [FROM NOW-6 TO NOW SLIDE 1 SEC]",  # late append
    "SELECT v, k FROM a [FROM NOW-4 TO NOW SLIDE 1 ROW]",
    "SELECT k + v AS s FROM b [FROM NOW-5 TO NOW-2 SLIDE 3 ROWS] WHERE v > 0",
    "SELECT k FROM a [FROM NOW-1 TO NOW SLIDE 4 ROWS]",
    "SELECT v FROM a [UNBOUNDED SLIDE 2 SEC] FOR 20 SEC",
]


@pytest.mark.promise("late-readings")
@pytest.mark.parametrize("kind", ["ISTREAM({})", "DSTREAM({})"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sliding_delta_equals_whole_window_difference(kind, shape, rng, counts, monkeypatch):
    select, found, more = shape.partition(" FOR ")
    text = kind.format(select) + found + more
    said = 0
    for _ in range(counts(2, 20)):
        given = list(deliveries(rng, 24, size=6))
        with monkeypatch.context() as patched:
            patched.setattr(content_evaluator, "make_sliding_delta", lambda *_: None)
            expected = play(text, given, tidy_every=3)
        assert play(text, given, tidy_every=3) == expected
        said += sum(map(len, expected))
    assert said
