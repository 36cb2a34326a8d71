"""The gateway daemon carries each frame to the link of its gateway, and keeps frames while that is down."""

import pytest

from gateway.codec import encode_stream
from gateway.daemon import MOST_WAITING, GatewayDaemon
from gateway.errors import TransportError
from gateway.frame import BROADCAST, Frame, FrameKind


class FakeEnd:
    """A transport whose sending and receiving can fail."""

    def __init__(self):
        self.sent, self.arrived, self.fails = [], b"", False

    def open(self):
        """It is always open."""

    def close(self):
        """Nothing to release."""

    def send(self, data):
        if self.fails:
            raise TransportError("down")
        self.sent.append(data)

    def receive(self):
        if self.fails:
            raise TransportError("down")
        found, self.arrived = self.arrived, b""
        return found


@pytest.fixture
def ends():
    radio, links = FakeEnd(), {0: FakeEnd(), 5: FakeEnd()}
    return radio, links, GatewayDaemon(radio, links)


def up(seq, receiver=0):
    return encode_stream(Frame(FrameKind.READING, 7, 1, seq, b"x", receiver=receiver, sender=7))


def test_frames_go_to_the_link_of_their_receiver(ends):
    radio, links, daemon = ends
    radio.arrived = up(1) + up(2, 5) + up(3, BROADCAST) + up(4)[:5]
    daemon.look()
    assert (links[0].sent, links[5].sent) == ([up(1) + up(3, BROADCAST)], [up(2, 5)])
    radio.arrived = up(4)[5:] + b"noise\0" + up(5)
    daemon.look()
    assert links[0].sent[1:] == [up(4) + up(5)] and daemon.counts == {"up": 5, "damaged": 1}


def test_frames_wait_for_a_link_that_is_down(ends):
    radio, links, daemon = ends
    links[0].fails = True
    for seq in range(3):
        radio.arrived = up(seq)
        daemon.look()
    assert links[0].sent == []
    links[0].fails = False
    daemon.look()
    assert links[0].sent == [up(0) + up(1) + up(2)]
    daemon.look()
    assert len(links[0].sent) == 1


def test_oldest_frames_are_dropped_and_counted(ends):
    radio, links, daemon = ends
    links[0].fails = True
    radio.arrived = b"".join(map(up, range(MOST_WAITING + 2)))
    daemon.look()
    links[0].fails = False
    daemon.look()
    assert b"".join(links[0].sent) == b"".join(map(up, range(2, MOST_WAITING + 2)))
    assert daemon.counts == {"dropped": 2, "up": MOST_WAITING} and len(links[0].sent) > 1


def test_frames_of_the_station_go_to_the_radio(ends):
    radio, links, daemon = ends
    down = encode_stream(Frame(FrameKind.SCHEDULE, 7, 1, 1, b"s", down=True, sender=5, receiver=7))
    links[5].arrived = down
    daemon.look()
    assert radio.sent == [down] and daemon.counts["down"] == 1


def test_failing_radio_is_looked_at_less_often(ends, monkeypatch):
    radio, _, daemon = ends
    radio.fails = True
    waits = []

    def wait(seconds):
        waits.append(seconds)
        radio.fails = len(waits) < 2
        return len(waits) == 4 and daemon.stop()

    monkeypatch.setattr(daemon._stopped, "wait", wait)
    looks = []
    daemon.run(lambda: looks.append(1))
    assert waits == [1.0, 1.0, 0.02, 0.02] and len(looks) == 4
