"""By agenda: queries that come, go or wait while others stay, which lose nothing; who comes begins at once with all motes."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.testbed.event_testbed import EventTestbed
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.conftest import count_of
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import FOLDER, answers, delivered, judge, remembering

AT, GONE = 305, 905  # seconds
MEAN = "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM hall [NOW]"
MINUTE = "SELECT STDEV(temp) AS spread FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC]"
ALL = "SELECT site, temp, supply FROM hall [NOW]"
WARM = "SELECT site, temp FROM hall [NOW] WHERE temp > 20.5"
LASTING = "SELECT site, supply FROM hall [NOW] LIFETIME 30 DAY"

STAY, COME = (MEAN, MINUTE, ALL, WARM), (MEAN, MINUTE, ALL, WARM, LASTING)
PAIRS = count_of([(MEAN, LASTING), (MINUTE, MEAN), (WARM, ALL)], [*product(STAY, COME)])


def coming(stays, *others):
    """The hall, asked for what stays from the beginning on."""
    return replace(read_scenario(FOLDER / "calm.toml"), queries=(ScenarioQuery("stays", stays, 0, None), *others))


def later(text, name="comes", at=AT, until=None):
    return ScenarioQuery(name, text, at * 1_000, None if until is None else until * 1_000)


def ran(scenario, seconds):
    """The run, with the second of each first tick of an agenda, as it was known."""
    bed = EventTestbed(scenario, 1, agenda=True)
    bed.begins, look = [], remembering(bed)
    while bed.elapsed_ms < seconds * 1_000:
        bed.run_until(bed.elapsed_ms + 5_000, look)
        world = bed.station.world
        if world.agenda is not None and (begin := world.agenda.begin - scenario.begin_ms // 1_000) not in bed.begins:
            bed.begins.append(begin)
    return bed


def covered(bed, name, extent="hall"):
    """Second -> (used, due)."""
    begin = bed.scenario.begin_ms // 1_000
    return {tick - begin: tuple(coverage[extent]) for (tick, _), (coverage, _) in answers(bed, name).items()}


def lost(bed, since=AT):
    return [e for e in bed.trace.of("given_up") if e.time >= (bed.scenario.begin_ms + since * 1_000) * 1_000]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("stays, comes", PAIRS)
def test_staying_query_loses_nothing_to_changing_ones(stays, comes):
    bed = ran(coming(stays, later(comes, until=GONE)), 1_300)
    late = {second: each for second, each in covered(bed, "stays").items() if 120 <= second < 1_250}
    assert len(late) >= 18
    assert {second: (used, due) for second, (used, due) in late.items() if used < due} == {}
    assert lost(bed) == [] and bed.trace.of("wasted") == []
    assert judge(bed, "stays") >= 18
    measured = Counter((e.mote, e["tick"]) for e in bed.trace.of("produced"))
    assert set(measured.values()) == {1}


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("radio", [{}, {"delivery": 0.6}], ids=["as it is", "40 % more loss"])
def test_new_query_begins_at_all_motes_in_one_tick(radio):
    bed = ran(replace(coming(MEAN, later(ALL)), **radio), 600)
    _, begin, *_ = bed.begins
    assert AT < begin <= AT + 160
    found = covered(bed, "comes")
    assert {found[second] for second in found if second < begin} == {(0, 8)}
    assert {found[second] for second in found if begin <= second < 550} == {(8, 8)}
    assert judge(bed, "comes") >= 20
    assert bed.station.world.queries[bed.numbers["comes"]].state is QueryState.RUNNING


@pytest.mark.promise("agenda")
def test_query_during_agenda_change_waits_or_is_dropped():
    brief = later("SELECT site, supply FROM hall [NOW]", "brief", 325, 395)
    bed = ran(coming(MEAN, later(MINUTE), brief, later(ALL, "waits", 345)), 800)
    _, second, third = bed.begins[:3]
    assert second < third <= second + 160
    assert lost(bed) == []
    assert {each for at, each in covered(bed, "stays").items() if 120 <= at < 790} == {(8, 8)}
    assert {each for at, each in covered(bed, "comes").items() if second + 60 <= at < 790} == {(48, 48)}
    assert {each for at, each in covered(bed, "waits").items() if third <= at < 790} == {(8, 8)}
    assert judge(bed, "waits") >= 20
    until = bed.scenario.begin_ms // 1_000 + third
    assert sorted({e["sampling"] for e in bed.trace.of("produced") if e["tick"] <= until}) == [0, 1, 2]


@pytest.mark.promise("agenda")
def test_tree_change_during_deployment_restarts_it():
    at, gone = 400, InjectedFault("gone", "dies", 380_000, motes=(4,))
    bed = ran(replace(coming(MEAN, later(ALL, at=at)), faults=(gone,)), 760)
    begin = bed.begins[1]
    assert at + 100 < begin
    collected = {tick - bed.scenario.begin_ms // 1_000 for _, tick in delivered(bed)}
    assert at + 20 < min(collected) < begin - 20
    for name in ("stays", "comes"):
        assert {each for second, each in covered(bed, name).items() if 700 <= second < 750} == {(7, 8)}


@pytest.mark.promise("agenda")
def test_a_query_is_not_running_before_its_agenda_has_begun():
    bed = EventTestbed(coming(MEAN, later(ALL)), 1, agenda=True)
    bed.run_until((AT + 5) * 1_000)
    begin = bed.station.world.agenda.begin * 1_000 - bed.scenario.begin_ms
    bed.run_until(begin - 5_000)
    assert bed.station.reconcilers.up_to_date_motes() == set(bed.built.motes)
    state = bed.station.world.queries[bed.numbers["comes"]].state
    bed.run_until(begin + 20_000)
    assert (state, bed.station.world.queries[bed.numbers["comes"]].state) == (QueryState.DEPLOYING, QueryState.RUNNING)


@pytest.mark.promise("agenda")
def test_mean_is_unchanged_by_collecting_query():
    office = read_scenario(ROOT / "examples/lab54/calm.scenario.toml")
    bed = ran(office, 35 * 60)
    begin, mean = bed.begins[1], covered(bed, "mean", "lab")
    assert 20 * 60 < begin <= 31 * 60

    def share(since, until):
        used, due = map(sum, zip(*(each for at, each in mean.items() if since <= at < until), strict=True))
        return used / due

    before = share(12 * 60, 20 * 60)
    assert before > 0.9
    for since in range(20 * 60, 34 * 60, 120):
        assert share(since, since + 120) > before - 0.05
    collected = Counter(tick - office.begin_ms // 1_000 for _, tick in delivered(bed))
    assert min(collected) == begin and collected[begin] > 0.9 * 54
    assert sum(each for at, each in collected.items() if at < 34 * 60) > 0.95 * 54 * (34 * 60 - begin) / 30
    assert [
        e for e in lost(bed, 20 * 60) if e["kind"] == "READING" and e.time < (office.begin_ms + begin * 1_000) * 1_000
    ] == []
