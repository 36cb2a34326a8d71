"""Any queries in any small network, whatever goes wrong: each says what a replay of what was heard says, nothing counts twice, and
the ledger of the station is that of the trace."""

import random
from collections import Counter

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.event_testbed import EventTestbed
from tests.conftest import count_of
from tests.simulation.random_scenarios import Maker
from tests.simulation.reading_accounts import asking, hold
from tests.simulation.scenario_judge import judge, received, remembering
from tests.simulation.test_program_memory_limits import too_large


@pytest.mark.promise("faults", "ledger")
@pytest.mark.parametrize("number", range(count_of(5, 80)))
def test_random_network_answers_equal_replay_of_arrivals(number, tmp_path, tally, run_seed):
    rng = random.Random(f"{run_seed}:anything:{number}")
    make = Maker(rng, tmp_path)
    scenario, moves = make.scenario(), rng.choice([*PushdownPolicy, *[PushdownPolicy.EVERYTHING] * 3])
    bed = EventTestbed(scenario, rng.randrange(1_000), agenda=rng.random() < 0.4, pushdown=moves)
    last, look, judged, due = 1_000 * make.seconds, remembering(bed), Counter(), asking(bed)
    ends = {asked.name: min(last, asked.until_ms or last) for asked in scenario.queries}
    for end in sorted({last, *ends.values()}):
        bed.run_until(end, look)
        assert too_large(bed) == []
        for name in [name for name, each in ends.items() if each >= end and name in bed.numbers]:
            fed = bed.station.world.queries[bed.numbers[name]].partial_sources
            judged["of partials" if fed else "of readings"] += judge(bed, name)
    home = Counter((e["table"], of) for e in bed.trace.of("merged") for of in e["readings"].split(",") if of)
    assert max(home.values(), default=1) == 1
    assert scenario.wire.damaged or not bed.station.errors
    if not bed.decided and not any(
        asked.until_ms or " FOR " in asked.text for asked in scenario.queries
    ):  # all folds go on
        ledger = bed.station.engine.ledger()
        assert {name: of.get("received", 0) for name, of in ledger.items()} == {
            name: received(bed, name) for name in ledger
        }
    judged["readings due"] = hold(bed, due)[1]
    tally("windows and epochs of anything", judged | {"refused": len(bed.refused)})
