"""Engine: standing queries come and go; batches go in, and at the end of each clock tick updates come out.

It has no clock and does no input or output. So far it runs plain windows (`execution/plain.py`) and refuses the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from acquisition.batch import Batch
from basestation.execution.plain import PlainWindows, plain_windows
from basestation.execution.readings import Readings, Taken
from basestation.planner.plan import Plan
from basestation.revisions.update import Coverage, Update


class NotYet(Exception):
    """The plan is valid, and this version cannot run it. `what` names the part that is missing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} cannot be executed yet")
        self.what = what


@dataclass(slots=True)
class Standing:
    """A query that runs: how far it is answered, and the last revision of each window that was revised."""

    plan: PlainWindows
    answered: int
    begun: int
    revisions: dict[int, int] = field(default_factory=dict)


class Engine:
    """`clock` is the last clock tick that ended."""

    def __init__(self, clock: int = -1) -> None:
        self.clock = clock
        self.readings: dict[str, Readings] = {}
        self._queries: dict[int, Standing] = {}
        self._delivered: dict[str, list[Batch]] = {}

    def add(self, number: int, plan: Plan) -> None:
        """Run a query from now on: its first window is the first on the grid after the clock. NotYet if it cannot."""
        windows = plain_windows(plan)
        if isinstance(windows, str):
            raise NotYet(windows)
        if number in self._queries:
            raise ValueError(f"there is a query {number} already")
        extent = windows.extent
        self.readings.setdefault(extent.name, Readings(extent, self.clock + 1))
        self._queries[number] = Standing(windows, self.clock, self.clock)

    def remove(self, number: int) -> None:
        """Stop a query. KeyError if there is none of that number."""
        del self._queries[number]

    def deliver(self, extent: str, batch: Batch) -> None:
        """Take readings that came in the clock tick that is going on; nothing is said before it ends."""
        if extent not in self.readings:
            raise KeyError(f"no query has asked for `{extent}`")
        self._delivered.setdefault(extent, []).append(batch)

    def on_clock(self, tick: int) -> list[Update]:
        """The clock tick ends: revisions of answered windows first, then the windows that have become due."""
        if tick <= self.clock:
            raise ValueError(f"clock tick {tick} ends after {self.clock} has ended")
        taken = {name: readings.take(self._delivered.pop(name, []), tick) for name, readings in self.readings.items()}
        self.clock = tick
        updates = [
            update
            for number, query in self._queries.items()
            for update in self._updates(number, query, taken[query.plan.extent.name])
        ]
        for name, readings in self.readings.items():
            readings.forget(tick - readings.extent.horizon - self._reach(name))
        return updates

    def _updates(self, number: int, query: Standing, taken: Taken) -> Iterator[Update]:
        readings = self.readings[query.plan.extent.name]
        yield from self._revise(number, query, taken, readings)
        due = readings.watermark.at(self.clock)
        for tick in query.plan.windows(query.answered, due):
            held = query.plan.sampled(readings.between(tick + query.plan.begin, tick + query.plan.end))
            yield query.plan.answer(number, tick, 0, held, self._coverage(query.plan, readings, tick, len(held)))
        query.answered = max(query.answered, due)

    def _revise(self, number: int, query: Standing, taken: Taken, readings: Readings) -> Iterator[Update]:
        """Readings are only ever added here, so a revision gives the late ones and takes nothing back."""
        plan = query.plan
        late = plan.sampled(taken.fresh)
        touched = {tick for late_tick in taken.late_ticks.tolist() for tick in plan.windows_holding(late_tick)}
        for tick in sorted(touched):
            if not query.begun < tick <= query.answered:
                continue
            first, last = tick + plan.begin, tick + plan.end
            added = late.take((late.tick >= first) & (late.tick <= last))
            if len(added):
                held = plan.sampled(readings.between(first, last))
                revision = query.revisions[tick] = query.revisions.get(tick, 0) + 1
                yield plan.answer(number, tick, revision, added, self._coverage(plan, readings, tick, len(held)))
        horizon = self.clock - plan.extent.horizon
        query.revisions = {tick: revision for tick, revision in query.revisions.items() if tick >= horizon}

    def _coverage(self, plan: PlainWindows, readings: Readings, tick: int, used: int) -> Coverage:
        return used, plan.due(tick, readings.first_due)

    def _reach(self, extent: str) -> int:
        """How far back from a window's tick any query over the extent looks."""
        return max((-q.plan.begin for q in self._queries.values() if q.plan.extent.name == extent), default=0)
