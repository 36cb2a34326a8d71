"""Succession: one query answered in one way up to a clock tick, and in another from there on; nobody can tell from its answers.

For the engine each way is a query of its own, under a number of its own, with its own state. One that follows answers unheard at
first. When it is handed over to, it is heard of all windows behind that clock tick; those up to it stay with whoever was first,
which goes on revising them until none can be revised any more.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from basestation.execution.columns.window_batch import NEVER


@dataclass(slots=True)
class VariantTicks:
    """The ticks of the windows of which a way is heard; none, while `first` is NEVER."""

    first: int = NEVER
    last: int = NEVER


class PlanSwitch:
    """The ways of query `number`, by their own numbers, of which the first is that of the query."""

    def __init__(self, number):
        self.number, self._spans = number, {number: VariantTicks(-NEVER)}

    @property
    def variants(self):
        return list(self._spans)

    @property
    def active(self):
        """The way that is heard of what comes."""
        return next(variant for variant, span in self._spans.items() if span.first < NEVER == span.last)

    def start_variant(self, variant):
        """Another way begins, unheard."""
        self._spans[variant] = VariantTicks()

    def switch_variant(self, clock):
        """All windows behind a clock tick are those of the way that follows."""
        before, following = list(self._spans.values())[-2:]
        before.last, following.first = clock, clock + 1

    def over(self, variant, settled=NEVER):
        """Whether all that a way is heard of was before a tick that is `settled`."""
        return self._spans[variant].last < min(settled, NEVER)

    def release(self, variant):
        del self._spans[variant]

    def of(self, updates):
        """What of an update of one of the ways is heard, as the query's."""
        span = self._spans.get(updates.query, VariantTicks())
        within = np.atleast_1d((updates.tick >= span.first) & (updates.tick <= span.last))
        updates = replace(updates, query=self.number)
        if within.all() or not within.any():
            return [updates] if within.any() else []
        edges = [0, *(np.flatnonzero(np.diff(within)) + 1).tolist(), len(within)]
        return [updates.take(slice(begin, end)) for begin, end in pairwise(edges) if within[begin]]
