"""Slices over unions have their groups in the order in which the union has their first tuples (semantics 6.4, 10.6)."""

import pytest

from basestation.algebra.node import walk
from basestation.algebra.slice_aggregation import SliceAggregation
from basestation.planner.binder import bind_text
from basestation.planner.catalog import read_schema
from basestation.planner.rewriter import rewrite
from tests.agreement.compare import agree
from tests.conftest import count_of
from tests.execution.query_generators import LoopMaker, looping

PUSHED, SENSED = "SELECT n, s, x FROM hits", "SELECT n, s, x FROM road"
WINDOW = "[FROM NOW-20 TO NOW SLIDE 3 SEC]"
CASES = {
    "equal arrivals in two parts": (4578, f"{PUSHED} UNION ALL {SENSED}", "[UNBOUNDED SLIDE 4 SEC]", ""),
    "a union of a union": (
        17,
        f"SELECT q.n, q.s, q.x FROM ({PUSHED} UNION ALL {SENSED}) AS q UNION ALL {SENSED}",
        "[FROM NOW-4 TO NOW SLIDE 4 SEC]",
        "",
    ),
    "a revision that passes a selection above": (5, f"{SENSED} UNION ALL {SENSED}", WINDOW, "WHERE a.n > 1"),
    "a revision that passes a selection below": (
        5,
        f"{SENSED} WHERE n > 1 UNION ALL {SENSED} WHERE n > 1",
        WINDOW,
        "",
    ),
}


@pytest.mark.promise("oracle")
@pytest.mark.parametrize("what", CASES)
def test_groups_over_union_stand_in_its_order(what):
    seed, union, window, where = CASES[what]
    text = f"SELECT a.s, COUNT(*) FROM ({union}) AS a {window} {where} GROUP BY a.s"
    made = looping(seed)
    [plan] = bind_text(text, read_schema(made.schema))
    assert any(isinstance(node, SliceAggregation) for node in walk(rewrite(plan)[0].root))
    outcome = agree(made.schema, made.inputs, [text])
    assert outcome.verdict == "agree", outcome.report


class UnionMaker(LoopMaker):
    """Groups over unions of two or three parts, in windows of time and of for-loops."""

    def select(self):
        return self.pick(PUSHED, SENSED, f"{PUSHED} WHERE n > 0", f"{SENSED} WHERE n > 0")

    def union(self):
        parts = [self.select() for _ in range(self.pick(2, 2, 3))]
        if self.chance(0.2):
            parts[0] = f"SELECT q.n, q.s, q.x FROM ({self.select()} UNION ALL {self.select()}) AS q"
        return " UNION ALL ".join(parts)

    def text(self):
        window = self.pick(
            "[UNBOUNDED SLIDE 2 SEC]", "[FROM NOW-12 TO NOW SLIDE 3 SEC]", "[FROM NOW-9 TO NOW-2 SLIDE 1 SEC]", ""
        )
        loop = "" if window else "FOR (t = ST; t < ST + 12; t += 2) { WindowIs(a, t - 5, t); }"
        where, group = self.pick("", "", "WHERE a.n > 1", "WHERE a.x < 1"), self.pick("a.s", "a.n", "a.n, a.s")
        return f"SELECT {group}, SUM(a.n), MIN(a.x) FROM ({self.union()}) AS a {window} {where} GROUP BY {group} {loop}"


@pytest.mark.promise("oracle")
@pytest.mark.parametrize("shard", range(count_of(2, 10)))
def test_generated_groups_over_unions_agree_with_oracle(shard, rng):
    for _ in range(count_of(5, 10)):
        seed = rng.randrange(2**32)
        make = UnionMaker(seed)
        schema, inputs = make.schema(), make.inputs()
        outcome = agree(schema, inputs, [make.text()], seconds=5)
        assert outcome or outcome.verdict == "too slow", f"case {seed}: {outcome.report}"
