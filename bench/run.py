"""Run the tasks W1 to W8: `python -m bench.run [--full] [W1 …]`; the systems take turns, each in a process of its own.

Of every case each system is checked once and then measured a few times (once, of those sizes that only `--full` has).
Two systems agree if their digests are equal wherever both came to after the same batch: so each has handed
out, batch by batch, what was due.
"""

import argparse
import json
import tempfile
from dataclasses import asdict, replace
from itertools import product
from statistics import median

from bench import ceiling, peers, record
from bench.measure import Order
from bench.peers import measure as peer_measure
from bench.tasks import TASKS

REPETITIONS = 3
PEER_REPETITIONS = 2
MILLION = 1_000_000
SITES = (4, 1_000)
BATCHES = (1, 100, 1_000, 65_536, 0)
WIDE = (65_536, 0)
"""Batches at which Polars and DuckDB are tried, too: at smaller ones a call of theirs takes longer than the batch."""
STANDING = (10, 100, 1_000, 10_000)


def default_cases():
    """Yield the cases of `make bench`: every task at 65,536 and tuple by tuple, W2 in other batches, W6 by the number of queries."""
    for task in TASKS:
        for sites in SITES:
            for queries in STANDING if task == "W6" and sites == 1_000 else (100,) if task == "W6" else (1,):
                yield Order("", task, sites, MILLION, 65_536, queries)
    for batch in (100, 1_000, 0):
        yield Order("", "W2", 1_000, MILLION, batch)
    for task in ("W1", "W2", "W3", "W4", "W5", "W7", "W8"):
        yield Order("", task, 1_000, MILLION, 1)


def other_cases():
    """The sizes that are left, widest batches first, in runs half as long. Ten million in batches of 1 or 100 are no case
    of their own: their run would end by the clock within the first million, and be that of a million."""
    known = set(default_cases())
    for batch in reversed(BATCHES):
        for readings in (MILLION, 10 * MILLION) if batch not in (1, 100) else (MILLION,):
            for task, sites in product(TASKS, SITES):
                for queries in STANDING if task == "W6" else (1,):
                    case = Order("", task, sites, readings, batch, queries)
                    if case not in known:
                        yield replace(case, limit=case.limit / 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="every size")
    parser.add_argument("--limit", type=float, help="seconds that a run may spend in steps")
    parser.add_argument("tasks", nargs="*", choices=[[], *TASKS], metavar="TASK")
    options = parser.parse_args()
    cases = [(case, REPETITIONS) for case in default_cases()]
    cases += [(case, 1) for case in other_cases()] if options.full else []
    size = ("full" if options.full else "default") + "".join(f" {task}" for task in options.tasks)
    head = record.conditions(size)
    for case, repetitions in cases:
        if options.tasks and case.task not in options.tasks:
            continue
        if options.limit:
            case = replace(case, limit=options.limit)
        rows = measured(case, repetitions)
        record.keep("tasks", [head | row for row in rows])
        print(_line(case, rows), flush=True)
    tasks = [task for task in peers.TASKS if not options.tasks or task in options.tasks]
    with tempfile.TemporaryDirectory() as folder:
        for peer in peers.PEERS:
            for task, sites in product(tasks, SITES if options.full else SITES[1:]):
                try:
                    rows = list(peer_measure.rows_of(peer, task, sites, folder, PEER_REPETITIONS))
                except peer_measure.LeftOut as why:
                    print(f"{task} {sites:>5} sites, {peer.name} left out: {why}", flush=True)
                    continue
                record.keep("tasks", [head | row for row in rows])
                print(peer_measure.line(rows), flush=True)


def systems_of(case):
    """Ours, and what was written by hand."""
    names = ["ours", *ceiling.by_hand(case.task)]
    return [name for name in names if name in ("ours", "numpy") or case.batch in WIDE]


def measured(case, repetitions):
    """Rows for the CSV: each system and repetition."""
    systems = systems_of(case)
    checks = {system: _run(replace(case, system=system, check=True)) for system in systems}
    agrees = {system: _agreed(system, checks) for system in systems}
    rows = []
    for repetition in range(1, repetitions + 1):
        for system in systems:
            found = _run(replace(case, system=system))
            rows.append(_row(case, system, repetition, found, agrees[system]))
    return rows


def _row(case, system, repetition, found, agrees):
    about = asdict(case) | {"system": system}
    names = ("task", "system", "sites", "readings", "batch", "queries")
    return {name: about[name] for name in names} | {
        "repetition": repetition,
        "done": found["done"],
        "seconds": round(found["seconds"], 6),
        "median_us": round(found["median_us"], 2),
        "p99_us": round(found["p99_us"], 2),
        "built_bytes": found["built_bytes"],
        "peak_bytes": found["peak_bytes"],
        "agrees": agrees,
    }


def _run(order):
    return record.child("bench.measure", json.dumps(asdict(order)))


def _agreed(system, checks):
    """For how many readings a system is known to agree with another; -1 where it differs from any."""
    found = [_agree(checks[system], other) for name, other in checks.items() if name != system]
    return -1 if -1 in found else max(found, default=0)


def _agree(one, other):
    """For how many readings the digests of two systems are known to be equal; -1 where they differ anywhere."""
    both = one["marks"].keys() & other["marks"].keys()
    if any(one["marks"][taken] != other["marks"][taken] for taken in both):
        return -1
    return max(map(int, both), default=0)


def _line(case, rows):
    parts = []
    for system in dict.fromkeys(row["system"] for row in rows):
        mine = [row for row in rows if row["system"] == system]
        rate = median(row["done"] / row["seconds"] for row in mine)
        peak = median(row["peak_bytes"] for row in mine) / 2**20
        wrong = " DIFFERS" if mine[0]["agrees"] < 0 else ""
        parts.append(f"{system} {rate:,.0f}/s {peak:,.1f} MB{wrong}")
    queries = f", {case.queries} queries" if case.queries > 1 else ""
    what = f"{case.task} {case.sites} sites, batch {case.batch or 'whole'}{queries}"
    return f"{what:<42}{'; '.join(parts)}"


if __name__ == "__main__":
    main()
