"""Aside: what was delivered in clock ticks in which nothing was due, and which it did not disturb; it is taken in with what follows.

Answers are the same however what is delivered is cut, so many small batches may be one: what a step costs is shared by them.
"""

from collections import Counter
from itertools import groupby

import numpy as np

from acquisition.batch import Batch, mask_of, unit_weights
from basestation.algebra.vector import any_true
from basestation.execution.ingest import step_plan
from basestation.execution.ingest.batch_runs import is_plain
from innet.aggregates.identity_memo import IdentityMemo

_MANY, _LARGE = 2**9, 2**14
"""So many batches, or tuples, do not wait any longer. What is large is not copied to be put together with others."""


class CoalescingBuffer:
    def __init__(self):
        self._parts = {}  # by extent, in the order in which they came
        self._tuples, self._batches = Counter(), 0  # by extent

    def __bool__(self):
        return bool(self._parts)

    @property
    def full(self):
        return self._batches >= _MANY or self._tuples.total() >= _LARGE

    def ends(self, next_due, tick):
        """Whether at a clock tick something may be due, or too much waits."""
        return (
            tick >= next_due.before or self.full or any(self._tuples[of] > most for of, most in next_due.room.items())
        )

    def put(self, delivered):
        for name, batches in delivered.items():
            if batches:
                self._parts.setdefault(name, []).extend(batches)
                self._batches += len(batches)
                self._tuples[name] += sum(map(len, batches))

    def taken(self):
        """{extent: batches}, those together that are small; nothing is here any more."""
        parts, self._parts = self._parts, {}
        self._tuples, self._batches = Counter(), 0
        return {name: _together(batches) for name, batches in parts.items()}


def can_wait(batches, intake, clock, tick):
    """Whether what was delivered of an extent, in time and in order behind one clock tick and up to another, corrects nothing.

    What is taken in in portions does not wait.
    """
    if not intake.coalesces:
        return False
    for batch in batches:
        arrival = batch.arrival
        if len(arrival) > step_plan.MAX_STEP_TUPLES:
            return False
        if not (is_plain(batch) and clock < arrival[0] and arrival[-1] <= tick) or any_true(
            intake.find_disturbing(batch)
        ):
            return False
        if len(arrival) > 1 and any_true(arrival[1:] < arrival[:-1]):
            return False
        clock = arrival[-1] - 1
    return True


def _together(batches):
    def alike(batch):  # a sampling that measures more has more columns
        return len(batch) >= _LARGE, batch.columns.keys()

    runs = ((large, list(of)) for (large, _), of in groupby(batches, alike))
    return [batch for large, of in runs for batch in (of if large or len(of) == 1 else [_joined(of)])]


def _joined(batches):
    """Plain batches one after another; a column that is the same in each of them is so again."""
    once = IdentityMemo()
    system = [[getattr(batch, name) for batch in batches] for name in ("tick", "site", "arrival")]
    tick, site, arrival = (once(_one_after_another, *arrays) for arrays in system)
    names = batches[0].columns
    columns = {name: once(_one_after_another, *(batch.columns[name] for batch in batches)) for name in names}
    masked = {name for batch in batches for name in batch.valid}
    valid = {name: np.concatenate([mask_of(batch, name) for batch in batches]) for name in masked}
    return Batch(tick, site, arrival, unit_weights(len(tick)), columns, valid)


def _one_after_another(*arrays):
    return np.concatenate(arrays)
