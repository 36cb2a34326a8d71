"""Runs the trials of several seeds, in this process or in several processes at a time."""

import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path

from basestation.testbed.trials import Trial, TrialRun
from gateway.errors import MoteloomError
from simulator.scenario import Scenario

_STEPS = 256
"""A process looks after so many steps whether it is to stop."""
_stop: Event | None = None


@dataclass(frozen=True, slots=True)
class TrialOrder:
    """The trials to run: `ms` of a scenario, with a folder for each seed below `out`, if that is given."""

    scenario: Scenario
    ms: int
    out: Path | None = None
    swept: bool = False
    always_on: bool = False

    def run(self, seed: int, on_progress: Callable[[int], None] = lambda ms: None) -> Trial:
        """Run one seed."""
        folder = self.out / f"seed-{seed}" if self.out else None
        return TrialRun(self.scenario, seed, folder, self.swept, self.always_on).run(self.ms, on_progress)


class _StoppedError(MoteloomError):
    """The process that ordered a trial wants no more of it."""


def run_trials(
    order: TrialOrder, seeds: Sequence[int], jobs: int, on_progress: Callable[[int], None]
) -> Generator[Trial, None, None]:
    """Run the seeds and yield their trials in order. `on_progress` gets the simulated milliseconds of all seeds so far.

    With more than one job, seeds run in processes of their own. They stop when the iterator is closed.
    """
    if jobs == 1 or len(seeds) == 1:
        for number, seed in enumerate(seeds):
            yield order.run(seed, partial(_add, on_progress, order.ms * number))
        return
    context = get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(min(jobs, len(seeds)), context, _begin_process, (stop,)) as pool:
        try:
            for number, trial in enumerate(_submit(pool, order, seeds), 1):
                on_progress(order.ms * number)
                yield trial
        finally:
            stop.set()  # processes that are just starting read it, so wait for them
            pool.shutdown(wait=True, cancel_futures=True)


def _add(on_progress: Callable[[int], None], before: int, ms: int) -> None:
    on_progress(before + ms)


def _submit(pool: ProcessPoolExecutor, order: TrialOrder, seeds: Sequence[int]) -> Iterator[Trial]:
    """Start the processes. Ctrl-C must not reach one that has not begun: it would end with a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        return pool.map(partial(_run_seed, order), seeds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_process(stop: Event) -> None:
    """Ctrl-C reaches all processes of a terminal; the first one decides what ends."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _run_seed(order: TrialOrder, seed: int) -> Trial:
    steps = 0

    def look(ms: int) -> None:
        nonlocal steps
        steps += 1
        if steps % _STEPS == 0 and _stop is not None and _stop.is_set():
            raise _StoppedError

    return order.run(seed, look)
