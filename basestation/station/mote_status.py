"""Mote status: the health of each mote, judged by its data against its own schedule, never by a connection.

A mote is OK while its frames come as its schedule says. It is LATE when the time between two frames has passed without one, and
LOST after three such times. It is OK again as soon as anything of it arrives, and only then: a lost mote that no query needs is IDLE
meanwhile.
"""

from collections.abc import Iterator, Mapping
from enum import Enum

from basestation.controller.requirements import find_reporting_waits
from basestation.controller.world import World
from gateway.frame import MoteId
from gateway.reconciler import MoteReconciler

LOST_AFTER = 3
"""A mote that is silent for so many times its longest pause is lost."""


class MoteHealth(Enum):
    """Whether the data of a mote comes as its schedule says."""

    UNKNOWN = "unknown"  # nothing of it has ever arrived
    IDLE = "idle"  # no query needs it, so it may be silent
    UNSEEN = "unseen"  # its readings arrive merged into those of others, without its name
    OK = "ok"
    LATE = "late"
    LOST = "lost"


class MoteWatch:
    """The health of each mote; `update` follows the clock."""

    def __init__(self) -> None:
        self.health: dict[int, MoteHealth] = {}
        self._lost: set[int] = set()  # the motes that nothing has arrived of since they were lost
        self._waits: Mapping[int, int] = {}  # by mote, in ticks
        self._starts: Mapping[int, int] = {}  # by mote, the first tick at which it measures by its present schedule
        self._known: Mapping[int, int] | None = None  # the silence limits that the waits belong to
        self._tick = -1

    def update(
        self, world: World, reconcilers: Mapping[MoteId, MoteReconciler], now_ms: int
    ) -> Iterator[tuple[int, MoteHealth]]:
        """Yield each mote that has become lost, or has come back, with its health now; once in each tick."""
        tick = now_ms // world.catalog.tick_ms
        if tick == self._tick:
            return
        last_ms, self._tick = self._tick * world.catalog.tick_ms, tick
        if world.silence_limits is not self._known:  # replaced whenever motes get other schedules
            self._known, self._waits = world.silence_limits, find_reporting_waits(world)
            self._starts = {
                site: min(sampling.epochs.start for sampling in schedule.samplings)
                for site, schedule in world.scheduled.schedules.items()
                if schedule.samplings
            }
        for mote, reconciler in reconcilers.items():
            health = self._judge(mote, reconciler.heard_at, now_ms, world.catalog.tick_ms)
            was_lost = mote in self._lost
            if reconciler.heard_at is not None and reconciler.heard_at >= last_ms:
                self._lost.discard(mote)
            if health is MoteHealth.LOST:
                self._lost.add(mote)
            elif mote in self._lost and health in (MoteHealth.OK, MoteHealth.LATE):
                health = MoteHealth.LOST  # other schedules bring no mote back
            self.health[mote] = health
            if was_lost != (mote in self._lost):
                yield mote, health

    def _judge(self, mote: int, heard_ms: int | None, now_ms: int, tick_ms: int) -> MoteHealth:
        late_ms = self.late_ms(mote, heard_ms, now_ms, tick_ms)
        if late_ms is None:
            is_needed = mote in self._starts
            return MoteHealth.UNKNOWN if heard_ms is None else MoteHealth.UNSEEN if is_needed else MoteHealth.IDLE
        if late_ms > (LOST_AFTER - 1) * self._waits[mote] * tick_ms:
            return MoteHealth.LOST
        if heard_ms is None:
            return MoteHealth.UNKNOWN
        return MoteHealth.LATE if late_ms > 0 else MoteHealth.OK

    def wait_of(self, mote: int) -> int:
        """The ticks until a reading of a mote has arrived or is late; 0 where none is due."""
        return self._waits.get(mote, 0)

    def late_ms(self, mote: int, heard_ms: int | None, now_ms: int, tick_ms: int) -> int | None:
        """How many ms ago a frame of the mote was due at the latest; negative where it is due later, None where never."""
        if mote not in self._waits or mote not in self._starts:
            return None
        return now_ms - max(heard_ms or 0, self._starts[mote] * tick_ms) - self._waits[mote] * tick_ms
