"""Links over a real broker: frames pass both ways, each gateway speaks for itself, and what breaks heals."""

import contextlib
from dataclasses import replace

import pytest

from gateway.broker_settings import BrokerSettings, SecretReference
from gateway.codec import FrameDecoder, encode_stream
from gateway.errors import TransportError
from gateway.frame import BROADCAST, Frame, FrameKind
from gateway.transports import mqtt
from gateway.transports.mqtt import BrokerConnection, MqttGateway, MqttTransport
from tests.brokers import KINDS, BrokerWire, Mosquitto, free_port, wait_until


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__.lower())
def broker(request, tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt, "FIRST_BACKOFF_SECONDS", 0.05)
    wire = BrokerWire(request.param, tmp_path / "broker")
    yield wire
    wire.close()


@pytest.fixture
def opened():
    ends = []

    def open_(end):
        ends.append(end)
        end.open()
        return end

    yield open_
    for end in ends:
        end.close()


def reading(seq, receiver=0, payload=b"x"):
    return Frame(FrameKind.READING, 7, 1, seq, payload, receiver=receiver, sender=7)


def receive(end, count):
    """The next frames that arrive at an end."""
    decoder, found = FrameDecoder(), []

    def look():
        try:
            decoder.receive_bytes(end.receive())
        except TransportError:
            return False
        found.extend(decoder.events())
        return len(found) >= count

    wait_until(look)
    return found


def test_frames_pass_both_ways_to_the_gateway_of_their_hop(broker, opened):
    station = opened(MqttTransport(broker.settings()))
    gateways = [opened(MqttGateway(broker.settings(), number)) for number in (0, 5)]
    for number, gateway in zip((0, 5), gateways, strict=True):
        gateway.send(b"".join(encode_stream(reading(seq, number)) for seq in range(3)))
    assert sorted((f.receiver, f.seq) for f in receive(station, 6)) == [(n, seq) for n in (0, 5) for seq in range(3)]
    down = [
        Frame(FrameKind.TIME, 7, 1, 1, b"clock", down=True, want_ack=False, sender=5, receiver=7),
        Frame(FrameKind.SCHEDULE, 7, 1, 2, b"image", down=True, sender=0, receiver=7),
        Frame(FrameKind.SCHEDULE, 8, 1, 0, b"image", down=True, sender=5, receiver=8),
    ]
    station.send(b"".join(map(encode_stream, down)))
    assert receive(gateways[0], 1) == [down[1]]
    assert sorted(f.seq for f in receive(gateways[1], 2)) == [0, 1]


def test_frames_of_another_gateway_or_direction_are_refused(broker, opened):
    station, gateway = opened(MqttTransport(broker.settings())), opened(MqttGateway(broker.settings(), 3))
    wrong = [reading(1, 4), reading(2, BROADCAST), Frame(FrameKind.HELLO, 7, 1, 3, down=True, sender=3, receiver=3)]
    gateway.send(b"".join(map(encode_stream, [*wrong, reading(4, 3)])))
    assert [f.seq for f in receive(station, 1)] == [4] and station.refused == {"gateway": 3}
    gateway.connection.publish("lab/v1/gateway/9999999/up", b"x")
    gateway.connection.publish("lab/v1/gateway/3/state", b"[" * 1_000)
    gateway.send(b"noise\0" + encode_stream(reading(5, 3))[:-1])
    found = receive(station, 2)
    assert [getattr(f, "seq", f) for f in found][1] == 5 and found[0].code  # the station counts damage itself
    assert station.refused == {"gateway": 3, "topic": 1, "state": 1}
    other = opened(BrokerConnection(broker.settings(), "other", "lab/other", []))
    other.publish("lab/v1/gateway/3/down", encode_stream(reading(6, 3)))
    other.publish("lab/v1/gateway/3/down", encode_stream(Frame(FrameKind.HELLO, 7, 1, 7, down=True, sender=4)))
    other.publish("lab/v1/gateway/3/down", encode_stream(Frame(FrameKind.HELLO, 7, 1, 8, down=True, sender=3)))
    assert [f.seq for f in receive(gateway, 1)] == [8]


def test_station_says_which_part_of_the_link_is_missing(broker, opened):
    station = opened(MqttTransport(broker.settings()))
    with pytest.raises(TransportError, match=r"no gateway is connected to mqtt://127\.0\.0\.1:\d+/lab$"):
        station.receive()
    gateway = MqttGateway(broker.settings(), 2)
    gateway.open()
    wait_until(lambda: _receives(station, b""))
    gateway.close()
    wait_until(lambda: _says(station, "gateway 2 is stopped"))
    gateway.open()
    wait_until(lambda: _receives(station, b""))
    gateway.connection._client._sock_close()  # the process is gone: its last will speaks
    wait_until(lambda: _says(station, "2 is lost") or _receives(station, b""))
    broker.kill()
    wait_until(lambda: _says(station, "cannot be reached") or _says(station, "has ended the connection"))
    with pytest.raises(TransportError):
        station.send(encode_stream(Frame(FrameKind.HELLO, 7, 1, 7, down=True, sender=3)))


def test_messages_taken_but_not_committed_come_again(broker, opened):
    """The station takes the next bytes after its commit; those it took and could not keep are the broker's to give."""
    station, gateway = MqttTransport(broker.settings()), opened(MqttGateway(broker.settings(), 0))
    station.open()
    gateway.send(encode_stream(reading(1)))
    assert [f.seq for f in receive(station, 1)] == [1]
    station.receive()  # 1 is committed
    gateway.send(encode_stream(reading(2)))
    assert [f.seq for f in receive(station, 1)] == [2]
    station.connection._client._sock_close()  # ended without a commit
    station.connection._client.loop_stop()
    again = opened(MqttTransport(broker.settings()))
    if isinstance(broker.broker, Mosquitto):  # amqtt forgets sessions: there the motes' own repetition gives it
        assert [f.seq for f in receive(again, 1)] == [2]


def test_flood_is_dropped_and_counted(broker, opened, monkeypatch):
    monkeypatch.setattr(mqtt, "MOST_ARRIVED", 500)
    station, gateway = opened(MqttTransport(broker.settings())), opened(MqttGateway(broker.settings(), 0))
    for seq in range(40):
        gateway.send(encode_stream(reading(seq, payload=bytes(50))))
    wait_until(lambda: station.connection.dropped)
    kept = _sequences(station)
    assert kept == list(range(len(kept))) and len(kept) < 10

    def all_are_counted():  # the rest of the flood may still be on its way
        kept.extend(_sequences(station))
        return len(kept) + station.connection.dropped == 40

    wait_until(all_are_counted)
    gateway.send(encode_stream(reading(41)))
    assert [f.seq for f in receive(station, 1)] == [41]


def test_cut_connection_comes_back_without_a_new_start(broker, opened):
    station, gateway = opened(MqttTransport(broker.settings())), opened(MqttGateway(broker.settings(), 0))
    for seq in range(4):
        broker.cut()
        found = set()

        def repeat(seq=seq, found=found):  # as motes do: amqtt forgets what came while the station was away
            with contextlib.suppress(TransportError):
                gateway.send(encode_stream(reading(seq)))
            found.update(_sequences(station))
            return seq in found

        wait_until(repeat)


@pytest.mark.parametrize("protocol", ["3.1.1", "5"])
def test_refused_and_unusable_settings_are_named(protocol, tmp_path, opened, monkeypatch):
    monkeypatch.setattr(mqtt, "FIRST_WAIT_SECONDS", 0.5)
    nowhere = BrokerSettings("127.0.0.1", free_port(), "lab", protocol=protocol)
    with pytest.raises(TransportError, match="cannot be reached: Connection refused"):
        opened(MqttTransport(nowhere)).receive()
    with pytest.raises(TransportError, match="cannot be used"):
        MqttTransport(replace(nowhere, has_tls=True, authority=tmp_path / "none.pem")).open()
    with pytest.raises(TransportError, match=r"needs TLS: write mqtts://"):
        MqttTransport(replace(nowhere, host="broker.example", user="a", password=SecretReference(env="SECRET")))
    with pytest.raises(TransportError, match="SECRET holds no secret"):
        MqttTransport(replace(nowhere, user="a", password=SecretReference(env="SECRET"))).open()


def _sequences(end):
    decoder = FrameDecoder()
    try:
        decoder.receive_bytes(end.receive())
    except TransportError:
        return []
    return [frame.seq for frame in decoder.events()]


def _says(end, words):
    try:
        end.receive()
    except TransportError as error:
        return words in str(error)
    return False


def _receives(end, data):
    try:
        return end.receive() == data
    except TransportError:
        return False
