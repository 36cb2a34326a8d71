"""Links over an MQTT broker: the station's end, a gateway's end, and the connection below both. The only module that imports paho.

    PREFIX/v1/gateway/N/up       frames of motes and gateway N, to the station
    PREFIX/v1/gateway/N/down     frames of the station, to gateway N
    PREFIX/v1/gateway/N/state    {"state": "ready"}, "stopped", or by its last will "lost"; retained
    PREFIX/v1/station/state      the same of the station

A message holds whole frames, each as on a byte stream (SPEC.md). The broker is not trusted with delivery: frames are
acknowledged end to end, by the station's own commit.
"""

import json
import ssl
import sys
import threading
from binascii import crc32
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from paho.mqtt import client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from gateway import framing
from gateway.broker_settings import BrokerSettings
from gateway.codec import decode
from gateway.errors import FrameError, TransportError
from gateway.frame import BROADCAST, LARGEST_FRAME, Frame, FrameKind
from gateway.log import get_log

FIRST_WAIT_SECONDS = 2.0
"""How long `open` waits for the broker. A connection that comes later is as good."""
FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS = 1, 60
"""Pauses between attempts to connect double from the first to the longest."""
SESSION_SECONDS = 86_400
"""How long a broker keeps messages for a station that is away (MQTT 5; older brokers follow their own setting)."""
LARGEST_MESSAGE = 65_536
MOST_ARRIVED = 1_048_576
"""Bytes that may wait for the station's next look. Messages beyond that are dropped, and motes send the frames again."""
MOST_QUEUED = 1_000
"""Messages that may wait for a slow broker."""
GATEWAYS = "v1/gateway/"

log = get_log(__name__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message of the broker; `connection` counts the connections, since message numbers belong to one."""

    topic: str
    payload: bytes
    mid: int
    qos: int
    connection: int


class BrokerConnection:
    """A client that connects for ever, with pauses that grow to a minute. One thread of paho moves its bytes.

    `role` names the client under the prefix, so that a second one of the same role is the same client to the broker.
    With `is_durable` the broker keeps messages while the client is away. `state_topic` says retained whether it is there;
    None says nothing.
    """

    def __init__(self, settings: BrokerSettings, role: str, state_topic: str | None, topics: Sequence[str],
                 is_durable: bool = False) -> None:  # fmt: skip
        settings.check()
        self.settings, self._role, self._state_topic, self._topics = settings, role, state_topic, topics
        self._is_durable, self._connection, self._size = is_durable, 0, 0
        self._lock, self._reported = threading.Lock(), threading.Event()
        self._taken_by_broker = threading.Condition()
        self._acknowledged: dict[int, str | None] = {}  # by number of a message, why the broker refused it
        self._arrived: deque[Arrival] = deque()
        self._taken: list[Arrival] = []
        self.dropped = 0  # messages that came faster than they were taken
        self.problem: str | None = "is not connected yet"
        self.refusal: str | None = None  # why the broker took a message and did not pass it on
        self._client: paho.Client | None = None

    @property
    def name(self) -> str:
        """The broker and the prefix, for messages."""
        return self.settings.url

    def open(self) -> None:
        """Begin to connect, and wait a moment for the result. Raises TransportError where the settings cannot be used."""
        if self._client is not None:
            return
        client = self._make_client()
        self._reported.clear()
        client.connect_async(self.settings.host, self.settings.port, self.settings.keepalive, **self._session())
        client.loop_start()
        self._client = client
        self._reported.wait(FIRST_WAIT_SECONDS)

    def _make_client(self) -> paho.Client:
        is_new = self.settings.protocol == "5"
        identity = f"ml-{self._role}-{crc32(self.settings.prefix.encode()):08x}"
        client = paho.Client(
            CallbackAPIVersion.VERSION2, identity, None if is_new else not self._is_durable,
            protocol=paho.MQTTv5 if is_new else paho.MQTTv311, manual_ack=True,
        )  # fmt: skip
        if self.settings.user is not None:
            password = self.settings.password
            client.username_pw_set(self.settings.user, None if password is None else password.read())
        if self.settings.has_tls:
            client.tls_set_context(_tls_context(self.settings))
        client.reconnect_delay_set(FIRST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS)
        client.max_queued_messages_set(MOST_QUEUED)
        if self._state_topic is not None:
            client.will_set(self._state_topic, self._state("lost"), qos=1, retain=True)
        client.on_connect, client.on_connect_fail = self._on_connect, self._on_connect_fail
        client.on_disconnect, client.on_message = self._on_disconnect, self._on_message
        client.on_subscribe, client.on_publish = self._on_subscribe, self._on_publish
        return client

    def _session(self) -> dict[str, Any]:
        if self.settings.protocol != "5":
            return {}
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]  # paho gives it no types
        properties.SessionExpiryInterval = SESSION_SECONDS if self._is_durable else 0
        return {"clean_start": not self._is_durable, "properties": properties}

    def publish(self, topic: str, payload: bytes, qos: int = 1, retain: bool = False) -> int:
        """Give a message to the broker; return its number. Raises TransportError without a connection or room."""
        if self._client is None or self.problem is not None:
            raise TransportError(f"{self.name} {self.problem or 'is closed'}")
        info = self._client.publish(topic, payload, qos, retain)
        if info.rc == paho.MQTT_ERR_QUEUE_SIZE:
            raise TransportError(f"{self.name} is slow: {MOST_QUEUED} messages wait for it")
        if info.rc != paho.MQTT_ERR_SUCCESS:
            raise TransportError(f"{self.name} takes no message: {paho.error_string(info.rc)}")
        return info.mid

    def wait_until_taken(self, numbers: set[int], seconds: float) -> None:
        """Wait until the broker has acknowledged messages. Raises TransportError if it refuses one, or is too slow."""
        with self._taken_by_broker:
            self._taken_by_broker.wait_for(
                lambda: numbers <= self._acknowledged.keys() or self.problem is not None, seconds
            )
            is_done = numbers <= self._acknowledged.keys()
            reasons = {self._acknowledged.pop(number) for number in numbers if number in self._acknowledged} - {None}
        if reasons:
            raise TransportError(f"{self.name} refuses messages: {', '.join(sorted(map(str, reasons)))}")
        if not is_done and self.problem is not None:
            raise TransportError(f"{self.name} {self.problem}")
        if not is_done:
            raise TransportError(f"{self.name} acknowledges nothing for {seconds:g} s")

    def take(self) -> list[Arrival]:
        """Return the messages that arrived since the last call, and acknowledge those of the last call to the broker."""
        with self._lock:
            done, self._taken = self._taken, list(self._arrived)
            current = self._connection
            self._arrived.clear()
            self._size = 0
        for message in done:
            if message.connection == current and self._client is not None:
                self._client.ack(message.mid, message.qos)
        return self._taken

    def close(self) -> None:
        """Say so and disconnect; closing twice is allowed."""
        client, self._client = self._client, None
        if client is None:
            return
        if self.problem is None and self._state_topic is not None:
            with suppress(RuntimeError, ValueError):  # a connection that breaks just now has its last will
                client.publish(self._state_topic, self._state("stopped"), qos=1, retain=True).wait_for_publish(1)
        client.disconnect()
        client.loop_stop()
        self.problem = "is closed"
        log.info("transport closed", kind="mqtt", url=self.name)

    def _state(self, state: str) -> bytes:
        return json.dumps({"state": state}).encode()

    def _on_connect(self, client: paho.Client, _data: object, _flags: object, reason: Any, _more: object) -> None:
        if reason.is_failure:
            self._fail(f"refuses the connection: {reason}")
            self._reported.set()
            return
        with self._lock:
            self._connection += 1
            self._arrived.clear()  # the broker sends again what was not acknowledged
            self._size = 0
        if self._topics:
            client.subscribe([(topic, 1) for topic in self._topics])
        else:
            self._become_ready(client)

    def _on_subscribe(self, client: paho.Client, _data: object, _mid: int, reasons: Any, _more: object) -> None:
        refused = [str(reason) for reason in reasons if reason.is_failure]
        if refused:
            self._fail(f"refuses the topics {', '.join(self._topics)}: {refused[0]}")
            self._reported.set()
        else:
            self._become_ready(client)

    def _become_ready(self, client: paho.Client) -> None:
        """From now on messages arrive and can be sent."""
        if self._state_topic is not None:
            client.publish(self._state_topic, self._state("ready"), qos=1, retain=True)
        self.problem = None
        log.info("transport opened", kind="mqtt", url=self.name)
        self._reported.set()

    def _on_connect_fail(self, _client: paho.Client, _data: object) -> None:
        error = sys.exc_info()[1]
        self._fail(f"cannot be reached: {getattr(error, 'strerror', None) or error or 'unknown reason'}")
        self._reported.set()

    def _on_disconnect(self, _client: object, _data: object, _flags: object, reason: Any, _more: object) -> None:
        if self._client is not None and self.problem is None:
            self._fail(f"has ended the connection: {reason}")

    def _fail(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("transport failed", kind="mqtt", url=self.name, error=problem)
        with self._taken_by_broker:
            self.problem = problem
            self._taken_by_broker.notify_all()

    def _on_message(self, client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        with self._lock:
            too_much = len(message.payload) > LARGEST_MESSAGE or self._size + len(message.payload) > MOST_ARRIVED
            if not too_much:
                arrival = Arrival(message.topic, bytes(message.payload), message.mid, message.qos, self._connection)
                self._arrived.append(arrival)
                self._size += len(message.payload)
        if too_much:
            if not self.dropped:
                log.warning("message dropped", url=self.name, topic=message.topic, bytes=len(message.payload))
            self.dropped += 1
            client.ack(message.mid, message.qos)

    def _on_publish(self, _client: object, _data: object, mid: int, reason: Any, _more: object) -> None:
        refusal = str(reason) if getattr(reason, "is_failure", False) else None
        with self._taken_by_broker:
            while len(self._acknowledged) >= MOST_QUEUED:  # most senders never ask
                del self._acknowledged[next(iter(self._acknowledged))]
            self._acknowledged[mid] = refusal
            self._taken_by_broker.notify_all()
        if refusal is not None and refusal != self.refusal:
            log.warning("message refused", url=self.name, reason=refusal)
        self.refusal = refusal


def _tls_context(settings: BrokerSettings) -> ssl.SSLContext:
    """Return a context that checks the broker's name and certificate. Raises TransportError."""
    try:
        context = ssl.create_default_context(cafile=settings.authority)
        if settings.certificate is not None:
            context.load_cert_chain(settings.certificate, settings.key)
    except OSError as error:
        raise TransportError(f"certificate or key for {settings.host} cannot be used: {error}") from error
    return context


def _frames(data: bytes) -> Iterator[tuple[bytes, Frame | None]]:
    """Yield the encoded frames of some bytes, each with its delimiter, and decoded; None for one that is damaged."""
    for stuffed in data.split(framing.DELIMITER):
        if stuffed:
            try:
                yield stuffed + framing.DELIMITER, decode(framing.unstuff(stuffed), LARGEST_FRAME)
            except FrameError:
                yield stuffed + framing.DELIMITER, None


class MqttTransport:
    """The station's end. The station takes the next bytes after it has committed the last, so `receive` acknowledges those.

    Frames go to the gateway that their first hop names. TIME is sent at most once, and other frames at least once: a
    clock that waited in a queue is wrong, and links drop duplicates of the others.
    """

    def __init__(self, settings: BrokerSettings) -> None:
        base = f"{settings.prefix}/{GATEWAYS}"
        self._base = base
        state, topics = f"{settings.prefix}/v1/station/state", [f"{base}+/up", f"{base}+/state"]
        self.connection = BrokerConnection(settings, "station", state, topics, is_durable=True)
        self.states: dict[int, str] = {}
        self.refused: Counter[str] = Counter()

    def open(self) -> None:
        """Begin to connect. Raises TransportError where the settings cannot be used; a broker that is away is awaited."""
        self.connection.open()

    def close(self) -> None:
        """Disconnect; closing twice is allowed."""
        self.connection.close()

    def send(self, data: bytes) -> None:
        """Send frames to their gateways. Raises TransportError."""
        for topic, qos, payload in self._route(data):
            self.connection.publish(topic, payload, qos)

    def _route(self, data: bytes) -> list[tuple[str, int, bytes]]:
        """Return messages of (topic, QoS, payload); frames that follow each other to the same gateway share one."""
        found: list[tuple[str, int, bytes]] = []
        for stuffed, frame in _frames(data):
            if frame is None:
                raise TransportError("a frame of the station itself is damaged")
            topic, qos = f"{self._base}{frame.sender}/down", int(frame.kind is not FrameKind.TIME)
            if found and found[-1][:2] == (topic, qos) and len(found[-1][2]) + len(stuffed) <= LARGEST_MESSAGE:
                stuffed = found.pop()[2] + stuffed
            found.append((topic, qos, stuffed))
        return found

    def receive(self) -> bytes:
        """Return the frames that have arrived. Raises TransportError where there are none and a link is broken."""
        data = b"".join(self._receive_message(message) for message in self.connection.take())
        if data:
            return data
        if self.connection.problem is not None:
            raise TransportError(f"{self.connection.name} {self.connection.problem}")
        if not any(state == "ready" for state in self.states.values()):
            gone = ", ".join(f"gateway {number} is {state}" for number, state in sorted(self.states.items()))
            raise TransportError(f"no gateway is connected to {self.connection.name}{f': {gone}' if gone else ''}")
        if self.connection.refusal is not None:
            raise TransportError(f"{self.connection.name} refuses messages: {self.connection.refusal}")
        return b""

    def _receive_message(self, message: Arrival) -> bytes:
        number, _, what = message.topic.removeprefix(self._base).partition("/")
        if not (number.isascii() and number.isdecimal() and int(number) < BROADCAST):
            self._refuse("topic", message)
            return b""
        gateway = int(number)
        if what == "state":
            self._note_state(gateway, message.payload)
            return b""
        if self.states.get(gateway) != "ready":
            self.states[gateway] = "ready"
        found = []
        for stuffed, frame in _frames(message.payload):
            if frame is not None and (frame.down or frame.receiver != gateway):
                self._refuse("gateway", message)  # each gateway speaks for itself, whatever it can publish
            else:
                found.append(stuffed)  # also a damaged one, which the station counts
        return b"".join(found)

    def _note_state(self, gateway: int, payload: bytes) -> None:
        try:
            state = json.loads(payload)["state"]
        except (ValueError, LookupError, TypeError, RecursionError):
            state = None
        if state not in ("ready", "stopped", "lost"):
            self.refused["state"] += 1
            return
        if self.states.get(gateway) != state:
            (log.info if state == "ready" else log.warning)("gateway changed", gateway=gateway, state=state)
        self.states[gateway] = state

    def _refuse(self, why: str, message: Arrival) -> None:
        if not self.refused[why]:
            log.warning("message refused", url=self.connection.name, topic=message.topic, why=why)
        self.refused[why] += 1


class MqttGateway:
    """A gateway's end: a transport to the station for the frames of one gateway."""

    def __init__(self, settings: BrokerSettings, number: int) -> None:
        base = f"{settings.prefix}/{GATEWAYS}{number}"
        self.number, self._up = number, f"{base}/up"
        self.connection = BrokerConnection(settings, f"gateway{number}", f"{base}/state", [f"{base}/down"])

    def open(self) -> None:
        """Begin to connect. Raises TransportError where the settings cannot be used; a broker that is away is awaited."""
        self.connection.open()

    def close(self) -> None:
        """Disconnect; closing twice is allowed."""
        self.connection.close()

    def send(self, data: bytes) -> None:
        """Send whole frames to the station. Raises TransportError."""
        self.connection.publish(self._up, data)

    def receive(self) -> bytes:
        """Return the station's frames for this gateway that have arrived, and nothing else that the broker may send."""
        messages = self.connection.take()
        pairs = (pair for message in messages for pair in _frames(message.payload))
        return b"".join(stuffed for stuffed, frame in pairs if frame and frame.down and frame.sender == self.number)
