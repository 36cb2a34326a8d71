"""PlanSwitch: one query answered by one plan up to a clock tick, and by another from there on; its answers don't show it.

For the engine each variant of the query is a query of its own, with its own number and state. A variant that starts answers silently at
first. When the query switches to it, it answers all windows after that clock tick. Windows up to it stay with the variant before, which
goes on revising them until none can be revised any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from basestation.execution.columns.window_batch import NEVER
from basestation.updates.update import PunctuationUpdate, WindowUpdates


@dataclass(slots=True)
class VariantTicks:
    """The ticks `first` to `last` of the windows that a variant answers; none while `first` is NEVER."""

    first: int = NEVER
    last: int = NEVER


class PlanSwitch:
    """The variants of query `number`, by their own numbers; the first one has that of the query."""

    def __init__(self, number: int) -> None:
        self.number, self._spans = number, {number: VariantTicks(-NEVER)}

    @property
    def variants(self) -> list[int]:
        """The numbers of the variants, oldest first."""
        return list(self._spans)

    @property
    def active(self) -> int:
        """The variant that answers new windows."""
        return next(variant for variant, span in self._spans.items() if span.first < NEVER == span.last)

    def start_variant(self, variant: int) -> None:
        """Add a variant, which is silent."""
        self._spans[variant] = VariantTicks()

    def switch_variant(self, clock: int) -> None:
        """Let the newest variant answer all windows after a clock tick."""
        before, following = list(self._spans.values())[-2:]
        before.last, following.first = clock, clock + 1

    def is_over(self, variant: int, settled: int = NEVER) -> bool:
        """Return whether all windows of a variant are before a tick from which on windows may still be revised."""
        return self._spans[variant].last < min(settled, NEVER)

    def release(self, variant: int) -> None:
        """Forget a variant: it answers no window any more."""
        del self._spans[variant]

    def select(self, updates: WindowUpdates | PunctuationUpdate) -> Sequence[WindowUpdates | PunctuationUpdate]:
        """Return the updates of a variant that it answers, as updates of the query."""
        span = self._spans.get(updates.query, VariantTicks())
        if isinstance(updates, PunctuationUpdate):
            return [replace(updates, query=self.number)] if span.first <= updates.tick <= span.last else []
        within = np.atleast_1d((updates.tick >= span.first) & (updates.tick <= span.last))
        updates = replace(updates, query=self.number)
        if within.all() or not within.any():
            return [updates] if within.any() else []
        edges = [0, *(np.flatnonzero(np.diff(within)) + 1).tolist(), len(within)]
        return [updates.take(slice(begin, end)) for begin, end in pairwise(edges) if within[begin]]
