"""Scenarios named by what goes wrong, judged on answers, coverage, ledger and energy."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from itertools import combinations

import pytest

from basestation.station.operational_events import ASLEEP, AWAKE
from basestation.station.reading_account import PRODUCED, RECEIVED
from basestation.testbed.event_testbed import EventTestbed
from basestation.testbed.vector_testbed import VectorTestbed
from gateway.mote_lifecycle import MoteState
from innet.placement.agenda import Activity
from simulator.scenario import InjectedFault, ScenarioQuery, read_scenario
from tests.simulation.expected_energy import expected, table_of
from tests.simulation.reading_accounts import compare, hold, truths
from tests.simulation.scenario_judge import FOLDER, answers, delivered, folds_of, judge, merged, run, run_scenario

SECONDS = 400
SCENARIOS = (
    "calm", "parent_dies_mid_epoch", "partition_and_heal", "reboots_without_its_program", "clock_jumps_a_day",
    "loses_forty_percent_in_bursts", "duplicates_and_reordering", "base_goes_away", "two_gateways", "sensor_fails",
    "battery_of_the_worst_dies", "parent_hangs", "mote_moves",
)  # fmt: skip
RUNS = [(name, False) for name in SCENARIOS] + [(name, True) for name in SCENARIOS[1:8]]
ran = cache(run)


def produced(bed):
    return {(e.mote, e["tick"]) for e in bed.trace.of("produced")}


def ledger(bed):
    return Counter(bed.station.engine.ledger()["hall"])


@pytest.mark.promise("faults")
@pytest.mark.parametrize("name, agenda", RUNS, ids=lambda each: {False: "awake", True: "by agenda"}.get(each, each))
def test_answers_equal_replay_of_delivered_readings(name, agenda):
    bed = ran(name, SECONDS, agenda=agenda)
    assert judge(bed, "now") >= 38
    assert judge(bed, "minute") >= 5


@pytest.mark.promise("ledger")
@pytest.mark.parametrize("name, agenda", RUNS, ids=lambda each: {False: "awake", True: "by agenda"}.get(each, each))
def test_the_ledger_of_the_station_agrees_with_the_trace(name, agenda):
    bed = ran(name, SECONDS, agenda=agenda)
    ended = [arrival for arrival, _ in delivered(bed).values() if arrival <= bed.station.engine.clock]
    assert ledger(bed)["received"] == len(ended)
    assert set(delivered(bed)) <= produced(bed)


@pytest.mark.promise("ledger")
@pytest.mark.parametrize("name, agenda", RUNS, ids=lambda each: {False: "awake", True: "by agenda"}.get(each, each))
def test_ledger_agrees_with_trace_reading_by_reading(name, agenda):
    bed = ran(name, SECONDS, agenda=agenda)
    told, compared = hold(bed, {("hall", mote): range(0, SECONDS, 10) for mote in range(1, 9)})
    assert compared == 8 * SECONDS // 10
    assert sum(sums["delivered"] for sums in told.values()) >= 0.3 * compared


@pytest.mark.promise("ledger")
def test_ledger_entry_off_by_one_is_found():
    """In any one number, and in any two that leave the sums as they are."""
    bed = ran("loses_forty_percent_in_bursts", SECONDS)
    due = {("hall", mote): range(0, SECONDS, 10) for mote in range(1, 9)}
    told, truth = bed.station.account()["hall"], truths(bed, due)["hall", 4]
    assert told[4]["duplicate"] > 0 and told[4]["not asked yet"] > 0
    compare(("hall", 4), told[4], truth, SECONDS - 1, 0)
    pairs = [*combinations(PRODUCED, 2), *combinations(RECEIVED, 2)]
    known = {"delivered", "filtered", "merged", "ahead", "not due"}
    wrong = [{name: by} for name in told[4] for by in (-1, 1)]
    wrong += [{one: by, other: -by} for one, other in pairs if known & {one, other} for by in (-1, 1)]
    for change in wrong:
        with pytest.raises(AssertionError):
            compare(("hall", 4), {name: n + change.get(name, 0) for name, n in told[4].items()}, truth, SECONDS - 1, 0)
    assert len(wrong) > 60


@pytest.mark.promise("ledger")
def test_counters_report_folded_readings_that_never_arrived():
    """After the query has ended all counts are reported: `produced` has every measured reading."""
    asked = ScenarioQuery("sum", "SELECT SUM(temp) AS total FROM hall [NOW]", 0, 1_200_000)
    scenario = replace(read_scenario(FOLDER / "calm.toml"), delivery=0.6, queries=(asked,))
    bed = run_scenario(scenario, 1_400, kind=partial(EventTestbed, agenda=True, pushdown="everything"))
    due = {("hall", mote): range(0, 1_201, 10) for mote in range(1, 9)}
    told, _ = hold(bed, due)
    truth, folded = truths(bed, due), 0
    for key, sums in told.items():
        made = truth[key].made.keys() & truth[key].due
        assert sums["produced"] == len(made)
        assert sums["not known"] + sums["not asked yet"] + sums["not sampled"] == len(due[key]) - len(made)
        assert sums["folded"] == len(made - truth[key].merged.keys()) and sums["under way"] == 0
        folded += sums["folded"]
    assert folded > 50


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("name, agenda", RUNS, ids=lambda each: {False: "awake", True: "by agenda"}.get(each, each))
def test_energy_equals_cost_of_traced_frames_and_samples(name, agenda):
    bed = ran(name, SECONDS, agenda=agenda)
    assert bed.spent() == pytest.approx(expected(bed, SECONDS * 1_000), rel=1e-9)


def times_on(bed, mote):
    """From when until when its radio was on, microseconds, as the trace has it."""
    found, on = [], bed.scenario.begin_ms * 1_000
    for event in (event for event in bed.trace.events if event.mote == mote):
        if event.what == "awake":
            found.append((event.time - event["us"], event.time))
        elif event.what in ("sleeps", "died") and on is not None:
            found.append((on, event.time))
            on = None
        elif event.what in ("listens", "rebooted") and on is None:
            on = event.time
    return [*found, *([] if on is None else [(on, float("inf"))])]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("name", [name for name, agenda in RUNS if agenda])
def test_sleeping_mote_receives_nothing(name):
    """Whatever came to a mote came while its radio was on, and that was paid for."""
    bed = ran(name, 600 if name == "partition_and_heal" else SECONDS, agenda=True)
    on = {mote: times_on(bed, mote) for mote in bed.built.motes}
    came = [(e, e["to"]) for e in bed.trace.of("sent") if e["came"] and e["to"] in on]
    came += [(e, e["of"]) for e in bed.trace.of("inquired") if e["came"] and e["of"] in on]
    assert len(came) > 300
    for event, mote in came:
        since = event.time - 10_000 * event["attempts"]  # none takes longer
        assert any(begin <= event.time and since <= end for begin, end in on[mote]), (event, mote)


@pytest.mark.promise("agenda")
def test_settled_radio_is_on_only_in_its_slots():
    bed = ran("calm", SECONDS, agenda=True)
    agenda, startup = bed.station.world.agenda, round(table_of("telosb")["radio"]["startup_ms"] * 1_000)
    period = agenda.period * bed.catalog.tick_ms * 1_000
    for mote in bed.built.motes:
        heard = sorted(
            1_000 * s.length_ms + startup for s in agenda.sites[mote].slots if s.activity is Activity.RECEIVE
        )
        [sends] = [1_000 * s.length_ms + startup for s in agenda.sites[mote].slots if s.activity is Activity.SEND]
        rounds = {}
        for event in bed.trace.of("awake"):
            if event.mote == mote:
                rounds.setdefault(event.time // period, []).append(event["us"])
        last = max(rounds)
        for number in range(last - 9, last):
            left = Counter(rounds[number]) - Counter(heard)
            assert left.total() == len(rounds[number]) - len(heard) == 1
            assert startup < max(left) <= sends


@pytest.mark.promise("deterministic")
@pytest.mark.parametrize("name", ["calm", "loses_forty_percent_in_bursts"])
def test_same_scenario_and_seed_give_identical_trace(name):
    first, second, other = (str(run(name, 60, seed).built.trace) for seed in (1, 1, 2))
    assert first == second
    assert first != other


def test_on_a_calm_day_everything_arrives_in_time():
    bed = ran("calm", SECONDS)
    assert set(delivered(bed)) == produced(bed)
    assert not ledger(bed).get("late")
    assert [coverage["hall"] for coverage, _ in answers(bed, "now").values()][5:-1] == [[8, 8]] * (
        len(answers(bed, "now")) - 6
    )


WIDE = "SELECT site, temp, supply FROM hall DELIVER WITHIN 170 SEC"
FOLDED = (
    "SELECT VARIANCE(supply), VARIANCE(temp), AVG(supply), MAX(supply), MIN(supply), MAX(temp), MIN(temp), FIRST(supply), "
    "LAST(supply) FROM hall [FROM NOW-50 TO NOW SLIDE 60 SEC] DELIVER WITHIN 170 SEC"
)


@pytest.mark.promise("placement")
@pytest.mark.parametrize("kind", [partial(EventTestbed, agenda=True), VectorTestbed], ids=["by agenda", "swept"])
def test_larger_mtu_makes_longer_frames_only(kind):
    """ESP-NOW carries 250 bytes: sixteen readings in one frame, and partials that no frame of IEEE 802.15.4 has room for."""
    scenario = read_scenario(FOLDER / "calm.toml")
    motes = {n: replace(mote, hardware="esp32") for n, mote in scenario.deployment.motes.items()}
    queries = tuple(ScenarioQuery(name, text, 0, None) for name, text in (("wide", WIDE), ("folded", FOLDED)))
    scenario = replace(scenario, deployment=replace(scenario.deployment, motes=motes), queries=queries)
    bed = run_scenario(scenario, 1_200, kind=partial(kind, pushdown="everything"))
    assert not bed.refused and not bed.station.errors
    assert judge(bed, "wide") > 100
    assert judge(bed, "folded") > 15
    assert max(e["count"] for e in bed.trace.of("posted")) >= 16  # eight, in case they are wide, fill one of 102 bytes
    assert 102 < max(e["bytes"] for e in bed.trace.of("sent") if e["kind"] == "PARTIAL") <= 250
    told = {e["bytes"] for e in bed.trace.of("sent") if e["kind"] == "PROGRAM"}
    assert not told or 102 < max(told) <= 250  # swept motes begin with their programs


@pytest.mark.promise("network-heals")
def test_children_of_dead_parent_find_another_and_resend():
    bed = ran("parent_dies_mid_epoch", SECONDS)
    assert max(tick for site, tick in produced(bed) if site == 1) == 120
    before, after = bed.built.motes[3].forwarder.parent, bed.station.world.tree
    assert before == after.parent[3] != 1 and 1 not in after.parent
    found = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "now").items()}
    assert found[110] == [8, 8]
    assert all(found[tick] == [7, 8] for tick in range(130, SECONDS - 20, 10))
    late = {(e["origin"], e.time // 1_000_000) for e in bed.trace.of("arrived") if e["kind"] == "READING"}
    assert not any(site in (3, 6) and 125 <= second < 180 for site, second in late)


@pytest.mark.promise("network-heals")
def test_sleeping_children_of_dead_parent_find_another():
    bed = ran("parent_dies_mid_epoch", 600, agenda=True)
    assert 3 in {e.mote for e in bed.trace.of("forsaken")}
    found = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "now").items()}
    assert found[110] == [8, 8]
    # Frames sent again share slots with new ones, so some never arrive.
    assert [found[tick] for tick in range(120, 480, 10)].count([7, 8]) >= 27
    assert all(found[tick] == [7, 8] for tick in range(480, 580, 10))
    assert all(mote.forwarder._slots for mote in bed.built.motes.values() if mote.alive)


@pytest.mark.promise("network-heals")
@pytest.mark.parametrize("agenda", [False, True])
def test_moved_mote_reports_links_and_rejoins(agenda):
    bed = ran("mote_moves", SECONDS, agenda=agenda)
    world = bed.station.world
    assert set(world.topology.links[7]) == {1, 3} and 7 not in world.topology.links[4]
    assert bed.built.motes[7].forwarder.parent == world.tree.parent[7] == 1
    found = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "now").items()}
    assert [found[tick] for tick in range(20, SECONDS - 20, 10)].count([8, 8]) >= 34
    assert all(found[tick] == [8, 8] for tick in range(300, SECONDS - 20, 10))


@pytest.mark.promise("network-heals")
def test_parent_that_only_acknowledges_is_found_by_silence():
    bed = ran("parent_hangs", SECONDS)
    assert 1 in bed.station.world.topology.links[3]  # its neighbours hear it: no report tells that something is wrong
    assert bed.station.failure_detector.motes == {1}
    assert bed.station.world.tree.children[1] == ()
    found = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "now").items()}
    assert all(found[tick] == [7, 8] for tick in range(220, SECONDS - 20, 10))
    assert {bed.station.reconcilers.of(mote).state for mote in range(1, 9)} == {MoteState.LATE, MoteState.RUNNING}


@pytest.mark.promise("delivery")
def test_frame_lost_in_forwarder_is_resent_by_its_origin():
    bed = ran("parent_hangs", SECONDS)
    came = {(site, tick): arrival for (site, tick), arrival in delivered(bed).items()}
    assert {(site, tick) for site in (3, 6) for tick in range(130, 200, 10)} <= came.keys()
    assert all(came[site, tick][0] > 200 for site in (3, 6) for tick in range(130, 190, 10))


def test_readings_saved_in_a_partition_revise_windows():
    bed = ran("partition_and_heal", SECONDS)
    assert set(delivered(bed)) == produced(bed)
    assert ledger(bed)["late"] >= 6 * 11
    assert answers(bed, "now")[160, 1][0]["hall"] == [8, 8]


def test_a_mote_that_reboots_gets_its_program_again():
    bed = ran("reboots_without_its_program", SECONDS)
    trace = bed.trace
    assert [(e.mote, e.time // 1_000_000) for e in trace.of("rebooted")] == [(3, 95), (6, 215)]
    for mote, second in ((3, 95), (6, 215)):
        again = [tick for site, tick in delivered(bed) if site == mote and tick > second]
        assert min(again) <= second + 90
        assert {e["boot"] for e in trace.of("arrived") if e["origin"] == mote} == {1, 2}


def test_a_mote_that_reboots_among_sleepers_finds_its_way_back():
    """All neighbours listen in slots only: the mote has to broadcast until one wakes up."""
    bed = ran("reboots_without_its_program", SECONDS, agenda=True)
    for mote, second in ((3, 95), (6, 215)):
        again = [tick for site, tick in delivered(bed) if site == mote and tick > second]
        assert min(again) <= second + 120
    assert all(mote.forwarder._slots for mote in bed.built.motes.values())


def test_settled_motes_under_agenda_use_little_energy():
    awake, asleep = (ran("calm", SECONDS, agenda=agenda) for agenda in (False, True))
    assert set(delivered(asleep)) == produced(asleep)
    for mote in range(1, 9):
        assert asleep.spent()[mote] < 0.05 * awake.spent()[mote]


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("by", [-86_400_000, -7_000, 7_000])
def test_clock_jump_within_a_round_keeps_the_agenda(by):
    """Back by more than half a round, slots that are planned lie in the past; back by a day, before the beginning."""
    scenario = replace(
        read_scenario(FOLDER / "calm.toml"), faults=(InjectedFault("jump", "clock_jumps", 103_500, None, (1,), by),)
    )
    bed = run_scenario(scenario, 400, kind=partial(EventTestbed, agenda=True))
    assert judge(bed, "now") >= 38
    assert {1, 3, 6} <= {site for site, tick in delivered(bed) if tick > 300}


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("mote, hops", [(1, 1), (6, 3)])
@pytest.mark.parametrize("by", [-60_000, -10_000, 10_000, 60_000])
def test_clock_wrong_by_whole_rounds_is_set_at_next_exchange(mote, hops, by):
    """All of its slots are those of a right clock; what it has stamped tells. Back, it says nothing until it is that late again."""
    fault = InjectedFault("jump", "clock_jumps", 203_500, None, (mote,), by)
    scenario = replace(read_scenario(FOLDER / "calm.toml"), faults=(fault,))
    bed = run_scenario(scenario, 360, kind=partial(EventTestbed, agenda=True))
    assert bed.station.world.agenda.period == 10
    begin = bed.scenario.begin_ms // 1_000
    wrong = [e for e in bed.trace.of("produced") if e.mote == mote and abs(e.time / 1e6 - e["tick"]) > 1]
    assert 0 < len(wrong) <= hops + 1
    assert max(e.time / 1e6 for e in wrong) - begin <= 210 + 10 * (hops + 1) + max(-by, 0) / 1_000
    assert bed.station.reconcilers.of(mote).event_counts["clock moved"] == 1
    assert judge(bed, "now") >= 34


@pytest.mark.promise("agenda")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
@pytest.mark.parametrize("mote", [2, 8])
@pytest.mark.parametrize("by", [30_000, 86_400_000])
def test_clock_ahead_below_merging_parent_is_set(mote, by, agenda):
    """Its frames wait above it until their time has come."""
    fault = InjectedFault("jump", "clock_jumps", 203_500, None, (mote,), by)
    asked = ScenarioQuery("sum", "SELECT SUM(temp) AS total FROM hall [NOW]", 0, None)
    scenario = replace(read_scenario(FOLDER / "calm.toml"), faults=(fault,), queries=(asked,))
    bed = run_scenario(scenario, 360, kind=partial(EventTestbed, agenda=agenda, pushdown="everything"))
    begin = bed.scenario.begin_ms // 1_000
    wrong = [e for e in bed.trace.of("produced") if e.mote == mote and abs(e.time / 1e6 - e["tick"]) > 1]
    assert wrong and max(e.time / 1e6 for e in wrong) - begin <= 260
    assert bed.station.reconcilers.of(mote).event_counts["clock moved"] == 1
    assert judge(bed, "sum") >= 34


def test_clock_a_day_ahead_closes_no_window():
    bed = ran("clock_jumps_a_day", SECONDS)
    assert ledger(bed)["ahead"] >= 1
    assert {tick for site, tick in delivered(bed) if site == 4 and tick > 86_400}
    assert min(tick for tick, _ in answers(bed, "now")) < 50
    assert max(tick for tick, _ in answers(bed, "now")) < SECONDS


def test_with_forty_percent_loss_in_bursts_most_comes_after_all():
    bed = ran("loses_forty_percent_in_bursts", SECONDS)
    tally = bed.tally
    assert tally.attempts.total() > 1.5 * tally.frames.total()
    assert len(delivered(bed)) >= 0.9 * len(produced(bed))


def test_copies_count_once_and_damage_is_noticed():
    bed = ran("duplicates_and_reordering", SECONDS)
    arrived = [(e["origin"], e["boot"], e["seq"]) for e in bed.trace.of("arrived")]
    duplicates = sum(link.duplicates for link in bed.station.links.by_mote.values())
    assert duplicates == len(arrived) - len(set(arrived)) > 50
    # A bit that becomes a delimiter makes two bad frames of one.
    assert len(bed.trace.of("damaged")) <= bed.station.errors.total() <= 2 * len(bed.trace.of("damaged"))


def test_frames_during_absence_of_base_are_not_lost():
    bed = ran("base_goes_away", SECONDS)
    assert set(delivered(bed)) == produced(bed)
    assert ledger(bed)["late"] > 60


@pytest.mark.promise("network-heals")
def test_a_mote_that_two_gateways_hear_is_one_mote():
    bed = ran("two_gateways", SECONDS)
    assert {e.mote for e in bed.trace.of("delivered") if e["kind"] == "READING"} == {0, 9}
    assert {bed.station.world.tree.gateway(mote) for mote in range(1, 9)} == {0, 9}
    duplicates = sum(link.duplicates for link in bed.station.links.by_mote.values())
    assert duplicates < 40  # the broadcasts at the beginning
    assert ledger(bed)["received"] == len(produced(bed))
    assert all(coverage["hall"][0] <= 8 for coverage, _ in answers(bed, "now").values())


@pytest.mark.promise("ledger")
def test_reading_merged_and_delivered_is_counted_in_both():
    each = ScenarioQuery("each", "SELECT site, temp FROM hall [NOW]", 0, None)
    total = ScenarioQuery("total", "SELECT SUM(temp) AS total FROM hall [NOW]", 0, None)
    scenario = replace(read_scenario(FOLDER / "calm.toml"), queries=(each, total))
    bed = run_scenario(scenario, 200, kind=partial(EventTestbed, pushdown="everything"))
    [fold] = set(folds_of(bed, "total").values())
    together, alone = merged(bed, "hall", fold), delivered(bed)
    assert set(together) & set(alone)
    until = bed.station.engine.clock
    counted = [sum(arrival <= until for arrival, _ in found.values()) for found in (together, alone)]
    assert [ledger(bed)["merged"], ledger(bed)["received"] - ledger(bed)["merged"]] == counted
    assert min(counted) >= 0.9 * len(produced(bed))


def test_a_sensor_that_fails_leaves_nulls():
    bed = ran("sensor_fails", SECONDS)
    rows = {tick: dict(rows) for (tick, _), (_, rows) in answers(bed, "now").items()}
    assert [rows[tick][5] is None for tick in (90, 100, 200, 210)] == [False, True, True, False]
    assert answers(bed, "now")[150, 1][0]["hall"] == [8, 8]


def test_mote_dies_when_its_battery_is_empty():
    bed = ran("battery_of_the_worst_dies", SECONDS)
    died = bed.tally.died
    assert {why for _, why in died.values()} == {"battery"}
    for mote, (time, _) in died.items():
        assert 15.0 <= bed.built.motes[mote].spent < 16.5  # it notices when it wakes the next time
        assert max(tick for site, tick in produced(bed) if site == mote) * 1_000_000 < time
    # Radios that are always on draw the same everywhere: the mote that sends most is empty first, and all die.
    assert len(died) == 8


@pytest.mark.promise("agenda")
def test_motes_without_feasible_agenda_stay_awake_with_reason(tmp_path):
    """With a slow radio a round of one second has no room for a query that wants every reading; when it goes, motes sleep again."""
    for name in ("hall.toml", "calm.toml"):
        text = (FOLDER / name).read_text().replace("every 10 sec", "every 1 sec").replace("telosb", "mica2")
        (tmp_path / name).write_text(text)
    everything = ScenarioQuery("everything", "SELECT site, temp, supply FROM hall [NOW]", 60_000, 120_000)
    rarely = ScenarioQuery("rarely", "SELECT site, temp FROM hall [NOW] ACQUIRE EVERY 20 SEC", 0, None)
    scenario = replace(read_scenario(tmp_path / "calm.toml"), queries=(rarely, everything))
    bed = run_scenario(scenario, 200, kind=partial(EventTestbed, agenda=True))
    station, begin = bed.station, bed.scenario.begin_ms
    awake, asleep = (each for each in station.events.latest if each.what in (AWAKE, ASLEEP))
    assert [(each.what, (each.at_ms - begin) // 1_000) for each in (awake, asleep)] == [(AWAKE, 60), (ASLEEP, 120)]
    assert station.events.counts[AWAKE] == station.events.counts[ASLEEP] == 1
    assert re.search(r"its slot would end after \d+ ms, and the next round", awake.why)
    assert station.world.agenda is not None and station.world.awake_reason is None
    assert judge(bed, "rarely") >= 5
