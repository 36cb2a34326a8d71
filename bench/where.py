"""Where the engine's time goes: `python -m bench.where W2 [--sites 1000] [--batch 65536] [--readings 1000000]`.

Times are those of a profiler, which makes calls look dearer than they are: what counts are the shares. Without a task
those of all tasks are kept, stage by stage; `make bench` does that.
"""

import argparse
import cProfile
import pstats
import time
from collections import Counter
from pathlib import Path

from bench import record
from bench.ceiling import FILES
from bench.data import batches
from bench.ours import Ours
from bench.tasks import TASKS, Case

SHOWN = 12
STAGES = {  # what is done -> the rooms of the source that do it
    "ingest": ("basestation/execution/ingest", "basestation/progress", "acquisition"),
    "predicate index": ("basestation/execution/streams/predicate_index",),
    "windows": ("basestation/execution/windowing", "basestation/execution/streams"),
    "slices": ("basestation/execution/slices", "basestation/execution/relational"),
    "aggregates": ("innet/aggregates",),
    "joins": ("basestation/execution/joins",),
    "expressions": ("basestation/algebra",),
    "columns": ("basestation/execution/columns",),
    "output": ("basestation/execution", "basestation/execution/output", "basestation/updates"),
}
REST = "other"
DEEP = 5  # calls from a module of ours down into numpy


def profiled(case):
    streams = case.streams()
    engine = Ours(case, streams)
    profile = cProfile.Profile(time.process_time)  # other processes do not count
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


def by_stage(stats):
    """The share of each stage in what is spent in steps."""
    stage_of = {room: stage for stage, rooms in STAGES.items() for room in rooms}
    shares, seconds = Counter(), by_module(stats)
    for module, spent in seconds.items():
        shares[stage_of.get(str(Path(module).parent), REST)] += spent / seconds.total()
    return {stage: shares[stage] for stage in (*STAGES, REST)}


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
    parser.add_argument("task", choices=TASKS, nargs="?")
    for name, usual in (("sites", 1_000), ("batch", 65_536), ("readings", 1_000_000), ("queries", 100)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    told = parser.parse_args()

    def stats_of(task):
        return profiled(Case(TASKS[task], told.sites, told.readings, told.batch or told.readings, told.queries))

    if told.task:
        show(stats_of(told.task))
        return
    shares = {task: by_stage(stats_of(task)) for task in FILES}
    figures = [
        (task, stage, round(share, 4), "of the time") for task, each in shares.items() for stage, share in each.items()
    ]
    record.keep_figures("where", "default", figures)


def show(stats):
    seconds = by_module(stats)
    total = seconds.total()
    print(f"{total:.3f} s in steps, by module:")
    for module, spent in seconds.most_common(SHOWN):
        print(f"{spent / total:6.1%}  {module}")
    print("by function:")
    own = sorted(stats.stats.items(), key=lambda item: -item[1][2])[:SHOWN]
    for (file, line, name), (_, calls, spent, _, _) in own:
        print(f"{spent / total:6.1%}  {calls:>9,} calls  {_ours(file) or Path(file).name}:{line} {name}")


if __name__ == "__main__":
    main()
