"""Link reports make a topology, a topology makes a tree; a tree is one or is refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.frame import Frame, Kind
from gateway.image import Arriving, decode_chunk
from innet import downlink, uplink
from innet.errors import PayloadError, RoutingError
from innet.payload import MAX_NEIGHBOURS, Orders, decode_links, decode_orders, encode_links
from innet.program.program import MoteProgram
from innet.routing.choose import choose_tree
from innet.routing.topology import Heard, LinksReport, Topology
from innet.routing.tree import RoutingTree


def topology(*links):
    """From (a, b, quality of both directions)."""
    heard = {}
    for a, b, quality in links:
        heard.setdefault(a, []).append(Heard(b, quality))
        heard.setdefault(b, []).append(Heard(a, quality))
    return Topology().with_reports(LinksReport(mote, tuple(found)) for mote, found in heard.items())


def test_two_good_hops_beat_one_bad_one():
    tree = choose_tree(topology((0, 1, 255), (1, 2, 255), (0, 2, 100)), [0])
    assert tree.path(2) == (2, 1, 0)
    assert tree.depth(2) == 2


def test_ties_go_to_the_lower_number():
    tree = choose_tree(topology((0, 5, 200), (0, 4, 200), (5, 9, 200), (4, 9, 200)), [0])
    assert tree.parent[9] == 4


def test_who_reaches_nobody_is_left_out():
    tree = choose_tree(topology((0, 1, 255), (7, 8, 255), (1, 9, 0)), [0])
    assert tree.parent == {1: 0}
    with pytest.raises(RoutingError, match="7 has no parent"):
        tree.path(7)


def test_a_report_replaces_the_earlier_one():
    first = topology((0, 1, 255))
    second = first.with_reports([LinksReport(1, (Heard(2, 9),))])
    assert second.heard == {0: {1: 255}, 1: {2: 9}}
    assert second.with_reports([LinksReport(1, (Heard(2, 9),))]) is second
    assert second.motes == {0, 1, 2}


def test_a_direction_that_nobody_reported_is_as_good_as_the_other():
    one_sided = Topology({1: {2: 51}})
    assert one_sided.cost(1, 2) == one_sided.cost(2, 1) == 25
    assert one_sided.cost(1, 3) == float("inf")


@pytest.mark.parametrize("parent", [{1: 2, 2: 1}, {1: 1}, {0: 1, 1: 0}, {1: 7}])
def test_what_is_no_tree(parent):
    with pytest.raises(RoutingError):
        RoutingTree((0,), parent)


edges = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 255)).filter(lambda e: e[0] != e[1]))


@given(edges)
def test_trees_are_the_cheapest(links):
    """Against the obvious: relax all links until nothing gets cheaper."""
    found = topology(*links)
    cost = {0: 0.0}
    for _ in range(10):
        for a in found.motes:
            for b in found.motes & cost.keys():
                cost[a] = min(cost.get(a, float("inf")), cost[b] + found.cost(a, b))
    tree = choose_tree(found, [0])
    assert set(tree.parent) | {0} == {mote for mote, value in cost.items() if value < float("inf")}
    for mote in tree.parent:
        path = tree.path(mote)
        assert sum(found.cost(a, b) for a, b in pairwise(path)) == pytest.approx(cost[mote])


reports = st.builds(
    lambda heard: LinksReport(3, tuple(Heard(n, q) for n, q in heard.items())),
    st.dictionaries(st.integers(0, 0xFFFF).filter(lambda n: n != 3), st.integers(0, 255), max_size=MAX_NEIGHBOURS),
)


@given(reports)
def test_reports_survive_the_air(report):
    decoded = decode_links(encode_links(report), 3)
    assert set(decoded.heard) == set(report.heard)


def test_the_best_neighbours_are_reported():
    many = LinksReport(3, tuple(Heard(n, n) for n in range(100, 200)))
    decoded = decode_links(encode_links(many), 3)
    assert [h.neighbour for h in decoded.heard] == list(range(199, 199 - MAX_NEIGHBOURS, -1))


@given(st.binary(max_size=86))
def test_fuzz_reports(payload):
    """The invariant: a report of distinct others, or PayloadError."""
    try:
        report = decode_links(payload, 3)
    except PayloadError:
        return
    names = [heard.neighbour for heard in report.heard]
    assert 3 not in names
    assert len(set(names)) == len(names)


def test_doors():
    program = MoteProgram(3, 0, 1, 0, b"\x00")
    [message] = downlink.programs(downlink.images([program]))
    assert (message.kind, message.mote) == (Kind.PROGRAM, 3)
    image = Arriving().take(Kind.PROGRAM, decode_chunk(message.payload))
    assert decode_orders(image, 3) == Orders((program,))
    good = Frame(Kind.LINKS, 3, 1, 0, encode_links(LinksReport(3, (Heard(0, 9),))))
    reports, errors = uplink.rise([Frame(Kind.LINKS, 4, 1, 0, b"\x05"), good])
    assert reports == [LinksReport(3, (Heard(0, 9),))]
    assert [(error.code, error.mote) for error in errors] == [("size", 4)]
