"""Link reports give a topology, and a topology gives a tree."""

import tarfile
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.errors import PayloadError
from acquisition.schedule import Sampling, Schedule
from acquisition.ticks import EpochGrid
from gateway.frame import BROADCAST, Frame, FrameKind
from innet import downlink, uplink
from innet.errors import RoutingError
from innet.payload import MoteAssignment, decode_assignment, decode_links, encode_links
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree, update_tree
from innet.routing.topology import MAX_NEIGHBOURS, LinksReport, NeighbourLink, Topology
from innet.routing.tree import RoutingTree


def topology(*links):
    """Build a topology from (a, b, quality of both directions)."""
    heard = {}
    for a, b, quality in links:
        heard.setdefault(a, []).append(NeighbourLink(b, quality))
        heard.setdefault(b, []).append(NeighbourLink(a, quality))
    return Topology().with_reports(LinksReport(mote, tuple(found)) for mote, found in heard.items())


def test_two_good_hops_beat_one_bad_one():
    tree = choose_tree(topology((0, 1, 255), (1, 2, 255), (0, 2, 100)), [0])
    assert tree.path(2) == (2, 1, 0)
    assert tree.depth(2) == 2


def test_ties_go_to_the_lower_number():
    tree = choose_tree(topology((0, 5, 200), (0, 4, 200), (5, 9, 200), (4, 9, 200)), [0])
    assert tree.parent[9] == 4


def test_mote_without_path_is_left_out():
    tree = choose_tree(topology((0, 1, 255), (7, 8, 255), (1, 9, 0)), [0])
    assert tree.parent == {1: 0}
    with pytest.raises(RoutingError, match="7 has no parent"):
        tree.path(7)


def test_report_replaces_earlier_one():
    first = topology((0, 1, 255))
    second = first.with_reports([LinksReport(1, (NeighbourLink(2, 9),))])
    assert second.links == {0: {1: 255}, 1: {2: 9}}
    assert second.with_reports([LinksReport(1, (NeighbourLink(2, 9),))]) is second
    assert second.motes == {0, 1, 2}


def test_overtaken_report_is_ignored():
    new, old = LinksReport(1, (NeighbourLink(2, 9),), (1, 7)), LinksReport(1, (NeighbourLink(3, 9),), (1, 6))
    for reports in ([new, old], [old, new]):
        assert Topology().with_reports(reports).links == {1: {2: 9}}
    unchanged = Topology().with_reports([LinksReport(1, (NeighbourLink(2, 9),), (1, 5)), new])
    assert unchanged.with_reports([old]) is unchanged


def test_mote_missing_from_short_report_has_no_link():
    full = tuple(NeighbourLink(n, 200) for n in range(10, 10 + MAX_NEIGHBOURS))
    for heard, cost in ((full, 1.0), (full[1:], float("inf"))):
        assert (
            Topology().with_reports([LinksReport(1, heard), LinksReport(2, (NeighbourLink(1, 255),))]).cost(1, 2)
            == cost
        )


@pytest.mark.promise("agenda")
def test_full_report_makes_two_hops_audible():
    full = tuple(NeighbourLink(n, 200) for n in range(10, 10 + MAX_NEIGHBOURS))
    others = [LinksReport(2, (NeighbourLink(10, 90), NeighbourLink(11, 0))), LinksReport(3, (NeighbourLink(2, 90),))]
    named = {h.neighbour for h in full}
    for heard, audible in ((full, named | {2}), (full[:-1], named - {full[-1].neighbour})):
        known = Topology().with_reports([LinksReport(1, heard), *others]).audible
        assert known == {1: audible, 2: {10}, 3: {2}}


def test_unreported_direction_equals_opposite_one():
    one_sided = Topology({1: {2: 51}})
    assert one_sided.cost(1, 2) == one_sided.cost(2, 1) == 25
    assert one_sided.cost(1, 3) == float("inf")


@pytest.mark.promise("network-heals")
@pytest.mark.timeout(10)  # a check that is gone walks round and round
@pytest.mark.parametrize("parent", [{1: 2, 2: 1}, {1: 1}, {0: 1, 1: 0}, {1: 7}])
def test_loop_in_tree_is_refused(parent):
    with pytest.raises(RoutingError):
        RoutingTree((0,), parent)


@pytest.mark.promise("network-heals")
def test_mote_heard_by_two_gateways_has_one_parent():
    found = topology((100, 1, 255), (101, 1, 254), (1, 2, 255), (101, 3, 255))
    tree = choose_tree(found, [100, 101])
    assert tree.parent == {1: 100, 2: 1, 3: 101}
    assert [tree.gateway(mote) for mote in (1, 2, 3)] == [100, 100, 101]
    assert tree.children == {100: (1,), 101: (3,), 1: (2,), 2: (), 3: ()}


def test_tie_between_gateways_goes_to_lower_number():
    assert choose_tree(topology((7, 1, 200), (3, 1, 200)), [7, 3]).gateway(1) == 3


def test_children_come_before_their_parents():
    tree = RoutingTree((0,), {1: 0, 2: 1, 3: 1, 4: 3, 9: 0})
    assert tree.leaves_first == (4, 2, 3, 1, 9)
    assert tree.unreached([1, 4, 5, 8]) == (5, 8)


def test_long_line_needs_no_recursion():
    parent = {n: n - 1 for n in range(1, 3_000)}
    tree = RoutingTree((0,), parent)
    assert tree.depth(2_999) == 2_999
    assert tree.leaves_first[0] == 2_999


def test_ratios_make_a_topology():
    found = Topology.of_ratios({(1, 0): 0.5, (0, 1): 1.0, (2, 0): 0.9})
    assert found.quality(0, 1) == 255
    assert found.ratio(1, 0) == pytest.approx(0.5, abs=1 / 255)
    assert found.cost(2, 0) == float("inf")  # a direction that is not named delivers nothing


def test_unnamed_direction_delivers_nothing_to_mote_of_many():
    """A report of so many neighbours may have left some out; ratios have not."""
    many = {(sender, 0): 0.9 for sender in range(1, MAX_NEIGHBOURS + 1)}
    found = Topology.of_ratios({**many, (0, 99): 0.9})
    assert found.quality(99, 0) == 0


# --- anew, after reports and silence ---


def test_path_avoids_silent_mote():
    found = topology((0, 1, 255), (0, 2, 200), (1, 3, 255), (2, 3, 200), (1, 4, 255))
    tree = choose_tree(found, [0])
    assert tree.parent == {1: 0, 2: 0, 3: 1, 4: 1}
    after = update_tree(tree, found, silent={1})
    assert after.parent == {1: 0, 2: 0, 3: 2, 4: 1}
    assert update_tree(after, found).parent == {
        1: 0,
        2: 0,
        3: 1,
        4: 1,
    }  # an arrival clears it, and it is the best parent again


def test_mote_changes_parent_only_above_threshold():
    tree = choose_tree(topology((0, 1, 255), (0, 2, 250), (1, 3, 255), (2, 3, 255)), [0])
    assert tree.parent[3] == 1
    slightly_better = topology((0, 1, 240), (0, 2, 255), (1, 3, 255), (2, 3, 255))
    assert choose_tree(slightly_better, [0]).parent[3] == 2
    assert update_tree(tree, slightly_better) is tree
    much_better = topology((0, 1, 180), (0, 2, 255), (1, 3, 255), (2, 3, 255))
    assert update_tree(tree, much_better).parent[3] == 2
    assert update_tree(tree, slightly_better, switching=0).parent[3] == 2


def test_threshold_is_below_one_transmission():
    with pytest.raises(ValueError, match="less than 1"):
        update_tree(RoutingTree((0,), {}), Topology(), switching=1)


edges = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 255)).filter(lambda e: e[0] != e[1]))
some = st.sets(st.integers(0, 8), min_size=1, max_size=3)


def cheapest(found, roots):
    """The oracle: relax all links until no path gets cheaper."""
    cost = dict.fromkeys(roots, 0.0)
    for _ in range(len(found.motes) + 1):
        for a in found.motes - set(roots):
            for b in found.motes & cost.keys():
                cost[a] = min(cost.get(a, float("inf")), cost[b] + found.cost(a, b))
    return {mote: value for mote, value in cost.items() if value < float("inf")}


def price(found, tree, mote):
    return sum(found.cost(a, b) for a, b in pairwise(tree.path(mote)))


@pytest.mark.promise("network-heals")
@given(edges, some)
def test_tree_has_cheapest_paths(links, roots):
    found = topology(*links)
    cost = cheapest(found, roots)
    tree = choose_tree(found, roots)
    assert set(tree.parent) | roots == set(cost)
    for mote in tree.parent:
        assert price(found, tree, mote) == pytest.approx(cost[mote])
        parent = tree.parent[mote]
        others = [
            o for o in cost if o != mote and cost[o] + found.cost(mote, o) == cost[parent] + found.cost(mote, parent)
        ]
        assert parent == min(others)


@pytest.mark.promise("network-heals")
@given(edges, edges, some, st.sets(st.integers(0, 8), max_size=3), st.floats(0, 0.99))
def test_updated_tree_is_nearly_cheapest(before, after, roots, silent, switching):
    """From any earlier tree: every reachable mote is in it, silent motes forward only where no other path exists, and no hop
    wastes more than allowed.
    """
    silent -= roots
    tree = choose_tree(topology(*before), roots)
    found = topology(*after)
    rebuilt = update_tree(tree, found, silent, switching)
    assert set(rebuilt.parent) == set(cheapest(found, roots)) - roots
    talking = topology(*(link for link in after if not silent & set(link[:2])))
    cost = cheapest(talking, roots)
    for mote in cost.keys() - roots:
        parent = rebuilt.parent[mote]
        assert not silent & set(rebuilt.path(mote))
        through = cost[parent] + talking.cost(mote, parent)
        assert through <= cost[mote] + switching + 1e-9
        assert price(talking, rebuilt, mote) <= cost[mote] + switching * rebuilt.depth(mote) + 1e-9
        if mote in tree.parent and parent != tree.parent[mote]:
            was = tree.parent[mote]  # left because it is gone, silent, or too expensive
            assert was not in cost or cost[was] + talking.cost(mote, was) > cost[mote] + switching - 1e-9
    assert update_tree(rebuilt, found, silent, switching) is rebuilt


good_edges = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(200, 250)).filter(lambda e: e[0] != e[1]), min_size=8
)


@pytest.mark.promise("network-heals")
@given(good_edges, st.lists(st.integers(-1, 1), min_size=300, max_size=300))
def test_small_changes_keep_parents(links, changes):
    """Qualities that change by one step of 255 change no path of these by half a transmission."""
    links = list({frozenset(link[:2]): link for link in links}.values())
    tree = choose_tree(topology(*links), [0])
    wandered = topology(*((a, b, quality + changes[n]) for n, (a, b, quality) in enumerate(links)))
    assert update_tree(tree, wandered) is tree


# --- the office that was measured ---


def measured(folder):
    """Delivery ratios of the Intel lab. Its base, 0, has no measured transmissions; its links count in both directions."""
    with tarfile.open(folder / "intel_topology.tar.gz") as archive:
        lines = archive.extractfile("connectivity.txt").read().decode().splitlines()
    ratios = {}
    for fields in map(str.split, lines):
        if len(fields) == 3 and fields[0] != fields[1]:  # one line lost its value
            sender, receiver, ratio = int(fields[0]), int(fields[1]), float(fields[2])
            ratios[sender, receiver] = ratio
            if receiver == 0:
                ratios[0, sender] = ratio
    return ratios


@pytest.mark.promise("network-heals")
def test_measured_office_has_tree(shared_data):
    found = Topology.of_ratios(measured(shared_data))
    tree = choose_tree(found, [0])
    cost = cheapest(found, [0])
    assert tree.unreached(range(1, 55)) == (5,)
    assert set(tree.parent) == set(range(1, 55)) - {5}
    for mote in tree.parent:
        assert price(found, tree, mote) == pytest.approx(cost[mote])
    assert max(tree.depth(mote) for mote in tree.parent) >= 2
    assert update_tree(tree, found) is tree
    worst = max(tree.children, key=lambda member: (member != 0, len(tree.children[member])))
    around = update_tree(tree, found, silent={worst})
    assert around.unreached(range(1, 55)) == (5,)
    assert around.children[worst] == ()


reports = st.builds(
    lambda heard: LinksReport(3, tuple(NeighbourLink(n, q) for n, q in heard.items())),
    st.dictionaries(st.integers(0, 0xFFFF).filter(lambda n: n != 3), st.integers(0, 255), max_size=MAX_NEIGHBOURS),
)


@given(reports)
def test_links_report_survives_encoding(report):
    decoded = decode_links(encode_links(report), 3)
    assert set(decoded.links) == set(report.links)


def test_best_neighbours_are_reported():
    many = LinksReport(3, tuple(NeighbourLink(n, n) for n in range(100, 200)))
    decoded = decode_links(encode_links(many), 3)
    assert [h.neighbour for h in decoded.links] == list(range(199, 199 - MAX_NEIGHBOURS, -1))


@given(st.binary(max_size=86))
def test_fuzzed_links_give_report_or_payload_error(payload):
    """Invariant: a report of distinct other motes, or PayloadError."""
    try:
        report = decode_links(payload, 3)
    except PayloadError:
        return
    names = [heard.neighbour for heard in report.links]
    assert 3 not in names
    assert len(set(names)) == len(names)


def test_uplink_and_downlink():
    program = MoteProgram(3, 0, 1, 0, b"\x00")
    tree = RoutingTree((0,), {3: 9, 9: 0})
    sampling = Sampling(0, "", EpochGrid(0, 10), ())
    schedules = {
        site: Schedule(site, 1, samplings) for site, samplings in ((3, (sampling,)), (9, (sampling,)), (8, ()))
    }
    assert downlink.make_images([program], tree, schedules).keys() == {3, 9}
    assert decode_assignment(downlink.make_images([program], tree, schedules)[9], 9) == MoteAssignment((), parent=0)
    assert decode_assignment(downlink.make_images([program], tree, schedules)[3], 3) == MoteAssignment(
        (program,), parent=9
    )
    unheard = downlink.make_images([program], RoutingTree((0,), {}), schedules)
    assert decode_assignment(unheard[3], 3).parent == BROADCAST
    good = Frame(FrameKind.LINKS, 3, 1, 0, encode_links(LinksReport(3, (NeighbourLink(0, 9),))))
    reports, errors = uplink.receive([Frame(FrameKind.LINKS, 4, 1, 0, b"\x05"), good])
    assert reports == [LinksReport(3, (NeighbourLink(0, 9),), number=(1, 0))]
    assert [(error.code, error.mote) for error in errors] == [("size", 4)]
