"""A reconciler, a mote, and a simulated radio channel between them."""

from gateway.codec import decode, encode
from gateway.errors import FrameError
from gateway.frame import Frame, FrameKind, Message
from gateway.image import NO_IMAGE, decode_chunk
from gateway.installer import Installer
from gateway.link import Link, LinkPolicy, make_ack
from gateway.payload import (
    IMAGES,
    Hello,
    HelloReason,
    RefusedImage,
    decode_selective_ack,
    encode_event,
    encode_hello,
)
from gateway.reconciler import MoteReconciler, ReconcilePolicy

MOTE = 7
POLICY = LinkPolicy(timeout_ms=1000, max_attempts=4, max_timeout_ms=4000, resend_capacity=8)
PACE = ReconcilePolicy(
    retry_ms=5000, max_retry_ms=60_000, silence_ms=120_000, time_ms=60_000, clock_retry_ms=20_000, gap_ms=5000
)
REFUSED = b"refuse"


class Mote:
    """A minimal mote: installs images with Installer, reports them, and refuses an image that starts with REFUSED."""

    def __init__(self, boot):
        self.boot, self.link = boot, Link(MOTE, boot, down=False, policy=POLICY)
        self.installer, self.content = Installer(), {}
        self.times, self.reported_at, self.clock = [], 0, None
        self.hello(HelloReason.SWITCHED_ON)

    def hello(self, reason):
        installed = self.installer.installed
        hello = Hello(reason, 1, 3000, installed[FrameKind.SCHEDULE], installed[FrameKind.PROGRAM], self.clock)
        self.link.post(Message(FrameKind.HELLO, MOTE, encode_hello(hello)))

    def event(self, event):
        self.link.post(Message(FrameKind.EVENT, MOTE, encode_event(event)))

    def measure(self, what):
        return self.link.post(Message(FrameKind.READING, MOTE, what))

    def receive(self, frame, now):
        """Process a frame; return the acknowledgements. The clock stands still between two TIME frames."""
        if frame.kind is FrameKind.ACK:
            if frame.payload:
                if (lost := self.link.resend(frame.boot, decode_selective_ack(frame.payload).gaps)).gaps:
                    self.event(lost)
            else:
                self.link.take_ack(frame)
            return []
        if self.link.accept(frame):
            if frame.kind is FrameKind.HELLO:
                self.hello(HelloReason.ASKED)
            elif frame.kind is FrameKind.TIME:
                self.clock = int.from_bytes(frame.payload, "little")
                self.times.append((now, self.clock))
            else:
                self.take(frame)
        return [make_ack(frame)] if frame.want_ack else []

    def take(self, frame):
        chunk = decode_chunk(frame.payload)
        if self.installer.has(frame.kind, chunk):
            self.hello(HelloReason.INSTALLED)
        elif image := self.installer.take(frame):
            if image.content.startswith(REFUSED):
                self.event(RefusedImage(frame.kind, image.stamp))
                return
            self.installer.install(frame.kind, image)
            self.content[frame.kind] = image
            self.hello(HelloReason.INSTALLED)

    def due(self, now):
        if now >= self.reported_at + 10_000 and self.link.idle:
            self.reported_at = now
            for missing in self.installer.missing_blocks():
                self.event(missing)
        return self.link.due(now)


class World:
    """`air(frame)` returns the delay in ms of each copy of a frame that arrives: none, one or several."""

    def __init__(self, air, listen_window_ms=None):
        self.now, self.air, self.on_air, self.serial = 0, air, [], 0
        self.policy = LinkPolicy(
            timeout_ms=1000, max_attempts=4, max_timeout_ms=4000, listen_window_ms=listen_window_ms
        )
        self.reconciler = self.new_reconciler(boot=1)
        self.mote = Mote(boot=1)
        self.received, self.sent = [], []

    def new_reconciler(self, boot):
        return MoteReconciler(
            Link(MOTE, boot, down=True, policy=self.policy), lambda now: now.to_bytes(6, "little"), PACE
        )

    def restart_base(self):
        """Restart the base station: it loses all state but the desired images."""
        desired = self.reconciler.desired
        self.reconciler = self.new_reconciler(self.reconciler.link.boot + 1)
        self.reconciler.set_desired(desired, self.now)

    def reboot_mote(self):
        self.mote = Mote(self.mote.boot + 1)

    def send(self, frame):
        self.sent.append((self.now, frame))
        for delay in self.air(frame):
            self.serial += 1
            self.on_air.append((self.now + delay, self.serial, encode(frame)))

    def step(self, ms=1000):
        """Advance the time, then deliver and send until nothing is due."""
        self.now += ms
        busy, rounds = True, 0
        while busy:
            rounds += 1
            assert rounds < 1000, "base station and mote send without end"
            for frame in self.mote.due(self.now):
                self.send(frame)
            busy = self.deliver()
            for frame in [*self.reconciler.run_timers(self.now), *self.reconciler.link.due(self.now)]:
                self.send(frame)
                busy = True

    def deliver(self):
        arrived = sorted(one for one in self.on_air if one[0] <= self.now)
        self.on_air = [one for one in self.on_air if one[0] > self.now]
        for _, _, message in arrived:
            frame = decode(message)
            for answer in self.to_mote(frame) if frame.down else self.to_base(frame):
                self.send(answer)
        return bool(arrived)

    def to_mote(self, frame):
        return self.mote.receive(frame, self.now)

    def to_base(self, frame):
        if frame.kind is FrameKind.ACK:
            self.reconciler.link.take_ack(frame)
            return []
        if self.reconciler.link.accept(frame):
            self.received.append(frame)
            self.reconciler.receive(frame, self.now)
        return [make_ack(frame)] if frame.want_ack else []

    def run(self, seconds):
        for _ in range(seconds):
            self.step()

    def installed(self):
        """Return the images that run on the mote."""
        return {kind: self.mote.content.get(kind) for kind in IMAGES}

    def stamps(self):
        return {kind: image.stamp if image else NO_IMAGE for kind, image in self.installed().items()}


def perfect(frame: Frame):
    return [0]


__all__ = ["MOTE", "REFUSED", "FrameError", "Mote", "World", "perfect"]
