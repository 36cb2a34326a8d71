"""Keeper: brings one mote from what it reports to what is desired, for ever, by the table of its life.

It finds out which event happened, and does what the table says. It posts to the mote's link and sends nothing itself;
time is an argument.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gateway.desired_state import ORDER, DesiredState, ReportedState, is_up_to_date, plan_messages
from gateway.errors import FrameError
from gateway.frame import COORDINATOR, MAX_FRAME, Frame, FrameKind, HopPath, Message, MoteId, payload_room, route_of
from gateway.gap_requests import GapRequests, make_selective_ack
from gateway.link import Link, Links
from gateway.mote_lifecycle import MoteAction, MoteEvent, MoteState, next_state
from gateway.payload import (
    ClockMoved,
    ClocksDiffer,
    DroppedCopy,
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
SETTLED = (MoteState.INSTALLED, MoteState.RUNNING, MoteState.LATE)


@dataclass(frozen=True, slots=True)
class ReconcilePolicy:
    """When a keeper loses its patience. A pause grows by half with each that brings nothing, up to the longest.

    The time is told every `clock_ms`, to a mote that says a time which is off by more than `off_ms`, and every `wrong_ms` while
    data is stamped with another.
    """

    pause_ms: int = 30_000
    longest_ms: int = 900_000
    silent_ms: int = 3_600_000
    clock_ms: int = 3_600_000
    off_ms: int = 500
    wrong_ms: int = 60_000
    gap_ms: int = 30_000


@dataclass(slots=True)
class MoteReconciler:
    """`time` makes the payload of a TIME out of now; what it means is no business of this package. `room` says what a
    payload may have on its way to the mote, which changes as the way does."""

    link: Link
    time: Callable[[int], bytes]
    pace: ReconcilePolicy = field(default_factory=ReconcilePolicy)
    room: Callable[[], int] = payload_room
    state: MoteState = MoteState.UNHEARD
    last_path: HopPath = field(init=False)  # where its last frame came out of the air, and who sent it there
    desired: DesiredState = field(default_factory=DesiredState)
    reported: ReportedState = field(default_factory=ReportedState)
    gap_requests: GapRequests = field(init=False)
    event_counts: Counter[str] = field(default_factory=Counter)  # what it has said of its readings, and of its clock
    _unsaid: bool = True
    _times: int = 0  # that the same was said
    _pause: int = field(init=False)
    _said_at: int = 0
    _tell_time: bool = False
    _clock_at: int = 0
    _heard_at: int = 0

    def __post_init__(self) -> None:
        self.gap_requests, self._pause = GapRequests(self.pace.gap_ms), self.pace.pause_ms
        self.last_path = (COORDINATOR, self.link.mote)

    def set_desired(self, desired: DesiredState, now: int) -> None:
        """From now on the mote should have this. What was to be sent of another image is not sent any more."""
        if desired == self.desired:
            return
        self.desired = desired
        self._withdraw()
        self._changed()
        self._compare(now)

    def _withdraw(self) -> None:
        """What was to be sent of images is not sent any more."""
        for kind in ORDER:
            self.link.withdraw(kind)

    def take(self, frame: Frame, now: int) -> Hello | EventPayload | None:
        """A frame of the mote that was not here before, and what it says in it of itself or others, if that is what it is about;
        FrameError, and nothing else, if it makes no sense."""
        said = None
        if frame.kind is FrameKind.HELLO:
            said = decode_hello(frame.payload)
        elif frame.kind is FrameKind.EVENT:
            said = decode_event(frame.payload)
        self._heard_at, self.last_path = now, (frame.receiver, frame.sender)
        self.link.note_heard(now)
        if frame.kind is FrameKind.HELLO:
            self._greet(self.reported.after_hello(frame, said, now), now)
        elif isinstance(said, LostFrames):
            self.link.write_off(said)
        elif isinstance(said, ReadingCounts | ClockMoved | DroppedCopy):
            self._count(said)
        elif self.reported.boot is None or frame.boot > self.reported.boot:
            if self.reported.boot is not None:
                self._changed()
            self.reported = ReportedState()
            self._happen(MoteEvent.STRANGER, now)
        elif frame.boot == self.reported.boot:
            if isinstance(said, MissingBlocks | RefusedImage):
                self.reported = self.reported.after_event(said)
                if self.link.idle:  # else some of what it wants is on its way, and it will say so again
                    self._changed()
            if frame.kind in DATA:
                self._happen(MoteEvent.DATA, now)
        self._compare(now)
        return said

    def _count(self, said: ReadingCounts | ClockMoved | DroppedCopy) -> None:
        if isinstance(said, ClockMoved):
            self.event_counts["clock moved"] += 1
        elif isinstance(said, DroppedCopy):
            self.event_counts["partials dropped"] += 1
        else:
            told = ("sampled", "filtered", "merged", "dropped")
            self.event_counts.update({name: getattr(said, name) for name in told})

    def _greet(self, reported: ReportedState, now: int) -> None:
        """It has said hello; `reported` is what was known before if that hello was an old one."""
        if reported is self.reported:
            return
        if (reported.boot, reported.installed) != (self.reported.boot, self.reported.installed):
            self._changed()
        self.reported = reported
        self.link.withdraw(FrameKind.HELLO)
        self._happen(MoteEvent.HELLO, now)

    def note_alive(self, now: int) -> None:
        """Data of it came in a frame of another mote, with which it was merged."""
        self._heard_at = now
        if self.state not in (MoteState.UNHEARD, MoteState.GREETED):
            self._happen(MoteEvent.DATA, now)
        self._compare(now)

    def note_overdue(self, now: int) -> None:
        """Whoever knows the schedule says that something due has not come."""
        if self.state not in (MoteState.UNHEARD, MoteState.GREETED):
            self._happen(MoteEvent.OVERDUE, now)

    def note_clock_wrong(self, now: int) -> None:
        """Whoever reads its data says that it is stamped with another time than ours: tell it, but not again and again."""
        if self.state in (*SETTLED, MoteState.LOADING) and now >= self._clock_at + self.pace.wrong_ms:
            self._happen(MoteEvent.MISTIMED, now)

    def run_timers(self, now: int) -> list[Frame]:
        """What the clock brings about. The frames are to be sent now or not at all: times, and questions for gaps."""
        if self.state in (*SETTLED, MoteState.LOADING) and now - self._heard_at >= self.pace.silent_ms:
            self._happen(MoteEvent.SILENCE, now)
        if self.link.longest_payload > self.room():  # the way is longer than it was when they were cut
            self._withdraw()
            self._unsaid = True
        if not self.link.idle:
            self._said_at = now
        elif self.state in (MoteState.UNHEARD, MoteState.LOADING, MoteState.LOST) and (
            self._unsaid or now >= self._said_at + self._pause
        ):
            self._happen(MoteEvent.PAUSE_OVER, now)
        if self.state not in (*SETTLED, MoteState.LOADING) or not self.link.is_listening(now):
            return []
        if now >= self._clock_at + self.pace.clock_ms:
            self._happen(MoteEvent.CLOCK_DUE, now)
        if gaps := list(self.gap_requests.due(self.link.missing(), now)):
            self._happen(MoteEvent.GAP, now)
        room = self.room()
        return [
            *self._time(now),
            *(make_selective_ack(self.link.mote, b, self.link.last_received(b), g, room) for b, g in gaps),
        ]

    def _time(self, now: int) -> list[Frame]:
        if not self._tell_time:
            return []
        self._tell_time, self._clock_at = False, now
        return [self.link.make_frame(Message(FrameKind.TIME, self.link.mote, self.time(now), want_ack=False))]

    def _compare(self, now: int) -> None:
        """Whether what it has is what it should have, where that is the question."""
        same = is_up_to_date(self.desired, self.reported)
        if (
            self.state is MoteState.GREETED
            or (self.state is MoteState.LOADING and same)
            or (self.state in SETTLED and not same)
        ):
            self._happen(MoteEvent.AGREES if same else MoteEvent.DIFFERS, now)

    def _happen(self, event: MoteEvent, now: int) -> None:
        before = self.state
        self.state, action = next_state(before, event)
        if self.state is not before and MoteState.LOST in (before, self.state):
            self._changed()
        if action is MoteAction.TELL_TIME:
            off = self.reported.clock_off_ms
            if event is not MoteEvent.HELLO or off is None or abs(off) > self.pace.off_ms:
                self._tell_time = True
            else:
                self._clock_at = now
        elif (
            action in (MoteAction.ASK, MoteAction.LOAD)
            and self.link.idle
            and (self._unsaid or event is MoteEvent.PAUSE_OVER)
        ):
            self._say(now)

    def _changed(self) -> None:
        """Nothing was said yet about how things are now."""
        self._unsaid, self._times, self._pause = True, 0, self.pace.pause_ms

    def _say(self, now: int) -> None:
        known = self.reported if self.state is MoteState.LOADING else ReportedState()
        self._times += 1  # first, because it says which way this goes, and so how much a frame has room for
        for message in plan_messages(self.desired, known, self.link.mote, self.room()):
            self.link.post(message)
        self._pause = self.pace.pause_ms if self._unsaid else min(self._pause * 3 // 2, self.pace.longest_ms)
        self._unsaid, self._said_at = False, now

    @property
    def is_path_doubtful(self) -> bool:
        """Whether it may not be where we take it to be: it was told once, and does not say that it has heard."""
        return self.state not in SETTLED and self._times > 0 and self._times % 2 == 0


@dataclass(slots=True)
class MoteReconcilers:
    """One keeper for each mote that should have something or was heard.

    `ways` says how a mote is reached, `mtu` how long a frame may be on each hop of it.
    """

    links: Links
    time: Callable[[int], bytes]
    ways: Callable[[MoteId], HopPath] = lambda mote: ()
    pace: ReconcilePolicy = field(default_factory=ReconcilePolicy)
    mtu: int = MAX_FRAME
    by_mote: dict[MoteId, MoteReconciler] = field(default_factory=dict)

    def of(self, mote: MoteId) -> MoteReconciler:
        if mote not in self.by_mote:
            self.by_mote[mote] = MoteReconciler(self.links.of(mote), self.time, self.pace, lambda: self.room(mote))
        return self.by_mote[mote]

    def way(self, mote: MoteId) -> HopPath:
        """How a mote is reached: as the map says, and every other time, or where it is on none, the way its frames come.

        A mote that sleeps hears only whom it was last told to send to, which is not what the map says while that changes.
        """
        reconciler = self.of(mote)
        return (not reconciler.is_path_doubtful and self.ways(mote)) or reconciler.last_path

    def room(self, mote: MoteId) -> int:
        """What a payload may have on its way to a mote."""
        return payload_room(self.mtu, len(route_of(self.way(mote))))

    def set_desired(self, desired: Mapping[MoteId, DesiredState], now: int) -> None:
        """From now on the motes should have this."""
        for mote, what in desired.items():
            self.of(mote).set_desired(what, now)

    def take(self, frames: Iterable[Frame], now: int) -> list[FrameError]:
        """Frames that were not here before; what is wrong with those that say nothing sensible about their mote."""
        errors = []
        for frame in frames:
            try:
                said = self.of(frame.mote).take(frame, now)
            except FrameError as error:
                errors.append(error)
                continue
            if isinstance(said, ClocksDiffer):  # either may be wrong
                for reconciler in (self.of(frame.mote), self.by_mote.get(MoteId(said.mote))):
                    if reconciler:
                        reconciler.note_clock_wrong(now)
        return errors

    def note_alive(self, motes: Iterable[MoteId], now: int) -> None:
        """Data of these came in frames of others."""
        for mote in motes:
            self.of(mote).note_alive(now)

    def run_timers(self, now: int) -> list[Frame]:
        """What the clock brings about, of all motes; to be sent now or not at all."""
        return [frame for reconciler in self.by_mote.values() for frame in reconciler.run_timers(now)]

    def up_to_date_motes(self) -> frozenset[MoteId]:
        """The motes that have said that they have what they should have."""
        return frozenset(
            mote for mote, reconciler in self.by_mote.items() if is_up_to_date(reconciler.desired, reconciler.reported)
        )
