"""The reconciler: brings each mote from its reported state to its desired state, by the table of its lifecycle.

A reconciler detects events, looks up the action (`gateway.mote_lifecycle`) and performs it. It queues frames on the
mote's link and sends nothing itself. Time is an argument, in milliseconds.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from gateway.desired_state import ORDER, DesiredState, ReportedState, is_up_to_date, plan_messages
from gateway.errors import FrameError
from gateway.frame import COORDINATOR, MAX_FRAME, Frame, FrameKind, HopPath, Message, MoteId, payload_room, route_of
from gateway.gap_requests import GapRequests, make_selective_ack
from gateway.link import Link, Links
from gateway.mote_lifecycle import MoteAction, MoteEvent, MoteState, next_state
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedPartial,
    EventPayload,
    Hello,
    LostFrames,
    MissingBlocks,
    ReadingCounts,
    RefusedImage,
    decode_event,
    decode_hello,
)

DATA = (FrameKind.READING, FrameKind.PARTIAL)
CONFIRMED = (MoteState.INSTALLED, MoteState.RUNNING, MoteState.LATE)
"""The states in which the mote has reported the desired images."""
TIMED = (*CONFIRMED, MoteState.INSTALLING)
"""The states in which a silent mote is lost, and in which the station sends its time."""
UNCONFIRMED = (MoteState.UNKNOWN, MoteState.IDENTIFIED)
"""The states in which data says nothing about the installed images."""


@dataclass(frozen=True, slots=True)
class ReconcilePolicy:
    """Intervals of a reconciler, in milliseconds.

    A message without effect is repeated after `retry_ms`; each further pause is half as long again, up to
    `max_retry_ms`. A mote is lost after `silence_ms` without a frame. TIME is sent every `time_ms`, to a mote that
    reports a clock more than `clock_tolerance_ms` off, and at most every `clock_retry_ms` while its data carries wrong
    time stamps. Gaps are requested when they are `gap_ms` old.
    """

    retry_ms: int = 30_000
    max_retry_ms: int = 900_000
    silence_ms: int = 3_600_000
    time_ms: int = 3_600_000
    clock_tolerance_ms: int = 500
    clock_retry_ms: int = 60_000
    gap_ms: int = 30_000


@dataclass(slots=True)
class MoteReconciler:
    """The reconciler of one mote.

    `encode_time` returns the payload of a TIME sent at `now`. `room` returns the most payload bytes on the present path
    to the mote. `last_path` is where its last frame was received, and from which neighbour. `event_counts` adds up what
    the mote has reported about its readings and its clock.
    """

    link: Link
    encode_time: Callable[[int], bytes]
    policy: ReconcilePolicy = field(default_factory=ReconcilePolicy)
    room: Callable[[], int] = payload_room
    state: MoteState = MoteState.UNKNOWN
    last_path: HopPath = field(init=False)
    desired: DesiredState = field(default_factory=DesiredState)
    reported: ReportedState = field(default_factory=ReportedState)
    gap_requests: GapRequests = field(init=False)
    event_counts: Counter[str] = field(default_factory=Counter)
    _has_news: bool = True  # something changed since the last message
    _attempts: int = 0  # messages since the last change
    _pause: int = field(init=False)
    _sent_at: int = 0
    _time_due: bool = False
    _time_sent_at: int = 0
    _heard_at: int = 0

    def __post_init__(self) -> None:
        self.gap_requests, self._pause = GapRequests(self.policy.gap_ms), self.policy.retry_ms
        self.last_path = (COORDINATOR, self.link.mote)

    def set_desired(self, desired: DesiredState, now: int) -> None:
        """Set the images the mote should have; chunks of other images leave the queue."""
        if desired == self.desired:
            return
        self.desired = desired
        self._withdraw_images()
        self._note_change()
        self._compare(now)

    def _withdraw_images(self) -> None:
        for kind in ORDER:
            self.link.withdraw(kind)

    def forget_report(self) -> None:
        """Ask the mote for its state again: what it reported may be of another time."""
        self.reported, self.state = ReportedState(), MoteState.UNKNOWN
        self._note_change()

    def receive(self, frame: Frame, now: int) -> Hello | EventPayload | None:
        """Process a new frame of the mote; return the decoded payload of a HELLO or EVENT.

        Raises FrameError, and changes nothing, if the payload is invalid.
        """
        hello = decode_hello(frame.payload) if frame.kind is FrameKind.HELLO else None
        event = decode_event(frame.payload) if frame.kind is FrameKind.EVENT else None
        self._heard_at, self.last_path = now, (frame.receiver, frame.sender)
        self.link.note_heard(now)
        if hello is not None:
            self._take_report(self.reported.after_hello(frame, hello, now), now)
        elif isinstance(event, LostFrames):
            self.link.write_off(event)
        elif isinstance(event, ReadingCounts | ClockMoved | DroppedPartial):
            self._count(event)
        elif self.reported.boot is None or frame.boot > self.reported.boot:
            if self.reported.boot is not None:
                self._note_change()
            self.reported = ReportedState()
            self._handle(MoteEvent.UNKNOWN_BOOT, now)
        elif frame.boot == self.reported.boot:
            if isinstance(event, MissingBlocks | RefusedImage):
                self.reported = self.reported.after_event(event)
                if self.link.idle:  # else some of the missing blocks are queued, and the mote will report again
                    self._note_change()
            if frame.kind in DATA:
                self._handle(MoteEvent.DATA, now)
        self._compare(now)
        return event if hello is None else hello

    def _count(self, event: ReadingCounts | ClockMoved | DroppedPartial) -> None:
        if isinstance(event, ClockMoved):
            self.event_counts["clock moved"] += 1
        elif isinstance(event, DroppedPartial):
            self.event_counts["partials dropped"] += 1
        else:
            names = ("sampled", "filtered", "merged", "dropped")
            self.event_counts.update({name: getattr(event, name) for name in names})

    def _take_report(self, reported: ReportedState, now: int) -> None:
        """Store the state after a HELLO; it is the present one if the HELLO was an old one."""
        if reported is self.reported:
            return
        if (reported.boot, reported.installed) != (self.reported.boot, self.reported.installed):
            self._note_change()
        self.reported = reported
        self.link.withdraw(FrameKind.HELLO)
        self._handle(MoteEvent.HELLO, now)

    def note_alive(self, now: int) -> None:
        """Record that data of the mote arrived, merged into a frame of another mote."""
        self._heard_at = now
        if self.state not in UNCONFIRMED:
            self._handle(MoteEvent.DATA, now)
        self._compare(now)

    def note_overdue(self, now: int) -> None:
        """Record that data of the mote was due and did not arrive."""
        if self.state not in UNCONFIRMED:
            self._handle(MoteEvent.OVERDUE, now)

    def note_clock_wrong(self, now: int) -> None:
        """Record that time stamps of the mote disagree with our clock; sends TIME at most every `clock_retry_ms`."""
        is_known = self.state in TIMED
        if is_known and now >= self._time_sent_at + self.policy.clock_retry_ms:
            self._handle(MoteEvent.CLOCK_WRONG, now)

    def run_timers(self, now: int) -> list[Frame]:
        """Handle what time brings about. Returns TIME frames and gap requests, to be sent now or not at all."""
        if self.state in TIMED and now - self._heard_at >= self.policy.silence_ms:
            self._handle(MoteEvent.SILENCE, now)
        # The path may have become longer after the chunks were cut.
        if not self.link.idle and self.link.longest_payload > self.room():
            self._withdraw_images()
            self._has_news = True
        if not self.link.idle:
            self._sent_at = now
        elif self.state in (MoteState.UNKNOWN, MoteState.INSTALLING, MoteState.LOST) and (
            self._has_news or now >= self._sent_at + self._pause
        ):
            self._handle(MoteEvent.RETRY_DUE, now)
        if self.state not in TIMED or not self.link.is_listening(now):
            return []
        if now >= self._time_sent_at + self.policy.time_ms:
            self._handle(MoteEvent.CLOCK_DUE, now)
        gaps = list(self.gap_requests.due(self.link.missing(), now))
        if not gaps:
            return self._time_frames(now)
        self._handle(MoteEvent.GAP, now)
        room = self.room()
        return [
            *self._time_frames(now),
            *(make_selective_ack(self.link.mote, b, self.link.last_received(b), g, room) for b, g in gaps),
        ]

    def _time_frames(self, now: int) -> list[Frame]:
        if not self._time_due:
            return []
        self._time_due, self._time_sent_at = False, now
        return [self.link.make_frame(Message(FrameKind.TIME, self.link.mote, self.encode_time(now), want_ack=False))]

    def _compare(self, now: int) -> None:
        """Compare reported and desired state, in the states where the result matters."""
        same = is_up_to_date(self.desired, self.reported)
        if (
            self.state is MoteState.IDENTIFIED
            or (self.state is MoteState.INSTALLING and same)
            or (self.state in CONFIRMED and not same)
        ):
            self._handle(MoteEvent.UP_TO_DATE if same else MoteEvent.OUT_OF_DATE, now)

    def _handle(self, event: MoteEvent, now: int) -> None:
        """Change the state by an event and perform the action of the table."""
        before = self.state
        self.state, action = next_state(before, event)
        if self.state is not before and MoteState.LOST in (before, self.state):
            self._note_change()
        if action is MoteAction.SEND_TIME:
            off = self.reported.clock_off_ms
            if event is not MoteEvent.HELLO or off is None or abs(off) > self.policy.clock_tolerance_ms:
                self._time_due = True
            else:
                self._time_sent_at = now
        elif (
            action in (MoteAction.REQUEST_HELLO, MoteAction.SEND_IMAGES)
            and self.link.idle
            and (self._has_news or event is MoteEvent.RETRY_DUE)
        ):
            self._send_messages(now)

    def _note_change(self) -> None:
        """Restart the retries: no message reflects the present situation yet."""
        self._has_news, self._attempts, self._pause = True, 0, self.policy.retry_ms

    def _send_messages(self, now: int) -> None:
        known = self.reported if self.state is MoteState.INSTALLING else ReportedState()
        self._attempts += 1  # first, because it selects the path, and the path determines the room in a frame
        for message in plan_messages(self.desired, known, self.link.mote, self.room()):
            self.link.post(message)
        self._pause = self.policy.retry_ms if self._has_news else min(self._pause * 3 // 2, self.policy.max_retry_ms)
        self._has_news, self._sent_at = False, now

    @property
    def heard_at(self) -> int | None:
        """When the last frame of the mote came, or data of it in a frame of another; None where nothing has come yet."""
        return self._heard_at or None

    @property
    def is_path_doubtful(self) -> bool:
        """Whether this attempt, the second, fourth, …, takes `last_path` instead of the routing tree's path."""
        return self.state not in CONFIRMED and self._attempts > 0 and self._attempts % 2 == 0


def _no_path(mote: MoteId) -> HopPath:
    return ()


@dataclass(slots=True)
class MoteReconcilers:
    """One reconciler for each mote that has a desired state or has sent a frame.

    `paths` returns the path to a mote by the routing tree, `mtu` is the most bytes of a frame on each hop.
    """

    links: Links
    encode_time: Callable[[int], bytes]
    paths: Callable[[MoteId], HopPath] = _no_path
    policy: ReconcilePolicy = field(default_factory=ReconcilePolicy)
    mtu: int = MAX_FRAME
    by_mote: dict[MoteId, MoteReconciler] = field(default_factory=dict)

    def of(self, mote: MoteId) -> MoteReconciler:
        """Return the reconciler of a mote; make it on first use."""
        if mote not in self.by_mote:
            self.by_mote[mote] = MoteReconciler(
                self.links.of(mote), self.encode_time, self.policy, partial(self.room, mote)
            )
        return self.by_mote[mote]

    def path_to(self, mote: MoteId) -> HopPath:
        """Return the path for the next frame to a mote.

        It is the path of the routing tree; for every second attempt, or if the tree has none, the path on which the
        mote's frames arrive. A duty-cycled mote hears only its old parent while the tree changes.
        """
        reconciler = self.of(mote)
        return (not reconciler.is_path_doubtful and self.paths(mote)) or reconciler.last_path

    def room(self, mote: MoteId) -> int:
        """Return the most payload bytes in a frame on the path to a mote."""
        return payload_room(self.mtu, len(route_of(self.path_to(mote))))

    def set_desired(self, desired: Mapping[MoteId, DesiredState], now: int) -> None:
        """Set the images that each mote should have."""
        for mote, state in desired.items():
            self.of(mote).set_desired(state, now)

    def receive(self, frames: Iterable[Frame], now: int) -> list[FrameError]:
        """Process new frames; return the errors of those with an invalid HELLO or EVENT."""
        errors = []
        for frame in frames:
            try:
                report = self.of(frame.mote).receive(frame, now)
            except FrameError as error:
                errors.append(error)
                continue
            if isinstance(report, ClocksDiffer):  # either clock may be wrong
                for reconciler in (self.of(frame.mote), self.by_mote.get(report.mote)):
                    if reconciler:
                        reconciler.note_clock_wrong(now)
        return errors

    def note_alive(self, motes: Iterable[MoteId], now: int) -> None:
        """Record that data of these motes arrived in frames of others."""
        for mote in motes:
            self.of(mote).note_alive(now)

    def run_timers(self, now: int) -> list[Frame]:
        """Handle what time brings about for all motes. Returns frames to be sent now or not at all."""
        return [frame for reconciler in self.by_mote.values() for frame in reconciler.run_timers(now)]

    def up_to_date_motes(self) -> frozenset[MoteId]:
        """Return the motes that have reported their desired images."""
        return frozenset(
            mote for mote, reconciler in self.by_mote.items() if is_up_to_date(reconciler.desired, reconciler.reported)
        )
