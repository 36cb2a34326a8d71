"""Runs the tests that draw from the seed under many seeds, in few processes that collect the tests once.

    python tools/seeds.py --count 100                      # the known ones, and others drawn from one that is printed
    python tools/seeds.py --seeds 7,1589667340             # these
    python tools/seeds.py --count 20 --jobs 2 --minutes 30 # two processes; no seed begins after half an hour
    python tools/seeds.py --count 20 tests/replay -k quiet # the words of pytest choose among the tests

A test draws from the seed if it uses Hypothesis, the fixture `rng` or `run_seed`, or the mark `sample`. The others do the
same under each seed, and do not run. A test draws what `MOTELOOM_SEED=n make test` lets it draw, but the process has run other seeds
before, so its caches are filled. KNOWN_SEEDS run first. Exits with 1 if a test failed, a process was killed, or a seed was not begun.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[1]
KNOWN_SEEDS = (1589667340, 2610427917, 4052358518, 3)
"""Seeds under which a test once failed."""


Status: TypeAlias = tuple[str, str, str]
"""How pytest counts, abbreviates and calls the outcome of a test."""


class SeedRounds:
    """A plugin of pytest: a round of the tests for each seed. It prints a line for each round and each failure."""

    def __init__(self, seeds: list[int], minutes: float | None) -> None:
        self.__name__ = "seeds"  # tests/conftest.py looks for a plugin of this name
        self._seeds = seeds
        self._until = None if minutes is None else time.monotonic() + 60 * minutes
        self._failed: list[str] = []
        self._ran = 0
        self.unbegun = 0
        """Seeds that were not begun, as the time was over."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        from tests.conftest import draws_from_seed

        config.hook.pytest_deselected(items=[item for item in items if not draws_from_seed(item)])
        items[:] = [item for item in items if draws_from_seed(item)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        from tests.conftest import drawn, use_seed

        if session.testsfailed:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        for number, seed in enumerate([] if session.config.option.collectonly else self._seeds):
            if self._until is not None and time.monotonic() >= self._until:
                self.unbegun = len(self._seeds) - number
                print(f"seeds: {self.unbegun} were not begun, as the time was over", flush=True)
                break
            use_seed(seed)
            self._failed, self._ran, begun = [], 0, time.monotonic()
            items = drawn(session.items, seed)
            for item, after in zip(items, [*items[1:], session.items[0]], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            outcome = f"{len(self._failed)} failed, " if self._failed else ""
            print(f"seed {seed}: {outcome}{self._ran} ran in {time.monotonic() - begun:.0f} s", flush=True)
            for name in self._failed:
                print(f"  MOTELOOM_SEED={seed} {name}", flush=True)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._ran += report.when == "call" and not report.skipped
        if report.failed:
            self._failed.append(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Status, Status]:
        """No sign for each test, which would stand before the lines of the rounds."""
        category, _, word = yield
        return category, "", word


def run_here(seeds: list[int], minutes: float | None, others: list[str]) -> int:
    """Run the seeds in this process; the exit code of pytest, or 1 where seeds were not begun."""
    os.environ["MOTELOOM_SEED"] = str(seeds[0])
    # The folders of tests that pass are removed, as there are thousands of them.
    options = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-o", "tmp_path_retention_policy=failed"]
    options += ["-o", "console_output_style=classic"]
    rounds = SeedRounds(seeds, minutes)
    return int(pytest.main([*options, *others], plugins=[rounds])) or int(rounds.unbegun > 0)


def run_beside(seeds: list[int], jobs: int, minutes: float | None, others: list[str]) -> int:
    """Run the seeds in some processes, each a share of them; 1 unless each of them ends with 0."""
    command = [sys.executable, __file__, *([] if minutes is None else ["--minutes", str(minutes)])]
    shares = [",".join(map(str, seeds[job::jobs])) for job in range(min(jobs, len(seeds)))]
    running = [subprocess.Popen([*command, "--seeds", share, *others], cwd=ROOT) for share in shares]
    try:
        codes = [each.wait() for each in running]
        for code in codes:
            if code < 0:
                print(f"seeds: a process was ended by {signal.Signals(-code).name}", flush=True)
        return int(any(codes))
    except KeyboardInterrupt:
        for each in running:
            each.wait()
        return 130


def choose(count: int) -> list[int]:
    """That many seeds: the known ones, and others that MOTELOOM_SEED draws."""
    first = int(os.environ.get("MOTELOOM_SEED") or random.SystemRandom().randrange(2**32))
    print(f"seeds: {count} of MOTELOOM_SEED={first}", flush=True)
    others = random.Random(first)
    return [*KNOWN_SEEDS, *(others.randrange(2**32) for _ in range(count))][:count]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--count", type=int, default=10, help="how many seeds; default: %(default)s")
    group.add_argument("--seeds", type=lambda text: [int(each) for each in text.split(",")], help="these seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes; default: %(default)s")
    parser.add_argument("--minutes", type=float, help="no seed begins later than this")
    args, others = parser.parse_known_args()
    seeds = args.seeds or choose(max(1, args.count))
    os.environ.setdefault("MOTELOOM_COUNTS", "small")
    if args.jobs > 1 and len(seeds) > 1:
        return run_beside(seeds, args.jobs, args.minutes, others)
    return run_here(seeds, args.minutes, others)


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
