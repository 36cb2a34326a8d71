"""Engine and oracle say the same of generated cases, update by update."""

from tests.agreement.compare import agree
from tests.agreement.hunt import hunt, shares
from tests.oracles.generate import case


def test_engine_and_oracle_agree_on_generated_cases(counts, rng):
    reports = []
    verdicts, reasons = hunt(rng.randrange(2**32), counts(150, 2000), stop=1, say=reports.append)
    assert not verdicts["disagree"], reports[0]
    assert verdicts["agree"] > verdicts.total() / 2, shares(verdicts, reasons)


def test_they_refuse_the_same():
    made = case(1)
    assert agree(made.schema, made.inputs, ["SELECT tmep FROM road"]).verdict == "refused"
    assert agree(made.schema, made.inputs, ["SELECT n FROM road WHERE s > 3"]).verdict == "refused"
