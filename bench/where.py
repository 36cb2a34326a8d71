"""Where the engine's time goes in one case: `python -m bench.where W2 [--sites 1000] [--batch 65536] [--readings 1000000]`.

Times are those of a profiler, which makes calls look dearer than they are: what counts are the shares.
"""

import argparse
import cProfile
import pstats
from collections import Counter
from pathlib import Path

from bench import record
from bench.data import batches
from bench.ours import Ours
from bench.tasks import TASKS, Case

SHOWN = 12
DEEP = 5  # calls from a module of ours down into numpy


def profiled(case):
    streams = case.streams()
    engine = Ours(case, streams)
    profile = cProfile.Profile()
    for number, (parts, last) in enumerate(batches(streams, case.batch)):
        batch = engine.prepare(parts, last)
        if number:  # with the first one, libraries load what they need
            profile.enable()
        engine.step(batch)
        profile.disable()
    return pstats.Stats(profile)


def by_module(stats):
    """Seconds in each module of ours, with all that it calls of numpy and Python."""
    seconds = Counter()
    for function, (_, _, own, _, _) in stats.stats.items():
        for module, share in _owners(stats.stats, function, DEEP).items():
            seconds[module] += own * share
    return seconds


def _owners(calls, function, deep):
    """The modules of ours on whose behalf a function runs, and their shares; by who called it, and who called that."""
    if module := _ours(function[0]):
        return {module: 1.0}
    callers = calls[function][4]
    whole = sum(spent for *_, spent in callers.values())
    if not deep or not whole:
        return {"elsewhere": 1.0}
    owners = Counter()
    for caller, (*_, spent) in callers.items():
        for module, share in _owners(calls, caller, deep - 1).items():
            owners[module] += share * spent / whole
    return owners


def _ours(file):
    path = Path(file)
    return (
        str(path.relative_to(record.ROOT)) if path.is_relative_to(record.ROOT) and ".venv" not in path.parts else None
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=TASKS)
    for name, usual in (("sites", 1_000), ("batch", 65_536), ("readings", 1_000_000), ("queries", 100)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    told = parser.parse_args()
    stats = profiled(Case(TASKS[told.task], told.sites, told.readings, told.batch or told.readings, told.queries))
    seconds = by_module(stats)
    total = sum(seconds.values())
    print(f"{total:.3f} s in steps, by module:")
    for module, spent in seconds.most_common(SHOWN):
        print(f"{spent / total:6.1%}  {module}")
    print("by function:")
    own = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:SHOWN]
    for (file, line, name), (_, calls, spent, _, _) in own:
        print(f"{spent / total:6.1%}  {calls:>9,} calls  {_ours(file) or Path(file).name}:{line} {name}")


if __name__ == "__main__":
    main()
