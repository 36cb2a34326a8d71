"""Gathering: what has come since somebody looked last, so that the next decisions need not be guesses."""

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
    """Readings, reports of filtered ones, and partials, as they came. It is to be asked now and then, and begins anew."""

    def __init__(self) -> None:
        self._batches: dict[str, list[Batch]] = {}
        self._filtered: dict[str, list[Batch]] = {}
        self._partials: dict[int, list[PartialBatch]] = {}

    def take(self, measured: ReceivedReadings, partials: Iterable[tuple[int, PartialBatch]]) -> None:
        for name, batch in measured.batches:
            self._batches.setdefault(name, []).append(batch)
        for sampling, batch in measured.filtered:
            self._filtered.setdefault(sampling.extent, []).append(batch)
        for number, came in partials:
            self._partials.setdefault(number, []).append(came)

    def collect(self, world: World) -> ObservedStatistics:
        """What is known of all that has come; from now on others are counted."""
        readings, asked = {}, {}
        for name in self._batches.keys() | self._filtered.keys():
            filtered = self._filtered.get(name, [])
            readings[name] = _observed(self._batches.get(name, []), filtered, world.catalog.find(name))
            if filtered:
                here = [operator for operator in live_deliveries(world) if name in extents_of(operator)]
                asked[name] = tuple(map(sensor_conditions, here))
        folds = {}
        for number, came in self._partials.items():
            if number in world.running:
                placed = world.running[number]
                found = _folded(placed.operator, PartialBatch.concatenate(came))
                if found is not None:
                    folds[placed.operator] = found, placed.sites
        self.__init__()
        return ObservedStatistics(CountedStatistics.of(readings), asked, folds)


def _observed(batches: Sequence[Batch], filtered: Sequence[Batch], extent: Extent) -> ExtentReadings:
    """Of those readings that have the columns of the latest ones; those that were filtered have no values."""
    alike = [batch for batch in batches if batch.columns.keys() == batches[-1].columns.keys()]
    some = [observe_batch(concatenate(alike), extent)] if alike else []
    names = some[0].values if some else [attribute.name for attribute in extent.schema]
    blank = [
        ExtentReadings(batch.site, batch.tick, {name: ValueColumn.constant(None, len(batch)) for name in names})
        for batch in filtered
    ]
    return ExtentReadings.together([*some, *blank])


def _folded(fold: Fold, came: PartialBatch) -> FoldStatistics | None:
    """Of whole slices: the first one and the last may be of less. None while there are no others."""
    inner = (came.slice > came.slice.min()) & (came.slice < came.slice.max())
    if not inner.any():
        return None
    came = came.take(inner)
    whole = came.take(~came.bare)
    columns = [column for key in whole.keys for column in (key.valid.astype(np.int64), key.values)]
    groups = np.unique(np.stack([whole.slice, *columns]), axis=1)[0]
    many = np.bincount(groups - int(came.slice.min()), minlength=int(np.ptp(came.slice)) + 1)
    readings = int(came.readings.sum())
    return FoldStatistics(readings, float(whole.readings.sum()) / max(1, readings), float(many.mean()), int(many.max()))
