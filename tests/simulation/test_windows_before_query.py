"""Windows that reach back before their query: readings that motes filtered for others are missing there."""

from collections import Counter
from dataclasses import replace
from functools import cache, partial

import pytest

from basestation.testbed.event_testbed import EventTestbed
from simulator.scenario import ScenarioQuery, read_scenario
from tests.simulation.scenario_judge import FOLDER, answers, judge, run_scenario

WARM = ScenarioQuery("warm", "SELECT site, temp FROM hall [NOW] WHERE temp > 21.5", 0, None)
BACK = "FROM hall [FROM NOW-110 TO NOW SLIDE 60 SEC]"
ALL = ScenarioQuery("all", f"SELECT MEDIAN(temp) AS middle {BACK}", 305_000, None)
SAME = ScenarioQuery("same", f"SELECT MEDIAN(temp) AS middle {BACK} WHERE temp > 21.5", 305_000, None)
AFTER = ScenarioQuery("after", f"SELECT MEDIAN(temp) AS middle {BACK} WHERE temp > 23", 425_000, None)
FULL = [96, 96]


@cache
def ran(agenda, *queries):
    scenario = replace(read_scenario(FOLDER / "filtering.toml"), queries=queries)
    return run_scenario(scenario, 700, kind=partial(EventTestbed, agenda=agenda))


def windows(bed, name):
    begin = bed.scenario.begin_ms // 1_000
    return {tick - begin: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, name).items()}


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_reading_filtered_earlier_is_missing_for_later_query(agenda):
    bed = ran(agenda, WARM, ALL)
    begin = bed.scenario.begin_ms // 1_000
    of_all = {(e.mote, e["tick"] - begin): e["sent"] for e in bed.trace.of("produced")}
    assert judge(bed, "all") >= 5 and judge(bed, "warm") >= 60
    found = windows(bed, "all")
    sent = sum(sent for (_, tick), sent in of_all.items() if 250 <= tick <= 300)
    assert 0 < sent < 48
    if not agenda:  # sleeping motes are configured later
        assert found[360] == [sent + 48, 96] and found[480] == FULL
    assert found[360][0] < 96 and [found[second] for second in (600, 660)] == [FULL] * 2


@pytest.mark.promise("placement")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_later_query_with_same_condition_misses_nothing(agenda):
    bed = ran(agenda, WARM, SAME)
    assert judge(bed, "same") >= 5
    assert set(map(tuple, windows(bed, "same").values())) == {(96, 96)}


@pytest.mark.promise("placement")
def test_nothing_is_filtered_while_a_query_collects_all():
    bed = ran(False, WARM, ALL, AFTER)
    assert judge(bed, "after") >= 3
    found = windows(bed, "after")
    assert found[480] == FULL and list(found) == [480, 540, 600, 660]


@pytest.mark.promise("placement")
def test_wider_query_lacks_readings_filtered_for_ended_ones():
    gone = replace(WARM, until_ms=290_000)
    bed = ran(False, gone, replace(AFTER, at_ms=305_000))
    assert judge(bed, "after") >= 5
    found = windows(bed, "after")
    assert found[360][0] < 96 and found[480] == FULL


@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_filter_of_ended_query_does_not_count_beside_fold(agenda):
    mean = ScenarioQuery("mean", "SELECT AVG(temp) AS mean FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC]", 0, None)
    few = ScenarioQuery("few", "SELECT site, temp FROM hall [NOW] WHERE temp > 23", 0, 303_000)
    more = ScenarioQuery("more", "SELECT site, temp FROM hall [NOW] WHERE temp > 20.5", 304_000, None)
    bed = ran(agenda, mean, few, more)
    queries = bed.station.world.queries
    assert [bool(queries[bed.numbers[name]].partial_sources) for name in ("mean", "few", "more")] == [
        True,
        False,
        False,
    ]
    passing = Counter(e["tick"] for e in bed.trace.of("produced") if e["values"][0] > 2050)
    whole = {tick: rows for (tick, _), (coverage, rows) in answers(bed, "more").items() if coverage["hall"] == [8, 8]}
    # Sleeping motes learn of the ended query first, and then of the new one.
    assert len(whole) >= (9 if agenda else 30) and sum(map(len, whole.values())) > 20
    assert {tick: len(rows) for tick, rows in whole.items()} == {tick: passing[tick] for tick in whole}
