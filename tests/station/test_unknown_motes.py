"""Unexpected frames: from motes of other networks nearby, and frames that only look valid."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from basestation.archive.memory import MemoryArchive
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.station.service import Station
from gateway.codec import encode_stream
from gateway.frame import MAX_PAYLOAD, Frame, FrameKind
from gateway.transports.memory import connected_pair
from innet.payload import encode_links
from innet.routing.topology import LinksReport, NeighbourLink
from simulator.scenario import read_scenario
from tests.simulation.scenario_judge import FOLDER

HALL = read_scenario(FOLDER / "calm.toml").deployment
CATALOG = read_deployed_catalog(HALL)
BEGIN_MS = 1_000_000
QUERIES = (
    "SELECT site, temp FROM hall WHERE temp > 20",
    "SELECT AVG(temp), MAX(supply) FROM hall [FROM NOW-50 TO NOW SLIDE 1 MIN]",
)
STRANGERS = (9, 700, 65_534, 65_535)


class Wire:
    """A station that knows all links and has queries, and the other end of its wire."""

    def __init__(self, agenda):
        ours, self.theirs = connected_pair()
        ours.open()
        self.theirs.open()
        self.station = Station(CATALOG, ours, MemoryArchive(), boot=1, now_ms=BEGIN_MS, deployment=HALL,
                               pushdown=PushdownPolicy.EVERYTHING, agenda=agenda)  # fmt: skip
        self.now_ms = BEGIN_MS
        for number, (mote, heard) in enumerate(HALL.topology.links.items()):
            self.say(Frame(FrameKind.LINKS, mote, 1, number, links_of(mote, heard)))
        self.step(250)
        for text in QUERIES:
            self.station.submit(text, self.now_ms)

    def say(self, frame):
        self.theirs.send(encode_stream(frame))

    def step(self, ms):
        self.now_ms += ms
        self.station.step(self.now_ms)
        return self.theirs.receive()


def links_of(mote, heard):
    return encode_links(LinksReport(mote, tuple(NeighbourLink(other, quality) for other, quality in heard.items())))


@pytest.mark.promise("network-heals")
def test_unknown_neighbour_never_becomes_parent():
    for agenda in (False, True):
        wire = Wire(agenda)
        tree = wire.station.world.tree
        near = {0: 255} | dict.fromkeys(STRANGERS, 255)
        wire.say(Frame(FrameKind.LINKS, 3, 1, 100, links_of(3, {1: 200, **dict.fromkeys(STRANGERS, 255)})))
        for number in STRANGERS:
            wire.say(Frame(FrameKind.LINKS, number, 1, 0, links_of(number, near | {3: 255, number: 0})))
            wire.say(Frame(FrameKind.READING, number, 1, 1, bytes((0, 0, 0, 0, 0, 0, 1, 9, 9, 9, 9))))
        wire.step(250)
        assert wire.station.errors == {"stranger": 2 * len(STRANGERS)}
        assert wire.station.world.tree.parent.keys() == tree.parent.keys()
        assert wire.station.world.tree.parent[3] == 1
        assert set(wire.station.world.desired) <= set(HALL.motes)
        assert not set(wire.station.reconcilers.by_mote) & set(STRANGERS)


MOTES = st.sampled_from((*HALL.motes, 0, *STRANGERS))
NEIGHBOURS = st.dictionaries(MOTES, st.sampled_from((0, 100, 255)), max_size=6)
SMALL = st.integers(0, 8)
HEADS = {
    FrameKind.READING: st.builds(lambda number, first, flags, count: bytes((number, *first.to_bytes(4, "little"), flags, count)),
                            st.sampled_from((0, 0, 1)), st.sampled_from((0, 100, 2**32 - 1)), SMALL, SMALL),
    FrameKind.PARTIAL: st.builds(lambda table, first, whole: bytes((table, *first.to_bytes(6, "little"), whole, 1)),
                            st.sampled_from((1, 1, 2)), st.sampled_from((0, 16, 17, 2**48 - 1)), st.integers(0, 2)),
    FrameKind.EVENT: st.builds(lambda code: bytes((code,)), st.integers(0, 8)),
    FrameKind.LINKS: st.builds(lambda heard: links_of(65_000, heard), NEIGHBOURS),
}  # fmt: skip


@st.composite
def frames(draw):
    kind = draw(st.sampled_from((*FrameKind, *HEADS, *[FrameKind.LINKS] * 6)))
    tail = b"" if kind is FrameKind.LINKS else draw(st.binary(max_size=60))
    payload = draw(HEADS.get(kind, st.just(b""))) + tail
    boot, seq = draw(st.sampled_from((0, 1, 2, 2, 65_535))), draw(st.sampled_from((0, 1, 2, *range(200, 210), 65_535)))
    return Frame(kind, draw(MOTES), boot, seq, payload[:MAX_PAYLOAD], want_ack=draw(st.booleans()), sender=draw(MOTES))


@pytest.mark.promise("network-heals")
@given(st.booleans(), st.lists(st.tuples(frames(), st.sampled_from((0, 250, 1_000, 60_000, 4_000_000))), max_size=30))
def test_station_survives_any_frames(agenda, said):
    wire = Wire(agenda)
    for frame, ms in said:
        wire.say(frame)
        if ms:
            wire.step(ms)
    wire.step(60_000)
    assert wire.station.world.queries.keys() == {1, 2}
    assert set(wire.station.world.tree.parent) <= set(HALL.motes)
