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
class Span:
    """The ticks of the windows of which a way is heard; none, while `first` is NEVER."""

    first: int = NEVER
    last: int = NEVER


class Succession:
    """The ways of query `number`, by their own numbers, of which the first is that of the query."""

    def __init__(self, number):
        self.number, self._spans = number, {number: Span(-NEVER)}

    @property
    def ways(self):
        return list(self._spans)

    @property
    def heard(self):
        """The way that is heard of what comes."""
        return next(way for way, span in self._spans.items() if span.first < NEVER == span.last)

    def follow(self, way):
        """Another way begins, unheard."""
        self._spans[way] = Span()

    def hand_over(self, clock):
        """All windows behind a clock tick are those of the way that follows."""
        before, following = list(self._spans.values())[-2:]
        before.last, following.first = clock, clock + 1

    def over(self, way, settled=NEVER):
        """Whether all that a way is heard of was before a tick that is `settled`."""
        return self._spans[way].last < min(settled, NEVER)

    def let_go(self, way):
        del self._spans[way]

    def of(self, said):
        """What of an update of one of the ways is heard, as the query's."""
        span = self._spans.get(said.query, Span())
        within = np.atleast_1d((said.tick >= span.first) & (said.tick <= span.last))
        said = replace(said, query=self.number)
        if within.all() or not within.any():
            return [said] if within.any() else []
        edges = [0, *(np.flatnonzero(np.diff(within)) + 1).tolist(), len(within)]
        return [said.take(slice(begin, end)) for begin, end in pairwise(edges) if within[begin]]
