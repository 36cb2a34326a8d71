"""Placements: the chosen alternatives, their predicted cost, and invariants of random ones."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.payload import encode_readings, epochs_per_frame, filter_report_interval
from gateway.frame import HEADER_SIZE
from innet.operators.fold import Fold
from innet.operators.mote_expression import TRUE, MoteConstant, SiteNumber, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.operators.slices import SlicePattern
from innet.placement.agenda_scheduler import longest_round, schedule_placement
from innet.placement.energy_prediction import enough_attempts, predict_energy
from innet.placement.fold_sharing import has_all_states, merge_folds
from innet.placement.load_model import NetworkLoads, Round, bound_partials, predict_partial_loads, predict_reading_loads
from innet.placement.placement import PlacedOperator, conditions, is_about_site, select_sites
from innet.placement.placement_search import FoldOption, build_placement, place
from innet.placement.statistics import DEFAULT_SELECTIVITY, GUESS, estimate_condition
from innet.routing.tree import RoutingTree
from tests.innet.placement_fixtures import ACQUIRE, BY_SITE, BY_VOLT, TEMP, VOLT, WARM, deliver, line, mean, world_of

MEAN = FoldOption(mean(), (deliver(),))


def chosen(problem, *choices, delivered=()):
    placement, weighed = place(delivered, choices, problem)
    return placement, [each.runs for each in weighed]


def covering_fold(fold, folds):
    """Return the first of `folds` that has all states of `fold`."""
    return next(wider for wider in folds if has_all_states(wider, fold))


def test_mean_is_folded_in_network():
    placement, runs = chosen(world_of(line(4)), MEAN)
    assert runs == [True]
    [placed] = placement.placed
    assert (placed.sites, placed.merging, placed.number) == ((1, 2, 3, 4), (), 1)


def test_delivered_readings_are_not_folded():
    placement, runs = chosen(world_of(line(4)), MEAN, delivered=[deliver()])
    assert runs == [False]
    assert [placed.operator for placed in placement.placed] == [deliver()]


def test_two_folds_pay_only_together():
    """Each alone would be added to the readings that the other needs. The search also begins with all folds."""
    high = FoldOption(mean(kind="MAX"), (deliver(),))
    _, runs = chosen(world_of(line(4)), MEAN, high)
    assert runs == [True, True]


def test_group_per_site_saves_frames_only():
    """As many groups as readings: a slice of six epochs takes one message instead of six."""
    long = FoldOption(mean(BY_SITE), (deliver(),))
    short = FoldOption(mean(BY_SITE, slices=SlicePattern.cut(10, (0,), 10)), (deliver(),))
    assert chosen(world_of(line(6)), long)[1] == [True]
    [weighed] = place((), [short], world_of(line(12)))[1]
    assert weighed.messages[0] > 0 and weighed.joules[0] > 0


@pytest.mark.promise("lifetime")
def test_alternative_is_weighed_with_its_own_rounds():
    """Three epochs could share a round if collected readings did not take too long to arrive; partials are faster."""
    network = replace(world_of(line(12)), round=longest_round(10, 1_000, 20_150))

    def rounds(placement):
        return Round(schedule_placement(placement, network, 20_150).period // 10, 10)

    collected = build_placement([deliver()], [], (), network)
    folded = build_placement([], [MEAN], [0], network)
    assert [network.round.epochs, rounds(collected).epochs, rounds(folded).epochs] == [3, 2, 3]
    [weighed] = place((), [MEAN], network, find_round=rounds)[1]
    for placement, joules in zip((folded, collected), weighed.joules, strict=True):
        found = predict_energy(placement, replace(network, round=rounds(placement)))
        used = sum(use.total for use in found.motes.values())
        assert joules == pytest.approx(used / found.epoch_ms * 3_600_000)


@pytest.mark.promise("lifetime")
def test_alternative_without_agenda_is_not_chosen():
    network = world_of(line(12))
    wanted = [deliver()]  # another query has the readings delivered, so a fold saves nothing
    never_folded = place(wanted, [MEAN], network)[1]
    assert [each.runs for each in never_folded] == [False]
    late = place(wanted, [MEAN], network, find_round=lambda found: (found.folds and network.round) or None)[1]
    assert [each.runs for each in late] == [True]


def test_decision_reason_has_both_figures():
    [weighed] = place((), [MEAN], world_of(line(4)))[1]
    assert weighed.reason.startswith("folded in the network: all motes use ")
    assert weighed.joules[0] < weighed.joules[1] and weighed.messages[0] < weighed.messages[1]
    assert weighed.reason.count(" J and ") == 2


def test_folds_of_same_tuples_merge():
    both = merge_folds([mean(), mean(kind="MAX"), mean(kind="VARIANCE"), mean(BY_SITE), mean(kind="COUNT")])
    assert [fold.states for fold in both] == [(("VARIANCE", TEMP), ("MAX", TEMP)), (("SUM", TEMP),)]
    assert covering_fold(mean(), both) is both[0]
    assert covering_fold(mean(BY_SITE), both) is both[1]


def test_running_fold_keeps_its_number():
    problem = world_of(line(3))
    first, _ = place((), [MEAN], problem)
    grouped = FoldOption(mean(BY_SITE), (deliver(),))
    second, _ = place((), [grouped, MEAN], problem, first.folds, 1)
    assert second.folds[:1] == first.folds
    assert {placed.operator: placed.number for placed in second.folds} == {mean(BY_SITE): 2, mean(): 1}
    third, _ = place((), [FoldOption(mean(kind="COUNT"), (deliver(),))], problem, second.folds, 2)
    assert third.folds == second.folds  # their sums contain the count


def test_running_fold_without_state_gets_sibling():
    """Motes drop a table that changes, and its query would lose readings."""
    problem = world_of(line(3))
    first, _ = place((), [MEAN], problem)
    wider = FoldOption(mean(kind="VARIANCE"), (deliver(),))
    second, _ = place((), [wider], problem, first.folds, 255)
    assert [(placed.operator, placed.number) for placed in second.folds] == [(mean(), 1), (wider.fold, 2)]
    assert has_all_states(wider.fold, mean()) and not has_all_states(mean(), wider.fold)


def test_condition_on_site_selects_sites():
    here = MoteSelect(WARM, make_instruction("LE", SiteNumber(), MoteConstant(2)))
    assert select_sites(deliver(here), (1, 2, 3)) == (1, 2)
    assert [is_about_site(term) for term in conditions(deliver(here))] == [True, False]
    never = MoteSelect(ACQUIRE, make_instruction("GT", SiteNumber(), MoteConstant(None)))
    assert select_sites(deliver(never), (1, 2, 3)) == ()


def test_forwarding_mote_merges_partials():
    fold = replace(mean(), child=MoteSelect(ACQUIRE, make_instruction("EQ", SiteNumber(), MoteConstant(3))))
    placement = build_placement((), [FoldOption(fold, ())], [0], world_of(line(4)))
    [placed] = placement.placed
    assert (placed.sites, placed.merging) == ((3,), (1, 2))


def test_sites_without_route_are_reported():
    problem = world_of({**line(2), (7, 8): 1.0, (8, 7): 1.0})
    placement, _ = place([deliver()], [], problem)
    assert placement.unreached == (7, 8)
    assert set(predict_reading_loads(placement, problem.schedules, problem.sizes, problem.round)) == {1, 2}


@pytest.mark.parametrize(
    ("term", "share"),
    [
        (TRUE, 1.0),
        (MoteConstant(None), 0.0),
        (make_instruction("EQ", TEMP, TEMP), 1.0),
        (make_instruction("NE", TEMP, TEMP), 0.0),
        (make_instruction("NOT", make_instruction("EQ", TEMP, VOLT)), 1 - DEFAULT_SELECTIVITY["EQ"]),
        (
            make_instruction("AND", make_instruction("GT", TEMP, VOLT), make_instruction("LT", TEMP, VOLT)),
            DEFAULT_SELECTIVITY["GT"] * DEFAULT_SELECTIVITY["LT"],
        ),
        (make_instruction("OR", make_instruction("GT", TEMP, VOLT), TRUE), 1.0),
    ],
)
def test_default_selectivity_of_condition(term, share):
    assert estimate_condition(term) == pytest.approx(share)


def test_groups_are_bounded_by_readings():
    assert GUESS.most_groups(mean(), range(5)) == 1
    assert GUESS.most_groups(mean(BY_SITE), range(5)) == 5
    assert GUESS.most_groups(mean(BY_VOLT, slices=SlicePattern.cut(10, (0,), 10)), range(3)) == 3


# --- costs by hand ---------------------------------------------------------------------------------------------------


def test_messages_of_collecting_and_folding():
    problem = world_of(line(3), epochs=6)
    collected = build_placement([deliver()], [MEAN], (), problem)
    folded = build_placement((), [MEAN], (0,), problem)
    assert hops(collected, problem) == [
        (1, 0, 1, False),
        (1, 0, 2, True),
        (2, 1, 1, False),
        (2, 1, 1, True),
        (3, 2, 1, False),
    ]
    assert hops(folded, problem) == [(1, 0, 1, False), (2, 1, 1, False), (3, 2, 1, False)]
    assert predict_energy(collected, problem).total.attempts == pytest.approx(6)
    assert predict_energy(folded, problem).total.attempts == pytest.approx(3)


def test_readings_of_long_round_take_several_frames():
    """20 epochs; 17 of the widest values fit into a frame."""
    problem = world_of(line(1), epochs=20)
    placement = build_placement([deliver()], [], (), problem)
    [load] = predict_reading_loads(placement, problem.schedules, problem.sizes, problem.round)[1]
    assert (load.frames, load.max_frames) == (2, 2)
    assert load.size < load.max_size <= problem.sizes.room


def test_forwarder_sends_when_child_does():
    """Three motes in a line: the last two filter, the first has no readings of its own."""
    problem = world_of(line(3), sites=(2, 3))
    placement = build_placement([deliver(WARM)], [], (), problem, {})
    loads = NetworkLoads.of(placement, problem.schedules, problem.sizes, problem.round)
    [alone] = {load.send_share for found in loads.readings.values() for load in found}
    assert 0.1 < alone < 1
    assert loads.send_shares(placement.tree) == pytest.approx(
        {3: alone, 2: 1 - (1 - alone) ** 2, 1: 1 - (1 - alone) ** 2}
    )
    folded = build_placement((), [MEAN], (0,), problem, {})  # of slices of six rounds
    loads = NetworkLoads.of(folded, problem.schedules, problem.sizes, problem.round)
    assert loads.send_shares(folded.tree) == pytest.approx(dict.fromkeys((1, 2, 3), 1 / 6))


@pytest.mark.parametrize("epochs", [1, 3, 4, 16])
@pytest.mark.parametrize("attributes", [("temp",), ("temp", "volt", "more")])
def test_slot_has_room_for_delayed_filter_reports(epochs, attributes):
    """The longest delay, then a round in which every reading is sent with the widest values."""
    problem = world_of(line(1), epochs, attributes=attributes)
    placement = build_placement([deliver(WARM, *attributes)], [], (), problem, {})
    [load] = predict_reading_loads(placement, problem.schedules, problem.sizes, problem.round)[1]
    [sampling] = problem.schedules[1].samplings
    after, room = filter_report_interval(sampling), epochs_per_frame(sampling)
    waited = next(n for n in range(0, after + epochs, epochs) if n + epochs >= after)
    rows = [None] * waited + [(2**31 - 1,) * (len(attributes) - 1) + (None,)] * epochs
    frames = [encode_readings(sampling, 0, rows[at : at + room]) for at in range(0, len(rows), room)]
    assert len(frames) <= load.max_frames
    assert sum(HEADER_SIZE + len(frame) for frame in frames) <= load.max_frames * load.max_size


def hops(placement, problem):
    loads = NetworkLoads.of(placement, problem.schedules, problem.sizes, problem.round)
    return sorted((t.sender, t.receiver, t.frames, t.forwarded) for t in loads.traffic(placement.tree))


def test_filter_saves_messages_down_to_reports():
    problem = world_of(line(3))
    everything = predict_energy(build_placement([deliver()], [], (), problem), problem)
    some = predict_energy(build_placement([deliver(WARM)], [], (), problem), problem)
    share = DEFAULT_SELECTIVITY["GT"]
    waits = sum((1 - share) ** epoch for epoch in range(10))  # the tenth report is always sent
    assert some.total.attempts == pytest.approx(everything.total.attempts / waits)


# --- true of every placement -----------------------------------------------------------------------------------------

CHILDREN = [ACQUIRE, WARM, MoteSelect(ACQUIRE, make_instruction("LE", SiteNumber(), MoteConstant(3)))]
CHOICES = [
    FoldOption(mean(*keys, child=child, kind=kind), (deliver(child),))
    for keys in ((), (BY_SITE,))
    for child in CHILDREN
    for kind in ("SUM", "MAX")
]


@st.composite
def worlds(draw):
    """A random tree with its links, some of them bad."""
    count = draw(st.integers(1, 9))
    parent = {site: draw(st.integers(0, site - 1)) for site in range(1, count + 1)}
    ratio = {site: draw(st.sampled_from([1.0, 0.8, 0.5])) for site in parent}
    ratios = {pair: ratio[site] for site, up in parent.items() for pair in ((site, up), (up, site))}
    sites = draw(st.sets(st.sampled_from(sorted(parent)), min_size=1))
    return world_of(ratios, draw(st.integers(1, 4)), sorted(sites))


@pytest.mark.promise("cheapest-placement")
@given(worlds(), st.lists(st.sampled_from(CHOICES), max_size=4), st.booleans())
def test_placement_serves_every_operator(problem, choices, collected):
    delivered = [deliver()] if collected else []
    placement, weighed = place(delivered, choices, problem)
    tree = problem.network.tree
    running = {each.fold for each in weighed if each.runs}
    placed = {p.operator: p for p in placement.placed}
    for choice in choices:
        if choice.fold in running:
            held = placed[covering_fold(choice.fold, [p.operator for p in placement.folds])]
            assert set(held.sites) == set(select_sites(choice.fold, problem.sites["field"]))
            for site in held.sites:  # every mote on the route of partials has a table
                assert set(tree.path(site)[:-1]) <= {*held.sites, *held.merging}
            assert held.room >= 1 and not set(held.sites) & set(held.merging)
        else:
            assert all(d in placed for d in choice.unfolded_readings)
    assert all(d in placed for d in delivered)
    numbers = [p.number for p in placement.placed if isinstance(p.operator, Fold)]
    assert len(set(numbers)) == len(numbers) and 0 not in numbers
    assert place(delivered, choices, problem) == (placement, weighed)


@pytest.mark.promise("cheapest-placement")
@given(worlds(), st.lists(st.sampled_from(CHOICES), max_size=4))
def test_placement_costs_at_most_all_or_nothing(problem, choices):
    placement, _ = place((), choices, problem)

    def joules(arrangement):
        return sum(use.total for use in predict_energy(arrangement, problem).motes.values())

    found = tuple(dict.fromkeys(choices))
    for running in (range(len(found)), ()):
        assert joules(placement) <= joules(build_placement((), found, running, problem)) * (1 + 1e-12)


@pytest.mark.promise("sampled-once")
@given(worlds(), st.sampled_from(CHOICES))
def test_slice_costs_at_most_one_message_per_mote(problem, choice):
    """If a partial fits into a frame: the purpose of folding."""
    problem = replace(problem, round=Round(6, 10))
    placement = build_placement((), [choice], (0,), problem)
    for loads in predict_partial_loads(placement, problem.sizes, problem.round).values():
        assert len(loads) == 1
        if not choice.fold.keys:
            assert loads[0].max_frames == 1


@pytest.mark.parametrize(
    ("keys", "child", "room", "most"),
    [
        ((), ACQUIRE, 1, 1),
        ((), WARM, 2, 2),
        ((), WARM, 1, 24),  # without room, each reading may be a partial of its own
        ((BY_SITE,), ACQUIRE, 4, 4),
        ((BY_SITE,), ACQUIRE, 3, 24),
        ((BY_VOLT,), ACQUIRE, 24, 24),
        ((BY_SITE, BY_VOLT), WARM, 100, 25),
    ],
)
def test_bound_on_partials_of_slice(keys, child, room, most):
    """Four sites, six ticks in a slice."""
    placed = PlacedOperator(mean(*keys, child=child), (1, 2, 3, 4), 1, (), room)
    assert bound_partials(placed, 4, 1) == most


@pytest.mark.parametrize(("both", "enough"), [(1.0, 20), (0.5, 54.7), (0.01, 160), (0.0, 160)])
def test_attempts_suffice_in_99_of_100_rounds(both, enough):
    assert enough_attempts(20, both, 8) == pytest.approx(enough, abs=0.1)


def test_placement_has_shape_of_each_fold():
    tree = RoutingTree((0,), {1: 0})
    placed = PlacedOperator(mean(BY_SITE), (1,), 5)
    assert (placed.shape.aggregation, placed.shape.keys, placed.shape.kinds) == (5, 1, ("SUM",))
    assert build_placement((), [MEAN], (0,), world_of(line(1))).tree == tree
