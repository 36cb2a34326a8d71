"""Runner: lets a durable station live in time. One thread looks, and carries out what other threads ask of the station."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from basestation.station.durable import DurableStation

Found = TypeVar("Found")

LOOKS_PER_TICK = 4
"""Looks in a tick, so that an answer does not wait for the next tick."""
SNAPSHOT_MS = 600_000
"""Between two snapshots: a start takes at most ten minutes of entries again."""
SETTLE_SECONDS = 10.0
"""How long a command may wait for the look that carries it out."""


class Clock(Protocol):
    """The time of a station in ms since tick 0; it never goes back."""

    def now_ms(self) -> int:
        """The time now."""

    def seconds_until(self, now_ms: int) -> float:
        """How long to wait, in seconds of the machine, until a time; 0 where it is over."""


@dataclass(slots=True)
class ScaledClock:
    """`speed` times as fast as `monotonic`, a clock in seconds that nobody sets; from `begin_ms` on."""

    monotonic: Callable[[], float]
    begin_ms: int
    speed: float = 1.0
    _begun: float = -1.0

    def now_ms(self) -> int:
        if self._begun < 0:
            self._begun = self.monotonic()
        return self.begin_ms + int((self.monotonic() - self._begun) * 1_000 * self.speed)

    def seconds_until(self, now_ms: int) -> float:
        return max(0.0, (now_ms - self.now_ms()) / 1_000 / self.speed)


class Surroundings(Protocol):
    """What lives beside the station in the same process, such as simulated motes."""

    def advance(self, now_ms: int) -> None:
        """Live until a time."""


class Runner:
    """`look` once: end ticks, take frames, answer. `run` does so until it is stopped."""

    def __init__(self, durable: DurableStation, clock: Clock, beside: Surroundings | None = None,
                 snapshot_ms: int = SNAPSHOT_MS) -> None:  # fmt: skip
        self.durable, self.clock = durable, clock
        self._beside, self._snapshot_ms = beside, snapshot_ms
        self._commands: queue.SimpleQueue[tuple[Callable[[int], Any], Future[Any]]] = queue.SimpleQueue()
        self._wake, self._stopped = threading.Event(), False
        self.is_committing = True
        self.looked_ms = durable.last_ms

    def call(self, action: Callable[[int], Found]) -> Found:
        """Carry out an action with the time in ms, between two looks; from any thread but the runner's own."""
        future: Future[Found] = Future()
        self._commands.put((action, future))
        self._wake.set()
        return future.result(timeout=SETTLE_SECONDS)

    def stop(self) -> None:
        """End `run` after the look that goes on."""
        self._stopped = True
        self._wake.set()

    def run(self) -> None:
        """Look at every quarter of a tick until stopped; then commit and keep a snapshot."""
        step_ms = max(1, self.durable.station.world.catalog.tick_ms // LOOKS_PER_TICK)
        due = self.clock.now_ms()
        while not self._stopped:
            self._wake.wait(self.clock.seconds_until(due))
            self._wake.clear()
            now = max(self.clock.now_ms(), self.durable.last_ms)
            self._carry_out(now)
            if now >= due:
                self.look(now)
                due = now - now % step_ms + step_ms
        self._carry_out(max(self.clock.now_ms(), self.durable.last_ms))
        self.durable.close(max(self.clock.now_ms(), self.durable.last_ms))

    def look(self, now_ms: int) -> None:
        """Let the surroundings live until now, then let the station look."""
        if self._beside is not None:
            self._beside.advance(now_ms)
        was, self.is_committing = self.is_committing, self.durable.step(now_ms)
        if was and not self.is_committing:
            self.durable.note(now_ms, "cannot commit", why=self.durable.failure)
        elif self.is_committing and not was:
            self.durable.note(now_ms, "commits again")
        self.looked_ms = now_ms
        if now_ms - self.durable.snapshot_ms >= self._snapshot_ms:
            self.durable.snapshot(now_ms)

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
            except BaseException as error:  # it belongs to the thread that asked
                future.set_exception(error)
