"""PlanSwitch: one query answered by one plan up to a clock tick, and by another from there on; its answers don't show it.

A limited query answers only the ticks between its limits, by however many plans.

For the engine each variant of the query is a query of its own, with its own number and state. A variant that starts answers silently at
first. When the query switches to it, it answers all windows after that clock tick. Windows up to it stay with the variant before, which
goes on revising them until none can be revised any more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from acquisition.arrays import BoolArray
from basestation.execution.columns.window_batch import NEVER
from basestation.updates.update import EpochMarks, Interleaved, PunctuationUpdate, TupleUpdates, WindowUpdates

AnswerUpdates = WindowUpdates | TupleUpdates | EpochMarks | Interleaved | PunctuationUpdate


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
        """The variant that answers new windows. KeyError where all variants have been released."""
        for variant, span in reversed(self._spans.items()):
            if span.first < NEVER:
                return variant
        raise KeyError(self.number)

    def start_variant(self, variant: int) -> None:
        """Add a variant, which is silent."""
        self._spans[variant] = VariantTicks()

    def switch_variant(self, clock: int) -> None:
        """Let the newest variant answer all windows after a clock tick."""
        before, following = list(self._spans.values())[-2:]
        following.first, following.last = max(clock + 1, before.first), before.last
        before.last = min(clock, before.last)

    def limit(self, first: int, last: int) -> None:
        """Let the query answer no tick before `first` and none after `last`."""
        for span in self._spans.values():
            if span.first < NEVER:
                span.first, span.last = max(span.first, first), min(span.last, last)

    def is_over(self, variant: int, settled: int = NEVER) -> bool:
        """Return whether all windows of a variant are before a tick from which on windows may still be revised."""
        return self._spans[variant].last < min(settled, NEVER)

    def release(self, variant: int) -> None:
        """Forget a variant: it answers no window any more."""
        del self._spans[variant]

    def select(self, updates: AnswerUpdates) -> Sequence[AnswerUpdates]:
        """Return the updates of a variant that it answers, as updates of the query."""
        span = self._spans.get(updates.query, VariantTicks())
        if isinstance(updates, PunctuationUpdate):
            return [replace(updates, query=self.number)] if span.first <= updates.tick <= span.last else []
        if isinstance(updates, Interleaved):
            return [part for piece in updates.pieces() for part in self.select(piece)]
        updates = replace(updates, query=self.number)
        within = np.atleast_1d((updates.tick >= span.first) & (updates.tick <= span.last))
        return [updates.take(run) for run in _runs(within)] if not within.all() else [updates]


def _runs(within: BoolArray) -> list[slice]:
    """The slices in which all are true."""
    edges = [0, *(np.flatnonzero(np.diff(within)) + 1).tolist(), len(within)]
    return [slice(begin, end) for begin, end in pairwise(edges) if begin < end and within[begin]]
