"""Engine: standing queries come and go; batches go in, and at the end of each clock tick answers come out.

It has no clock and does no input or output: what time it is, and what was delivered, are arguments.
"""

from acquisition.extent import Kind
from basestation.execution.build import NotYet, Query, unsupported
from basestation.execution.correcting import correcting
from basestation.execution.intake import Intake
from basestation.execution.tables import Table
from basestation.planner.rewrite import RULES, rewrite
from basestation.planner.rules.aggregate_by_slices import aggregate_by_slices
from basestation.planner.rules.join_below_window import join_below_window
from basestation.revisions.answers import Ended

EXECUTABLE = tuple(rule for rule in RULES if rule not in (aggregate_by_slices, join_below_window))
"""The rewrites whose operators can be run."""


class Engine:
    """`clock` is the last clock tick that ended; it begins before tick 0, or before `begun`.

    A recording is sampled from its beginning. Live, a sensed extent is scheduled when the first query needs it (12.3).
    """

    def __init__(self, catalog, begun=0, live=False, rules=EXECUTABLE, tidy_every=64):
        self.catalog, self._begun, self._rules = catalog, begun, rules
        self._tidy_every, self._steps = tidy_every, 0
        self.clock = begun - 1
        streams = [e for e in catalog if e.kind is not Kind.STORED and e.sites is not None]
        self._intakes = {e.name: Intake(e, begun, scheduled=not live) for e in streams}
        self._tables = {e.name: Table(e) for e in catalog if e.kind is Kind.STORED}
        self._queries = {}
        self._delivered = {name: [] for name in self._intakes}
        self._corrections = {name: [] for name in self._intakes}

    def load(self, extent, tick, columns):
        """A version of a stored extent, from its tick on."""
        self._tables[extent].load(tick, columns)

    def add(self, number, plan):
        """Run a query from now on: its first window is the first on the grid after the clock. NotYet if it cannot be run."""
        if number in self._queries:
            raise ValueError(f"there is a query {number} already")
        missing = unsupported(plan)
        if missing:
            raise NotYet(missing)
        better, _ = rewrite(plan, self._rules)
        query = Query(number, plan, better.root, self._intakes, self._tables, self.clock + 1, self._begun)
        self._queries[number] = query
        for intake in query.sensed:
            intake.epochs.schedule(self.clock + 1)

    def remove(self, number):
        """Stop a query. KeyError if there is none of that number."""
        del self._queries[number]

    def deliver(self, extent, batch):
        """Take tuples that came in the clock tick that is going on; nothing is said before it ends."""
        self._delivered[extent].append(batch)

    def correct(self, correction):
        """Carry out REVISE, DELETE or INSERT after the deliveries of the clock tick that is going on (12.2)."""
        self._corrections[correction.extent.name].append(correcting(correction))

    def on_clock(self, tick):
        """The clock tick ends: what every query has to say, query by query."""
        return self._step(tick, end=False)

    def finish(self, until):
        """Clock tick `until` ends, and with it the recording: all watermarks go to it (1.5)."""
        return self._step(until, end=True)

    def _step(self, tick, end):
        """What became due before this clock tick is answered before its deliveries revise it."""
        if tick <= self.clock:
            raise ValueError(f"clock tick {tick} ends after {self.clock} has ended")
        delivered, self._delivered = self._delivered, {name: [] for name in self._intakes}
        corrections, self._corrections = self._corrections, {name: [] for name in self._intakes}
        said = []
        if tick - 1 > self.clock and any(
            intake.disturbed_by(delivered[name], corrections[name], tick) for name, intake in self._intakes.items()
        ):
            said += self._end(tick - 1, {name: intake.step([], [], tick - 1) for name, intake in self._intakes.items()})
        steps = {
            name: intake.step(delivered[name], corrections[name], tick, end) for name, intake in self._intakes.items()
        }
        return said + self._end(tick, steps)

    def _end(self, tick, steps):
        self.clock = tick
        said = []
        for number, query in list(self._queries.items()):
            said += query.step(steps, tick)
            if query.halt is not None:
                said.append(Ended(number, query.halt.code, query.halt.message, tick))
                del self._queries[number]
        self._steps += 1
        if self._steps % self._tidy_every == 0:
            self._tidy()
        return said

    def _tidy(self):
        """State is bounded: what no window and no horizon can reach is let go of."""
        needed = {name: intake.watermark for name, intake in self._intakes.items()}
        for query in self._queries.values():
            for name, tick in query.forget().items():
                needed[name] = min(needed[name], tick)
        for name, intake in self._intakes.items():
            intake.forget(needed[name])

    def ledger(self):
        """What became of everything that was delivered, by extent."""
        return {name: dict(sorted(intake.counts.items())) for name, intake in self._intakes.items()}
