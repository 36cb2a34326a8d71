"""CoalescingBuffer: holds small batches that cannot change an answer yet, so that one step takes many of them in.

Answers do not depend on how deliveries are cut into batches. So the cost of a step is shared by all batches of one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from acquisition.arrays import AnyArray
from acquisition.batch import Batch, mask_of, unit_weights
from basestation.algebra.vector import any_true
from basestation.execution import thresholds
from basestation.execution.columns.next_due import NextDue
from basestation.execution.ingest.batch_runs import is_plain
from basestation.execution.interfaces import DeliveryIntake
from innet.aggregates.identity_memo import IdentityMemo

ExtentKey = str | int
"""The name of an extent, or the number of a fold."""


class CoalescingBuffer:
    """Batches by extent, in the order in which they came."""

    def __init__(self) -> None:
        self._parts: dict[ExtentKey, list[Batch]] = {}
        self._tuples: Counter[ExtentKey] = Counter()
        self._batches = 0

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def full(self) -> bool:
        """Whether too much waits."""
        return self._batches >= thresholds.COALESCED_BATCHES or self._tuples.total() >= thresholds.COALESCED_TUPLES

    def must_flush(self, next_due: NextDue, tick: int) -> bool:
        """Return whether output may be due at a clock tick, or too much waits."""
        return tick >= next_due.before or self.full or any(
            self._tuples[name] > most for name, most in next_due.room.items()
        )  # fmt: skip

    def put(self, delivered: Mapping[ExtentKey, Sequence[Batch]]) -> None:
        """Add deliveries by extent."""
        for name, batches in delivered.items():
            if batches:
                self._parts.setdefault(name, []).extend(batches)
                self._batches += len(batches)
                self._tuples[name] += sum(map(len, batches))

    def flush(self) -> dict[ExtentKey, list[Batch]]:
        """Remove and return all batches by extent, small ones concatenated; as they came if there is no memory for that."""
        parts, self._parts = self._parts, {}
        self._tuples, self._batches = Counter(), 0
        try:
            return {name: _coalesce(batches) for name, batches in parts.items()}
        except MemoryError:
            return parts


def can_wait(batches: Sequence[Batch], intake: DeliveryIntake[Any], clock: int, tick: int) -> bool:
    """Return whether batches that were delivered after `clock` and up to `tick` can change no answer of before.

    That is so if they are in order and in time, correct nothing, and are small enough for one step.
    """
    if not intake.coalesces:
        return False
    for batch in batches:
        arrival = batch.arrival
        if len(arrival) > thresholds.MAX_STEP_TUPLES:
            return False
        if not (is_plain(batch) and clock < arrival[0] and arrival[-1] <= tick) or any_true(
            intake.find_disturbing(batch)
        ):
            return False
        if len(arrival) > 1 and any_true(arrival[1:] < arrival[:-1]):
            return False
        clock = arrival[-1] - 1
    return True


def _coalesce(batches: Sequence[Batch]) -> list[Batch]:
    """Concatenate neighbouring small batches with the same columns; a mote that measures more sends more columns."""

    def kind(batch: Batch) -> tuple[bool, Any]:
        return len(batch) >= thresholds.COALESCED_TUPLES, batch.columns.keys()

    runs = ((large, list(run)) for (large, _), run in groupby(batches, kind))
    return [batch for large, run in runs for batch in (run if large or len(run) == 1 else [_concatenate_plain(run)])]


def _concatenate_plain(batches: Sequence[Batch]) -> Batch:
    """Concatenate plain batches; columns that share an array in each of them share the result."""
    once = IdentityMemo()
    tick = once(_concatenate, *(batch.tick for batch in batches))
    site = once(_concatenate, *(batch.site for batch in batches))
    arrival = once(_concatenate, *(batch.arrival for batch in batches))
    names = batches[0].columns
    columns = {name: once(_concatenate, *(batch.columns[name] for batch in batches)) for name in names}
    masked = {name for batch in batches for name in batch.valid}
    valid = {name: np.concatenate([mask_of(batch, name) for batch in batches]) for name in masked}
    return Batch(tick, site, arrival, unit_weights(len(tick)), columns, valid)


def _concatenate(*arrays: AnyArray) -> AnyArray:
    return np.concatenate(arrays)
