"""Offices that are swept: whatever runs on their motes, they say what a replay says of what arrived or was merged."""

from functools import cache, partial

import pytest

from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.vector_testbed import VectorTestbed
from tests.simulation.golden_on_motes import moved
from tests.simulation.offices import asking, intel, lab54
from tests.simulation.scenario_judge import delivered, judge, run_scenario

QUERIES = {
    "collected": "SELECT site, temp FROM lab [NOW]",
    "filtered": "SELECT site, temp FROM lab [NOW] WHERE temp * 1.8 + 32 > {warm} * 1.8 + 32",
    "streamed": "SELECT site, temp FROM lab WHERE temp > {warm} AND site < 9",
    "aggregated": "SELECT AVG(temp) AS mean, COUNT(*) AS n, MAX(temp) AS most FROM lab [NOW]",
    "grouped": """SELECT site, MIN(temp) AS least, LAST(temp) AS last FROM lab [FROM NOW-120 TO NOW SLIDE 150 SEC]
        GROUP BY site""",
    "windowed": """SELECT AVG(temp) AS mean, STDEV(temp) AS spread, FIRST(temp) AS first
        FROM lab [FROM NOW-270 TO NOW SLIDE 120 SEC]""",
    "folded where it is warm": """SELECT COUNT(*) AS n, SUM(temp) AS total FROM lab [FROM NOW-270 TO NOW SLIDE 300 SEC]
        WHERE temp > {warm}""",
}
SECONDS = 1_200, 10_800
"""Twenty minutes in a small run, three hours in a full one: as much as is kept of what each query says."""


def ran(scenario, text, seconds, moves):
    bed = run_scenario(asking(scenario, text), seconds, kind=partial(VectorTestbed, pushdown=moves))
    told = moved(bed)["lab"]
    if moves is PushdownPolicy.NOTHING:
        assert told["sent"] == told["measured"]
    if moves is PushdownPolicy.EVERYTHING and "WHERE" in text:
        assert told["sent"] < told["measured"]
    return bed, judge(bed, "asked")


@pytest.mark.promise("placement")
@pytest.mark.parametrize("moves", PushdownPolicy)
@pytest.mark.parametrize("name", QUERIES)
def test_the_office_of_the_examples(name, moves, counts, tally):
    bed, said = ran(lab54(), QUERIES[name].format(warm=22), counts(*SECONDS), moves)
    tally("windows and epochs of the office of the examples", {moves.value: said})
    lost = {(e.mote, e["tick"]) for e in bed.trace.of("produced") if e["sent"]} - delivered(bed).keys()
    assert len(lost) < 0.05 * len(bed.trace.of("produced"))


@cache
def _real(data, folder):
    import pyarrow.parquet as pq

    readings = pq.read_table(data / "intel_fixture.parquet")
    return readings, intel(data, readings, folder)


@pytest.fixture
def real(shared_data, tmp_path_factory):
    """The readings of a real office, and the scenario that is made from them."""
    pytest.importorskip("pyarrow.parquet")
    return _real(shared_data, tmp_path_factory.getbasetemp())


@pytest.mark.promise("placement")
@pytest.mark.parametrize("moves", PushdownPolicy)
@pytest.mark.parametrize("name", QUERIES)
def test_a_real_office_with_its_real_readings(name, moves, real, counts, tally):
    readings, scenario = real
    bed, said = ran(scenario, QUERIES[name].format(warm=18.5), counts(*SECONDS), moves)
    tally("windows and epochs of a real office", {moves.value: said})
    assert bed.station.world.tree.unreached(scenario.deployment.motes) == (5,)
    measured = {(e.mote, e["tick"]): e["values"] for e in bed.trace.of("produced")}
    assert 5 not in {site for site, _ in measured}
    for (site, tick), (value,) in measured.items():
        if f"m{site}" in readings.column_names:
            assert value == readings[f"m{site}"][tick // 30].as_py()  # each is the one that was recorded


@pytest.mark.promise("placement")
def test_lifetime_answers_equal_replay_at_its_interval():
    bed = run_scenario(
        asking(lab54(), "SELECT site, temp, light FROM lab [NOW] LIFETIME 600 DAY"), 1_200, kind=VectorTestbed
    )
    assert bed.station.world.queries[bed.numbers["asked"]].plan.options.acquire_every > 30
    assert judge(bed, "asked") > 10
