"""What the engine keeps of one sensed extent: the readings that windows may still ask for, and its watermark.

All queries over the extent share it, so all agree on what was late (SEMANTICS 1.5).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from acquisition.batch import Batch, concatenate, dtype_of, empty, mask_of
from acquisition.extent import Extent
from acquisition.instants import grid_at_or_after
from basestation.windows.watermark import SensedWatermark


@dataclass(frozen=True, slots=True)
class Taken:
    """What one clock tick's deliveries came to: the readings that count, and the ticks of the late ones among them."""

    fresh: Batch
    late_ticks: np.ndarray


class Readings:
    """Sorted by tick, then by the declared order of sites. `counts` says what became of all that was delivered."""

    def __init__(self, extent: Extent, first_due: int) -> None:
        self.extent = extent
        self.first_due = grid_at_or_after(first_due, extent.interval)
        self.counts: Counter[str] = Counter()
        self.watermark = SensedWatermark(self.first_due, extent.interval, len(extent.sites), extent.wait)
        self._kept = empty(extent.schema)
        self._keys = np.empty(0, np.int64)
        order = np.argsort(extent.sites, kind="stable")
        self._sites, self._places = np.array(extent.sites, np.int64)[order], order

    def take(self, delivered: list[Batch], clock: int) -> Taken:
        """Everything that was delivered in clock tick `clock`, in the order of delivery."""
        complete = self.watermark.at(clock - 1)
        batch = concatenate([empty(self.extent.schema), *(self._aligned(batch) for batch in delivered)])
        batch, keys = self._known(batch)
        batch, keys = self._timely(batch, keys, clock, complete)
        batch, keys = self._new(batch, keys)
        late = batch.tick <= complete
        self.counts["late"] += int(late.sum())
        self.counts["used"] += len(batch)
        self.watermark.reported(batch.tick)
        self._keep(batch, keys)
        return Taken(batch, np.unique(batch.tick[late]))

    def between(self, first: int, last: int) -> Batch:
        """The readings with first <= tick <= last."""
        left = np.searchsorted(self._kept.tick, first, "left")
        right = np.searchsorted(self._kept.tick, last, "right")
        return self._kept.take(slice(left, right))

    def forget(self, before: int) -> None:
        """Let go of readings that no window can ask for any more."""
        first = np.searchsorted(self._kept.tick, before, "left")
        if first:
            self._kept, self._keys = self._kept.take(slice(first, None)), self._keys[first:]
        self.watermark.forget(before)

    def _aligned(self, batch: Batch) -> Batch:
        """With every column of the schema; one that was not sampled is null."""
        columns, valid = dict(batch.columns), dict(batch.valid)
        for attribute in self.extent.schema:
            if attribute.name not in columns:
                columns[attribute.name] = np.zeros(len(batch), dtype_of(attribute))
                valid[attribute.name] = np.zeros(len(batch), bool)
        ordered = {attribute.name: columns[attribute.name] for attribute in self.extent.schema}
        return Batch(batch.tick, batch.site, batch.arrival, batch.weight, ordered, valid)

    def _known(self, batch: Batch) -> tuple[Batch, np.ndarray]:
        """Leave out sites that are not declared and ticks off the schedule; key the others by tick and site."""
        at = np.searchsorted(self._sites, batch.site)
        at = np.minimum(at, len(self._sites) - 1)
        declared = self._sites[at] == batch.site
        due = (batch.tick % self.extent.interval == 0) & (batch.tick >= self.first_due)
        self.counts["unknown site"] += int((~declared).sum())
        self.counts["off schedule"] += int((declared & ~due).sum())
        kept = declared & due
        keys = batch.tick * len(self._sites) + self._places[at]
        return batch.take(kept), keys[kept]

    def _timely(self, batch: Batch, keys: np.ndarray, clock: int, complete: int) -> tuple[Batch, np.ndarray]:
        """Leave out what is stamped too far ahead, and what comes after its horizon."""
        ahead = batch.tick > clock + self.extent.ahead
        beyond = (batch.tick <= complete) & (clock - batch.tick > self.extent.horizon)
        self.counts["ahead"] += int(ahead.sum())
        self.counts["beyond horizon"] += int(beyond.sum())
        kept = ~(ahead | beyond)
        return batch.take(kept), keys[kept]

    def _new(self, batch: Batch, keys: np.ndarray) -> tuple[Batch, np.ndarray]:
        """Leave out second readings of a key; those with other values are conflicts, the first reading holds."""
        both, all_keys = concatenate([self._kept, batch]), np.concatenate([self._keys, keys])
        _, first, inverse = np.unique(all_keys, return_index=True, return_inverse=True)
        holder = first[inverse][len(self._keys) :]
        itself = np.arange(len(self._keys), len(all_keys))
        second = holder != itself
        same = np.ones(len(batch), bool)
        for name, column in both.columns.items():
            mask = mask_of(both, name)
            equal = (column[holder] == column[itself]) | ~mask[itself]
            same &= equal & (mask[holder] == mask[itself])
        self.counts["duplicate"] += int((second & same).sum())
        self.counts["conflict"] += int((second & ~same).sum())
        return batch.take(~second), keys[~second]

    def _keep(self, batch: Batch, keys: np.ndarray) -> None:
        if len(batch):
            both, all_keys = concatenate([self._kept, batch]), np.concatenate([self._keys, keys])
            order = np.argsort(all_keys, kind="stable")
            self._kept, self._keys = both.take(order), all_keys[order]
