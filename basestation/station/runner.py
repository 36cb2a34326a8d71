"""Runner: drives a durable station by a clock. One thread steps it, and carries out the commands of other threads."""

import queue
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from basestation.station.durable import DurableStation
from basestation.station.retention import Budget
from gateway.errors import MoteloomError
from gateway.log import get_log

if TYPE_CHECKING:
    from basestation.station.archive_maintenance import ArchiveMaintenance
    from basestation.station.file_check import FileCheck
    from basestation.station.full_collections import FullCollections
    from basestation.station.limit_enforcer import LimitEnforcer

Found = TypeVar("Found")

log = get_log(__name__)

LOOKS_PER_TICK = 4
"""Looks in a tick, so that an answer does not wait for the next tick."""
SNAPSHOT_MS = 300_000
"""Between two snapshots: a start takes at most five minutes of entries again."""
COMMAND_SECONDS = 30.0
"""How long a command may wait for the look that carries it out."""
LONGEST_WAIT_SECONDS = 0.5
"""A signal is noticed after so long at the latest."""
LONGEST_STEP_MS = 3_600_000
"""A clock that leaps, as after a long absence, is followed in steps of this length, or of a tick: each has its commit, and a bound of its memory."""
LONGEST_LEAP_MS = 10_000
"""Simulated motes live no longer than this between two looks; where they cannot keep up, the clock goes slower."""


class StationBusyError(MoteloomError):
    """A command was not carried out in time; `help` says what to do."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


class StationClock(Protocol):
    """The time of a station in ms since tick 0; it never goes back."""

    def now_ms(self) -> int:
        """The time now."""

    def seconds_until(self, now_ms: int) -> float:
        """How long to wait, in seconds of the machine, until a time; 0 where it is over."""

    def seconds_since(self, now_ms: int) -> float:
        """How long ago a time was, in seconds of the machine."""

    def slow_down(self, now_ms: int) -> None:
        """Let it be `now_ms` now, which is before the time now."""


@dataclass(slots=True)
class ScaledClock:
    """A clock `speed` times as fast as `monotonic` (seconds, never set back), from `begin_ms` on."""

    monotonic: Callable[[], float]
    begin_ms: int
    speed: float = 1.0
    _begun: float = -1.0

    def now_ms(self) -> int:
        if self._begun < 0:
            self._begun = self.monotonic()
        return self.begin_ms + int((self.monotonic() - self._begun) * 1_000 * self.speed)

    def seconds_until(self, now_ms: int) -> float:
        return max(0.0, -self.seconds_since(now_ms))

    def seconds_since(self, now_ms: int) -> float:
        return (self.now_ms() - now_ms) / 1_000 / self.speed

    def slow_down(self, now_ms: int) -> None:
        self.begin_ms -= self.now_ms() - now_ms


class Surroundings(Protocol):
    """Something that runs beside the station in the same process, such as simulated motes."""

    def advance(self, now_ms: int) -> None:
        """Live until a time."""


def ignore_progress() -> None:
    """The default where nothing watches a runner."""


class Runner:
    """`look` once: end ticks, take frames, answer. `run` does so until it is stopped, and calls `on_progress` each round."""

    def __init__(self, durable: DurableStation, clock: StationClock, beside: Surroundings | None = None,
                 snapshot_ms: int = SNAPSHOT_MS, on_progress: Callable[[], None] = ignore_progress,
                 budget: Budget | None = None, archive: "ArchiveMaintenance | None" = None,
                 file_check: "FileCheck | None" = None, enforcer: "LimitEnforcer | None" = None,
                 collections: "FullCollections | None" = None) -> None:  # fmt: skip
        """After each snapshot it drops the results, events and commands above the `budget`. `collections` are tended between looks."""
        self._budget = budget or Budget()
        self._archive, self._file_check, self._enforcer = archive, file_check, enforcer
        self._collections = collections
        self.damage: str | None = None  # what the check of the file has found
        self.durable, self.clock, self._on_progress = durable, clock, on_progress
        self._beside, self._snapshot_ms = beside, snapshot_ms
        self._commands: queue.SimpleQueue[tuple[Callable[[int], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake, self._stopped, self._has_ended = threading.Event(), False, False
        self.is_committing = self.is_linked = True
        self.looked_ms = durable.last_ms

    def call(self, action: Callable[[int], Found]) -> Found:
        """Carry out an action with the time in ms, between two looks; from any thread but the runner's own."""
        future: Future[Found] = Future()
        self._commands.put((action, future))
        self._wake.set()
        if self._has_ended:
            self._refuse_commands()
        try:
            return future.result(timeout=COMMAND_SECONDS)
        except TimeoutError:
            if future.cancel():
                raise StationBusyError("the station is busy", "nothing was done: repeat it later") from None
            help = "look at /v1/queries before you repeat it: it is being carried out"
            raise StationBusyError("the station is busy", help) from None

    def stop(self) -> None:
        """End `run` after the look that goes on. It takes no lock, so a signal handler may call it."""
        self._stopped = True

    def post(self, action: Callable[[int], Any]) -> None:
        """Carry out an action between two looks, some time later. It takes no lock, so a signal handler may call it."""

        def guarded(now_ms: int) -> None:
            try:
                action(now_ms)
            except Exception as error:  # it has no caller, so the log has it
                log.error("a posted action fails", error=repr(error), trace="".join(traceback.format_exception(error)))

        self._commands.put((guarded, Future()))

    def run(self) -> None:
        """Look at every quarter of a tick until stopped; then commit and keep a snapshot."""
        try:
            self._run()
        finally:  # commands are carried out no more, so their callers must not wait
            for each in (self._archive, self._file_check):
                if each is not None:
                    each.close()
            self._has_ended = True
            self._refuse_commands()

    def _run(self) -> None:
        step_ms = max(1, self.durable.station.world.catalog.tick_ms // LOOKS_PER_TICK)
        log.info("station started", step_ms=step_ms)
        due = self.looked_ms = self.clock.now_ms()
        while not self._stopped:
            self._wake.wait(min(LONGEST_WAIT_SECONDS, self.clock.seconds_until(due)))
            self._wake.clear()
            now = self._read_clock()
            self._carry_out(now)
            if now >= due:
                self.look(now)
                due = now - now % step_ms + step_ms
                if self._collections is not None:
                    self._collections.tend(self.clock.seconds_until(due))
            self._on_progress()  # the watchdog waits for it
        self._carry_out(max(self.clock.now_ms(), self.durable.last_ms))
        self.durable.close(max(self.clock.now_ms(), self.durable.last_ms))
        log.info("station stopped")

    def _read_clock(self) -> int:
        now, latest = self.clock.now_ms(), self.looked_ms + LONGEST_LEAP_MS
        if self._beside is not None and now > latest:
            self.clock.slow_down(now := latest)
        return max(now, self.durable.last_ms)

    def look(self, now_ms: int) -> None:
        """Let the surroundings live until now, then let the station look; first follow a leap of the clock."""
        longest = max(LONGEST_STEP_MS, self.durable.station.world.catalog.tick_ms)  # a step within a tick ends none
        while (end := self._answered_ms() + longest) < now_ms and self.is_committing and not self._stopped:
            self._look(end, is_receiving=False)
            self._on_progress()
        if not self._stopped:
            self._look(now_ms)

    def _answered_ms(self) -> int:
        """The end of the last clock tick that the station has ended."""
        station = self.durable.station
        return (station.engine.clock + 1) * station.world.catalog.tick_ms

    def _look(self, now_ms: int, is_receiving: bool = True) -> None:
        if self._beside is not None:
            self._beside.advance(now_ms)
        is_committing = self.durable.step(now_ms, is_receiving)
        self._note_change(now_ms, "journal", self.is_committing, is_committing, self.durable.failure)
        self._note_change(now_ms, "link", self.is_linked, self.durable.link_failure is None, self.durable.link_failure)
        self.is_committing, self.is_linked = is_committing, self.durable.link_failure is None
        self.looked_ms = now_ms
        if self._file_check is not None and self.damage is None and self._file_check.problem is not None:
            self.damage = self._file_check.problem
            self.durable.note(now_ms, "the check of the file fails", why=self.damage)
        if self._enforcer is not None:
            self._enforcer.tend(now_ms)
        if self._archive is not None:
            self._archive.tend(now_ms)
        if now_ms - self.durable.snapshot_ms >= self._snapshot_ms:
            self.durable.begin_snapshot(now_ms)
            if (
                self.durable.snapshot_ms == now_ms
            ):  # it was tried; where it fails, results and the log still have their limits
                self.durable.trim(now_ms, self._budget)

    def _note_change(self, now_ms: int, what: str, was: bool, now: bool, why: str | None) -> None:
        if was != now:
            self.durable.note(now_ms, f"{what} works again" if now else f"{what} fails", why=why)

    def _refuse_commands(self) -> None:
        while True:
            try:
                _, future = self._commands.get_nowait()
            except queue.Empty:
                return
            if future.set_running_or_notify_cancel():
                future.set_exception(StationBusyError("the station stops", "repeat it when it runs again"))

    def _carry_out(self, now_ms: int) -> None:
        while True:
            try:
                action, future = self._commands.get_nowait()
            except queue.Empty:
                return
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(action(now_ms))
            except BaseException as error:  # the calling thread raises it
                future.set_exception(error)
