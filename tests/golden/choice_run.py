"""Runs a recording through the engine under a Choice; see `choices`."""

from dataclasses import replace
from itertools import count, islice, pairwise

import numpy as np

from acquisition.extent import ExtentKind
from basestation.execution.engine import Engine
from basestation.execution.joins.join_plan import enumerate_join_plans
from basestation.execution.plan_checks import StartBeforeRecordError, UnsupportedPlanError
from basestation.execution.snapshot import restore_engine, save_engine
from basestation.language import syntax
from basestation.planner.binder import bind_text
from basestation.replay.driver import NotExecutableError
from basestation.replay.result import Result
from basestation.results.schema import schema_of
from basestation.updates.update import PunctuationUpdate, QueryFailure, split_by_query
from gateway.diagnostics import DiagnosticError
from tests.golden.reverted_corrections import revert_corrections

OTHERS = 1_000
"""Numbers from here on are of other queries."""
FIFTY = 50
PLANS = 200
"""Of more plans than these for a join, one of this many is taken."""
MANY = 300
"""Of more clock ticks than these, this many are ended where all should be."""


class ChoiceRun:
    """One run of a ChoiceCase under a Choice."""

    def __init__(self, case, choice, rng):
        self.case, self.choice, self.rng = case, choice, rng
        self.engine = Engine(case.catalog, rules=choice.rules, tidy_every=choice.tidy_every)
        for name, versions in case.recording.versions.items():
            for tick, columns in versions:
                self.engine.load(name, tick, columns)
        self.result = Result([schema_of(given.number, given.bound) for given in case.queries])
        self._later = {}
        for given in case.statements:
            if given.clock or not given.is_query:
                self._later.setdefault(case.until if given.clock is None else given.clock, []).append(given)
                if given.is_query:
                    self.engine.announce(given.number, given.bound)
        self._deliveries = {name: _by_tick(batch, case.until) for name, batch in case.recording.batches.items()}
        self._detours = revert_corrections(case, rng) if choice.detours else {}
        self._others, self._numbers = [], count(OTHERS)
        self._delivered = -1  # the last clock tick of which everything was delivered

    def run(self):
        """The Result."""
        if self.choice.others:
            self._join(FIFTY)
        self._add([given for given in self.case.queries if not given.clock])
        *ticks, last = self._ticks()
        for clock in ticks:
            self._tick(clock)
            self._collect(self.engine.on_clock(clock))
            if self.choice.exchanged:
                self._exchange()
            if self.choice.saved and self.rng.random() < 0.5:
                self.engine = restore_engine(save_engine(self.engine))
            if self.choice.others == "coming and going" and self.rng.random() < 0.3:
                self._leave()
                self._join(3)
        self._tick(last)
        self._collect(self.engine.finish(last))
        self.result.finish(last, self.engine.ledger())
        return self.result

    def _ticks(self):
        """The clock ticks to end: those with deliveries or statements, and others."""
        until = self.case.until
        asked = [clock - 1 for clock, given in self._later.items() if any(each.is_query for each in given)]
        found = {*self._later, *asked, *self._detours, until, *(t for d in self._deliveries.values() for t in d)}
        if self.choice.ticks == "all":
            found |= set(range(until + 1) if until <= MANY else self.rng.sample(range(until + 1), MANY))
        elif self.choice.ticks == "some":
            given = {*self._later, *asked, *self._detours, until}
            found = given | {tick for tick in found if self.rng.random() < 0.2}
        elif self.choice.ticks == "random":
            found |= {self.rng.randint(0, until) for _ in range(self.rng.randint(0, until + 1))}
        return sorted(tick for tick in found if 0 <= tick <= until)

    def _tick(self, clock):
        """Deliver and submit everything of a clock tick."""
        clocks, self._delivered = range(self._delivered + 1, clock + 1), clock
        parts = [
            (n, b) for n, due in self._deliveries.items() for c in clocks if c in due for b in self._cut(n, due[c])
        ]
        if self.choice.batches == 0:
            parts = _interleaved(parts, self.rng)
        for name, batch in parts:
            self.engine.deliver(name, batch)
        for given in self._later.get(clock, ()):
            if given.is_query:
                self._add([given])
            else:
                self.engine.correct(given.bound)
        for text in self._detours.get(clock, ()):
            for bound in bind_text(text, self.case.catalog):
                self.engine.correct(bound)

    def _cut(self, name, batch):
        if self.choice.shuffled is self.case.catalog.find(name).kind:
            batch = _shuffled(batch, self.rng, self.choice.shuffled)
        size = self.choice.batches
        if size is None:
            return [batch]
        inner = range(1, len(batch))
        cuts = sorted(self.rng.sample(inner, self.rng.randint(0, len(inner)))) if size == 0 else inner[size - 1 :: size]
        edges = [0, *cuts, len(batch)]
        parts = [batch.take(slice(a, b)) for a, b in pairwise(edges)]
        return [self._marked(part) for part in parts] if self.choice.marked else parts

    def _marked(self, batch):
        places = sorted(self.rng.choices(range(len(batch) + 1), k=self.rng.randint(0, 3)))
        return replace(batch, marks=tuple((place, self.rng.random()) for place in places))

    def _add(self, statements):
        for given in statements:
            if isinstance(given.bound.statement, syntax.Explain):
                raise NotExecutableError([given.not_executable_yet("EXPLAIN in a replay")])
            try:
                self.engine.add(given.number, given.bound)
            except UnsupportedPlanError as why:
                raise NotExecutableError([given.not_executable_yet(why.what)]) from None
            except StartBeforeRecordError as why:
                raise DiagnosticError([given.starts_too_early(why)]) from None

    def _join(self, most):
        """Start queries whose answers are ignored."""
        for text in self.rng.sample(self.case.others, min(most, len(self.case.others))):
            try:
                for bound in bind_text(text, self.case.catalog):
                    number = next(self._numbers)
                    if isinstance(bound.statement, syntax.QueryStatement):
                        self.engine.add(number, bound)
                        self._others.append(number)
            except (DiagnosticError, UnsupportedPlanError, StartBeforeRecordError):
                continue  # the query may not fit this schema

    def _exchange(self):
        """Switch every join to another plan."""
        for number, query in self.engine._queries.items():
            for which, join in enumerate(query.joins):
                materializable = [i for i, each in enumerate(join.inputs) if each.is_materializable]
                plans = list(islice(enumerate_join_plans(len(join.inputs), materializable), PLANS))
                self.engine.change_join_plan(number, self.rng.choice(plans), which)

    def _leave(self):
        for number in self.rng.sample(self._others, len(self._others) // 2):
            self.engine.remove(number)
            self._others.remove(number)

    def _collect(self, emitted):
        updates = list(split_by_query(emitted))
        self.result.add([u for u in updates if u.query < OTHERS and not isinstance(u, PunctuationUpdate)])
        for update in updates:
            if isinstance(update, QueryFailure) and update.query in self._others:
                self._others.remove(update.query)


def _by_tick(batch, until):
    """The deliveries by clock tick, in order."""
    return {tick: batch.take(batch.arrival == tick) for tick in np.unique(batch.arrival).tolist() if tick <= until}


def _interleaved(parts, rng):
    """The batches of several extents, interleaved at random; those of one extent keep their order."""
    names = [name for name, _ in parts]
    rng.shuffle(names)
    queues = {name: iter([batch for other, batch in parts if other == name]) for name in names}
    return [(name, next(queues[name])) for name in names]


def _shuffled(batch, rng, kind):
    """The deliveries of one clock tick in another order; unchanged if the order decides which copy of a reading is first."""
    if batch.replaces is not None or (batch.weight < 0).any():
        return batch
    keys = set(zip(batch.tick.tolist(), batch.site.tolist(), strict=True))
    if kind is ExtentKind.SENSED and len(keys) < len(batch):
        return batch
    return batch.take(np.array(rng.sample(range(len(batch)), len(batch)), np.int64))
