"""Statistics collector: selectivities and sizes of partials, observed in what motes sent; placements are chosen by them."""

from collections.abc import Iterable, Sequence

import numpy as np

from acquisition.batch import Batch, concatenate
from acquisition.extent import Extent
from acquisition.uplink import ReceivedReadings
from basestation.controller.requirements import live_deliveries
from basestation.controller.world import World
from basestation.execution.ingest.partial_batch import PartialBatch
from basestation.planner.recorded_statistics import observe_batch
from innet.operators.column_evaluation import ValueColumn
from innet.operators.fold import Fold
from innet.placement.observed_statistics import FoldStatistics, ObservedStatistics, sensor_conditions
from innet.placement.placement import extents_of
from innet.placement.statistics import CountedStatistics, ExtentReadings


class StatisticsCollector:
    """Keeps readings, filter reports and partials as they arrived, until they are collected."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._batches: dict[str, list[Batch]] = {}
        self._filtered: dict[str, list[Batch]] = {}
        self._partials: dict[int, list[PartialBatch]] = {}

    def record(self, readings: ReceivedReadings, partials: Iterable[tuple[int, PartialBatch]]) -> None:
        """Keep what arrived in one step; `partials` are pairs of fold number and batch."""
        for name, batch in readings.batches:
            self._batches.setdefault(name, []).append(batch)
        for sampling, batch in readings.filtered:
            self._filtered.setdefault(sampling.extent, []).append(batch)
        for number, partial_batch in partials:
            self._partials.setdefault(number, []).append(partial_batch)

    def collect(self, world: World) -> ObservedStatistics:
        """Compute the statistics of all that arrived since the last call."""
        readings, conditions = {}, {}
        for name in sorted(self._batches.keys() | self._filtered.keys()):
            filtered = self._filtered.get(name, [])
            readings[name] = _observe_readings(self._batches.get(name, []), filtered, world.catalog.extents[name])
            if filtered:
                deliveries = [delivery for delivery in live_deliveries(world) if name in extents_of(delivery)]
                conditions[name] = tuple(map(sensor_conditions, deliveries))
        folds: dict[Fold, tuple[FoldStatistics, tuple[int, ...]]] = {}
        for number, placed in world.running.items():
            fold = placed.operator
            if number in self._partials and isinstance(fold, Fold):
                found = _observe_partials(PartialBatch.concatenate(self._partials[number]))
                if found is not None:
                    folds[fold] = found, placed.sites
        self._clear()
        return ObservedStatistics(CountedStatistics.of(readings), conditions, folds)


def _observe_readings(batches: Sequence[Batch], filtered: Sequence[Batch], extent: Extent) -> ExtentReadings:
    """The readings with the same columns as the latest ones. Filtered readings count without values."""
    latest = [batch for batch in batches if batch.columns.keys() == batches[-1].columns.keys()]
    delivered = [observe_batch(concatenate(latest), extent)] if latest else []
    names = delivered[0].values if delivered else [attribute.name for attribute in extent.schema]
    blank = [
        ExtentReadings(batch.site, batch.tick, {name: ValueColumn.constant(None, len(batch)) for name in names})
        for batch in filtered
    ]
    return ExtentReadings.concatenate([*delivered, *blank])


def _observe_partials(batch: PartialBatch) -> FoldStatistics | None:
    """The statistics of complete slices, without the first and the last; None if there are no others."""
    inner = (batch.slice > batch.slice.min()) & (batch.slice < batch.slice.max())
    if not inner.any():
        return None
    batch = batch.take(inner)
    whole = batch.take(~batch.bare)
    columns = [
        column
        for key in whole.keys
        for column in (
            np.ones(len(key.values), np.int64) if key.valid is None else key.valid.astype(np.int64),
            key.values,
        )
    ]
    groups = np.unique(np.stack([whole.slice, *columns]), axis=1)[0]
    counts = np.bincount(groups - int(batch.slice.min()), minlength=int(np.ptp(batch.slice)) + 1)
    readings = int(batch.readings.sum())
    share = float(whole.readings.sum()) / max(1, readings)
    return FoldStatistics(readings, share, float(counts.mean()), int(counts.max()))
