"""Gathering: what has come since somebody looked last, so that the next decisions need not be guesses."""

from collections.abc import Iterable, Sequence

import numpy as np

from acquisition.batch import Batch, concatenate
from acquisition.extent import Extent
from acquisition.uplink import Measured
from basestation.controller.requirements import delivered
from basestation.controller.world import World
from basestation.execution.ingest.partial_batch import ArrivedPartials
from basestation.planner.recorded_statistics import observed
from innet.operators.column_evaluation import Lane
from innet.operators.fold import Fold
from innet.placement.observed_statistics import Folded, Heard, conditions_measured
from innet.placement.placement import extents_of
from innet.placement.statistics import Counted, Observed


class Gathering:
    """Readings, reports of filtered ones, and partials, as they came. It is to be asked now and then, and begins anew."""

    def __init__(self) -> None:
        self._batches: dict[str, list[Batch]] = {}
        self._filtered: dict[str, list[Batch]] = {}
        self._partials: dict[int, list[ArrivedPartials]] = {}

    def take(self, measured: Measured, partials: Iterable[tuple[int, ArrivedPartials]]) -> None:
        for name, batch in measured.batches:
            self._batches.setdefault(name, []).append(batch)
        for sampling, batch in measured.filtered:
            self._filtered.setdefault(sampling.extent, []).append(batch)
        for number, came in partials:
            self._partials.setdefault(number, []).append(came)

    def told(self, world: World) -> Heard:
        """What is known of all that has come; from now on others are counted."""
        readings, asked = {}, {}
        for name in self._batches.keys() | self._filtered.keys():
            filtered = self._filtered.get(name, [])
            readings[name] = _observed(self._batches.get(name, []), filtered, world.catalog.find(name))
            if filtered:
                here = [operator for operator in delivered(world) if name in extents_of(operator)]
                asked[name] = tuple(map(conditions_measured, here))
        folds = {}
        for number, came in self._partials.items():
            if number in world.running:
                placed = world.running[number]
                found = _folded(placed.operator, ArrivedPartials.together(came))
                if found is not None:
                    folds[placed.operator] = found, placed.sites
        self.__init__()
        return Heard(Counted.of(readings), asked, folds)


def _observed(batches: Sequence[Batch], filtered: Sequence[Batch], extent: Extent) -> Observed:
    """Of those readings that have the columns of the latest ones; those that were filtered have no values."""
    alike = [batch for batch in batches if batch.columns.keys() == batches[-1].columns.keys()]
    some = [observed(concatenate(alike), extent)] if alike else []
    names = some[0].values if some else [attribute.name for attribute in extent.schema]
    blank = [
        Observed(batch.site, batch.tick, {name: Lane.constant(None, len(batch)) for name in names})
        for batch in filtered
    ]
    return Observed.together([*some, *blank])


def _folded(fold: Fold, came: ArrivedPartials) -> Folded | None:
    """Of whole slices: the first one and the last may be of less. None while there are no others."""
    inner = (came.slice > came.slice.min()) & (came.slice < came.slice.max())
    if not inner.any():
        return None
    came = came.take(inner)
    whole = came.take(~came.bare)
    columns = [column for key in whole.keys for column in (key.there.astype(np.int64), key.values)]
    groups = np.unique(np.stack([whole.slice, *columns]), axis=1)[0]
    many = np.bincount(groups - int(came.slice.min()), minlength=int(np.ptp(came.slice)) + 1)
    readings = int(came.readings.sum())
    return Folded(readings, float(whole.readings.sum()) / max(1, readings), float(many.mean()), int(many.max()))
