"""Measure one system at one case, in this process, which does nothing else: `python -m bench.measure '{…}'`.

The order and the result are JSON. Data are made and batches prepared outside the time taken; a run ends when all is
taken or `limit` seconds have been spent in steps. `check` digests the answers, and its times are not to be used.
"""

import json
import sys
import time
from array import array
from dataclasses import dataclass

import numpy as np

from bench.answers import Digest
from bench.data import batches
from bench.memory import forget_peak, held, peak
from bench.tasks import TASKS, Case

MOST = 3.0
"""A run takes at most so many times its limit, whatever is done between the steps."""


@dataclass(frozen=True)
class Order:
    """One measurement. `batch` 0 is everything in one batch."""

    system: str
    task: str
    sites: int
    readings: int
    batch: int
    queries: int = 1
    limit: float = 4.0
    check: bool = False

    @property
    def case(self):
        return Case(TASKS[self.task], self.sites, self.readings, self.batch or self.readings * 2, self.queries)


def system_of(name, task):
    """(what makes the system, how its answers get the common form)."""
    if name == "ours":
        from bench.ours import Ours, answers

        return Ours, answers
    from bench import ceiling

    return ceiling.system(name, task), lambda said: said


def measured(order):
    case = order.case
    make, common = system_of(order.system, order.task)
    streams = case.streams()
    digest, marks, taken, times = Digest(), {}, 0, array("d")
    cut = batches(streams, case.batch)
    before = forget_peak()
    system = make(case, streams)
    built = held()
    began, spent = time.perf_counter(), 0.0
    for number, (parts, last) in enumerate(cut, 1):
        batch = system.prepare(parts, last)
        start = time.perf_counter()
        said = system.step(batch)
        times.append(time.perf_counter() - start)
        taken += sum(map(len, parts.values()))
        spent += times[-1]
        if order.check:
            digest.add(common(said))
            if number & (number - 1) == 0:
                marks[taken] = str(digest)
        if spent > order.limit or time.perf_counter() - began > MOST * order.limit:
            break
    most = peak()  # before any statistics: numpy imports a megabyte for a median
    marks[taken] = str(digest)
    return {
        "done": taken,
        "seconds": spent,
        "median_us": float(np.median(times)) * 1e6,
        "p99_us": float(np.quantile(times, 0.99)) * 1e6,
        "built_bytes": built - before,
        "peak_bytes": most - before,
        "marks": marks if order.check else {},
    }


if __name__ == "__main__":
    print(json.dumps(measured(Order(**json.loads(sys.argv[1])))))
