"""Agendas: invariants of random ones, and small ones checked by hand."""

from dataclasses import replace
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from innet.errors import PlacementError
from innet.payload import (
    MoteAssignment,
    RadioSchedule,
    decode_assignment,
    decode_links,
    encode_assignment,
    encode_links,
)
from innet.placement.agenda import MAX_FIRST_ROUND, Activity, Slot
from innet.placement.agenda_scheduler import MAX_EPOCHS, MoteWork, longest_round, make_agenda, schedule_placement
from innet.placement.energy_prediction import compute_slot_lengths
from innet.placement.load_model import NetworkLoads, Round
from innet.placement.placement_search import FoldOption, build_placement
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree
from innet.routing.topology import MAX_NEIGHBOURS, LinksReport, NeighbourLink, Topology
from innet.routing.tree import RoutingTree
from tests.innet.placement_fixtures import deliver, line, mean, world_of

CHAIN = RoutingTree((0,), {1: 0, 2: 1, 3: 2})


def test_motes_of_chain_send_one_after_another():
    work = {site: MoteWork((0,), 20.0, 1.0, 5.0) for site in (1, 2, 3)}
    agenda = make_agenda(CHAIN, work, 10, 1000)
    assert agenda.sites[3].slots == (
        Slot(0, 20, Activity.SENSE), Slot(20, 1, Activity.COMPUTE), Slot(21, 5, Activity.SEND, 2),
    )  # fmt: skip
    assert agenda.sites[2].slots[2:] == (Slot(21, 5, Activity.RECEIVE, 3), Slot(26, 5, Activity.SEND, 1))
    assert agenda.sites[1].slots[2:] == (Slot(26, 5, Activity.RECEIVE, 2), Slot(31, 5, Activity.SEND, 0))
    assert (agenda.latest_ms, agenda.period_ms, agenda.sites[1].awake_ms) == (36, 10_000, 31)


def test_motes_out_of_range_send_at_same_time():
    ratios = {**line(2), **{pair: 1.0 for pair in ((0, 11), (11, 0), (11, 12), (12, 11))}}
    tree = choose_tree(Topology.of_ratios(ratios), (0,))
    work = {site: MoteWork(send_ms=5.0) for site in tree.parent}
    apart = make_agenda(tree, work, 10, 1000, Topology.of_ratios(ratios))
    assert [apart.sites[site].of(Activity.SEND)[0].start_ms for site in (2, 12, 1, 11)] == [0, 0, 5, 10]
    together = make_agenda(tree, work, 10, 1000)
    assert [together.sites[site].of(Activity.SEND)[0].start_ms for site in (2, 12, 1, 11)] == [0, 5, 10, 15]


@pytest.mark.parametrize(("speaks", "hears"), [(12, 1), (2, 11)])
def test_mote_audible_at_other_receiver_waits(speaks, hears):
    ratios = {**line(2), **{pair: 1.0 for pair in ((0, 11), (11, 0), (11, 12), (12, 11))}, (speaks, hears): 0.1}
    topology = Topology.of_ratios(ratios)
    tree = RoutingTree((0,), {1: 0, 2: 1, 11: 0, 12: 11})
    agenda = make_agenda(tree, {site: MoteWork(send_ms=5.0) for site in tree.parent}, 10, 1000, topology)
    assert [agenda.sites[site].of(Activity.SEND)[0].start_ms for site in (2, 12)] == [0, 5]


@pytest.mark.promise("agenda")
def test_mote_missing_from_full_report_waits():
    count = 2 * MAX_NEIGHBOURS
    motes = range(count)
    # All motes hear each other, better at shorter distance, and report as many links as fit into a frame.
    heard = {at: tuple(NeighbourLink(n, 255 - 4 * abs(n - at)) for n in motes if n != at) for at in motes}
    reports = [decode_links(encode_links(LinksReport(at, heard[at])), at) for at in motes]
    tree = RoutingTree((0,), {site: site // 3 for site in motes if site})
    work = {site: MoteWork(send_ms=5.0) for site in tree.parent}
    agenda = make_agenda(tree, work, 10, 1000, Topology().with_reports(reports))
    begins = sorted(own.of(Activity.SEND)[0].start_ms for own in agenda.sites.values())
    assert all(later - sooner >= 5 for sooner, later in pairwise(begins))


def test_agenda_beyond_limit_names_mote():
    with pytest.raises(
        PlacementError, match="site 1: its slot would end after 1200 ms, and the next round begins after 1000 ms"
    ):
        make_agenda(CHAIN, {site: MoteWork(send_ms=400.0) for site in (1, 2, 3)}, 1, 1000)


def star(count):
    return RoutingTree((0,), {1: 0, **dict.fromkeys(range(2, count + 2), 1)})


@pytest.mark.promise("agenda")
@pytest.mark.parametrize(
    ("tree", "send_ms", "period", "said"),
    [
        (CHAIN, 65_535.0, 2**32 - 1, None),
        (CHAIN, 65_535.1, 2**32 - 1, "site 3: its slot would take 65,536 ms, and a slot takes at most 65,535 ms"),
        (CHAIN, 5.0, 2**32, "a round of 4,294,967,296 ms exceeds the 4,294,967,295 ms that motes can count"),
        (star(319), 5.0, 10_000, None),
        (star(320), 5.0, 10_000, "site 1: it has 320 children, and a mote has at most 320 slots with its own"),
    ],
)
def test_largest_agenda_survives_encoding(tree, send_ms, period, said):
    work = dict.fromkeys(tree.parent, MoteWork(send_ms=send_ms))
    if said:
        with pytest.raises(PlacementError, match=said):
            make_agenda(tree, work, period, 1)
        return
    agenda = replace(make_agenda(tree, work, period, 1), first=MAX_FIRST_ROUND)
    codes = [
        MoteProgram(1, sampling, 1, 1, b"\x03" * 92 + b"\x00") for sampling in range(11)
    ]  # as many as a schedule may have
    for site, own in agenda.sites.items():
        orders = MoteAssignment(tuple(codes), own.parent, RadioSchedule.of(agenda, site))
        assert decode_assignment(encode_assignment(1, orders), site).radio_schedule == orders.radio_schedule


def test_round_is_longest_that_arrives_in_time():
    assert longest_round(10, 1000) == Round(1, 10)
    assert longest_round(10, 1000, 9_999) == Round(1, 10)
    assert longest_round(10, 1000, 30_000) == Round(3, 10)
    assert longest_round(10, 1000, 30_001) == Round(4, 10)
    assert longest_round(10, 1000, 10**9) == Round(MAX_EPOCHS, 10)
    problem = world_of(line(3), epochs=4)
    placement = build_placement([deliver()], [], (), problem)
    whole = schedule_placement(placement, problem)
    assert (whole.period, 30_010 < whole.latest_ms < 30_200) == (40, True)
    assert schedule_placement(placement, problem, whole.latest_ms).period == 40
    assert schedule_placement(placement, problem, whole.latest_ms - 1).period == 30
    with pytest.raises(PlacementError, match=r"arrives after \d+ ms, and is to arrive within 20"):
        schedule_placement(placement, problem, 20)


@pytest.mark.parametrize("ratio", [1.0, 0.7])
def test_slot_lengths_equal_predicted_listening(ratio):
    problem = world_of(line(3, ratio))
    placement = build_placement([deliver()], [], (), problem, {})
    reckoned = compute_slot_lengths(
        NetworkLoads.of(placement, problem.schedules, problem.sizes, problem.round), problem
    )
    agenda = schedule_placement(placement, problem)
    assert reckoned == {site: own.of(Activity.SEND)[0].length_ms for site, own in agenda.sites.items()}


# --- true of every agenda --------------------------------------------------------------------------------------------


@st.composite
def networks(draw):
    """Random links, some in one direction only, and the work of each mote."""
    count = draw(st.integers(1, 10))
    ratios = {}
    for site in range(1, count + 1):
        for other in {draw(st.integers(0, site - 1)), draw(st.integers(0, site - 1))}:
            ratios[site, other] = draw(st.sampled_from([1.0, 0.7]))
            ratios[other, site] = draw(st.sampled_from([1.0, 0.7]))
    for _ in range(draw(st.integers(0, count))):
        pair = draw(st.integers(0, count)), draw(st.integers(1, count))
        if pair[0] != pair[1]:
            ratios.setdefault(pair, 0.2)
    ms = st.floats(0, 40)
    work = {
        site: MoteWork(tuple(sorted(draw(st.sets(st.integers(0, 3))))), draw(ms), draw(ms), draw(ms))
        for site in range(1, count + 1)
        if draw(st.booleans())
    }
    return Topology.of_ratios(ratios), work


@pytest.mark.promise("agenda")
@given(networks(), st.booleans())
def test_invariants_of_random_agendas(network, told):
    topology, work = network
    tree = choose_tree(topology, (0,))
    agenda = make_agenda(tree, work, 5, 1000, topology if told else None)
    assert agenda.sites.keys() == tree.parent.keys()
    sends = {}
    for site, own in agenda.sites.items():
        assert own.parent == tree.parent[site]
        for slot, following in zip(own.slots, own.slots[1:], strict=False):
            assert slot.end_ms <= following.start_ms  # slots of a mote do not overlap
        assert 0 <= own.slots[0].start_ms and own.slots[-1].end_ms <= agenda.period_ms
        [sends[site]] = own.of(Activity.SEND)
        assert own.slots[-1] == sends[site]  # after all receiving and sensing
        assert sends[site].length_ms >= work.get(site, MoteWork()).send_ms
    for site, own in agenda.sites.items():
        heard = {slot.peer: (slot.start_ms, slot.end_ms) for slot in own.of(Activity.RECEIVE)}
        assert heard == {c: (sends[c].start_ms, sends[c].end_ms) for c in tree.children[site]}
        wanted = work.get(site, MoteWork())
        assert sum(s.length_ms for s in own.of(Activity.SENSE)) == len(wanted.ticks) * ceil(wanted.sense_ms)
    if sends:  # repeated slots begin after all first ones
        again = min(slot.start_ms for slot in sends.values()) + agenda.repeat_ms
        assert again == max(own.slots[-1].end_ms for own in agenda.sites.values())
    for one, slot in sends.items():
        for two, other in sends.items():
            if one != two and slot.start_ms < other.end_ms and other.start_ms < slot.end_ms:
                assert told
                assert tree.parent[one] not in (two, tree.parent[two])
                assert topology.ratio(two, tree.parent[one]) == 0


@pytest.mark.promise("agenda")
@given(st.integers(1, 6), st.sampled_from([1.0, 0.6]), st.sampled_from([None, 15_000, 61_000]))
def test_agenda_of_placement_has_its_slots(count, ratio, within):
    problem = world_of(line(count, ratio))
    problem = replace(problem, round=longest_round(10, 1000, within))
    placement = build_placement([deliver()], [FoldOption(mean(), (deliver(),))], (0,), problem)
    agenda = schedule_placement(placement, problem, within)
    assert within is None or agenda.latest_ms <= within
    round = Round(agenda.period // 10, 10)
    slots = compute_slot_lengths(
        NetworkLoads.of(placement, problem.schedules, problem.sizes, round), replace(problem, round=round)
    )
    sends = {site: own.of(Activity.SEND)[0].length_ms for site, own in agenda.sites.items()}
    assert sends == {site: ceil(length) for site, length in slots.items()}
    for own in agenda.sites.values():
        assert [slot.start_ms for slot in own.of(Activity.SENSE)] == list(range(0, agenda.period_ms, 10_000))
