"""Engine and oracle say the same of generated cases, update by update, and the engine says it under every choice.

Cases come in shards, so that several processes share them; the summary of the run tells what became of all of them,
and which share of them joins, is nested and so on.
"""

import pytest

from tests.agreement.compare import agree
from tests.agreement.hunt import MAKERS, SECONDS, hunt, shares
from tests.conftest import count_of
from tests.golden.choices import CHOICES, ChoiceCase
from tests.oracles.generate import case

SHARD = 100
LIMIT = count_of(4, SECONDS)
"""Seconds of processor time for a case; those that need more are left out."""
PAST = ("asked_of_history", "scanning_history", "since", "within")
LEFT_OUT = ("not yet", "not covered", "too slow")


@pytest.mark.promise("live-is-replay", "oracle")
@pytest.mark.parametrize("shard", range(count_of(200, 5_125) // SHARD))  # 2 % may be left out
def test_engine_and_oracle_agree_on_generated_cases(shard, rng, tally):
    reports = []
    verdicts, reasons, traits = hunt(rng.randrange(2**32), SHARD, say=reports.append, seconds=LIMIT)
    tally("generated cases", verdicts)
    tally("traits of the generated cases", traits, of=verdicts.total())
    assert not verdicts["disagree"], reports[0]
    assert sum(verdicts[verdict] for verdict in LEFT_OUT) < 0.02 * SHARD, shares(verdicts, reasons, traits)


@pytest.mark.promise("oracle")
@pytest.mark.parametrize("maker", PAST)
@pytest.mark.parametrize("shard", range(count_of(1, 10)))
def test_engine_and_oracle_agree_on_history_and_deliver_within(shard, maker, rng, tally):
    reports = []
    verdicts, _, _ = hunt(rng.randrange(2**32), count_of(10, SHARD), stop=1, say=reports.append, make=MAKERS[maker])
    tally(f"generated cases, {maker}", verdicts)
    assert not verdicts["disagree"], reports[0]


@pytest.mark.parametrize("shard", range(count_of(2, 40)))
def test_generated_cases_say_the_same_under_random_choices(shard, rng, tally):
    seed = rng.randrange(2**32)
    for number in range(20):
        made = case(f"{seed}.{number}")
        if agree(made.schema, made.inputs, made.queries, seconds=5).verdict not in ("agree", "order"):
            continue
        others = tuple(case(f"{seed}.{number}.{other}").query for other in range(20))
        judged = ChoiceCase(made.schema, made.inputs, [(made.query, None), *made.statements], others)
        choice = rng.choice([choice for choice in CHOICES if choice.suits(judged)])
        what = judged.difference(choice, rng)
        tally("generated cases under a choice", {choice.name: 1})
        assert what is None, f"case {seed}.{number}, {choice.name}: {what}"


ROWS = [{"_tick": 0, "_arrival": 2, "n": 0}, {"_tick": 0, "_arrival": 3, "n": 2}]


@pytest.mark.parametrize(
    "query", ["SELECT n FROM hits WHERE n > 0", "SELECT n FROM hits WHERE n > 0 UNION ALL SELECT n FROM hits"]
)
@pytest.mark.parametrize("since", [0, 1])
@pytest.mark.parametrize("clock", [2, 3, 4])
def test_they_agree_on_corrections_around_the_start_of_a_query(query, since, clock):
    queries = [(f"{query} SINCE {since}", 3), ("REVISE hits SET n = 3 WHERE n = 0", clock)]
    outcome = agree("hits: pushed (n:integer) wait 2 sec", {"hits": ROWS}, queries, until=8)
    assert outcome.verdict == "agree", outcome.report


@pytest.mark.parametrize("change", ["t + t", "0 - t * 3", "(t + t) - (2 SEC - 2 SEC)"])
def test_they_end_a_loop_whose_t_leaves_64_bits(change):
    query = f"SELECT COUNT(*) AS c FROM hits FOR (t = 10; t <> 5; t = {change}) {{ WindowIs(hits, 0, 3); }}"
    outcome = agree("hits: pushed (n:integer) wait 2 sec", {"hits": ROWS}, [(query, 0)], until=8)
    assert outcome.verdict == "agree" and outcome.non_empty, outcome.report


def test_they_refuse_the_same():
    made = case(1)
    assert agree(made.schema, made.inputs, ["SELECT tmep FROM road"]).verdict == "refused"
    assert agree(made.schema, made.inputs, ["SELECT n FROM road WHERE s > 3"]).verdict == "refused"
