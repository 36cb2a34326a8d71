"""Observed statistics: counted in what arrived at the station: readings, reports of filtered readings, and partials.

Of a filtered reading only one thing is known: no active filter was true. So it counts as a reading without values, for
which no comparison is true. Of a fold the station knows the share of readings that it took, and the number of groups per
slice at the base station. The groups at a mote on the way are estimated from these figures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.identity_cache import cache_by_identity
from innet.operators.mote_expression import MoteExpression, SiteNumber
from innet.placement.fold_sharing import sharing_key
from innet.placement.placement import Placeable, conditions, extents_of, is_about_site
from innet.placement.statistics import (
    DEFAULT_DISTINCT_VALUES,
    GUESS,
    CountedStatistics,
    SliceContents,
    estimate_selectivity,
    expect_contents,
    sampling_interval,
)

_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class FoldStatistics:
    """The results of a fold: `share` of its `readings` was taken; a slice had `groups` groups on average, and at most `most`."""

    readings: int
    share: float
    groups: float
    most: int


@dataclass(frozen=True)
class ObservedStatistics:
    """Statistics of running queries; questions without an observation are answered by a guess.

    `active_filters` has, by extent, the conditions that were active where some readings were filtered. `folds` has the
    results of folds, with the sites that run them.
    """

    readings: CountedStatistics
    active_filters: Mapping[str, tuple[frozenset[MoteExpression], ...]]
    folds: Mapping[Fold, tuple[FoldStatistics, tuple[int, ...]]]

    def __str__(self) -> str:
        merged = sum(folded.readings for folded, _ in self.folds.values())
        return f"{self.readings} that came" + (f", and {merged:,} in partials" if merged else "")

    def wanted_shares(self, operators: Sequence[Deliver], sites: Sequence[int], every: int) -> list[float]:
        if all(self._counted(operator) for operator in operators):
            return self.readings.wanted_shares(operators, sites, every)
        passed = prod(1 - self._share(operator) * every / sampling_interval(operator) for operator in operators)
        return [1 - passed] * len(sites)

    def contents(self, fold: Fold, sites: Sequence[int]) -> SliceContents:
        if (alike := self._alike(fold)) is not None:
            folded, all_of_them = alike
            return expect_contents(fold, sites, folded.share, _cells(fold, all_of_them, folded))
        if self._counted(fold):
            return self.readings.contents(fold, sites)
        return expect_contents(fold, sites, self._share(fold), DEFAULT_DISTINCT_VALUES ** _keys(fold))

    def most_groups(self, fold: Fold, sites: Sequence[int]) -> int:
        if (alike := self._alike(fold)) is not None:
            return max(1, alike[0].most)
        return (self.readings if self._counted(fold) else GUESS).most_groups(fold, sites)

    def _alike(self, fold: Fold) -> tuple[FoldStatistics, tuple[int, ...]] | None:
        """Return the results of a fold of the same tuples, slices and groups."""
        return next((found for each, found in self.folds.items() if sharing_key(each) == sharing_key(fold)), None)

    def _counted(self, operator: Placeable) -> bool:
        """Whether the observations decide for each reading if the operator takes it, because it takes none of the filtered ones."""
        required = sensor_conditions(operator)
        extents = extents_of(operator)
        if not all(self.readings.sampled.get(extent, np.zeros(1, bool)).any() for extent in extents):
            return False
        return all(
            any(filters <= required for filters in self.active_filters[extent])
            for extent in extents
            if extent in self.active_filters
        ) and self.readings.covers(operator)

    def _share(self, operator: Placeable) -> float:
        """Return the share of its readings that an operator takes."""
        if self._counted(operator):
            return self.readings.share(operator)
        alike = (
            folded.share
            for fold, (folded, _) in self.folds.items()
            if (sensor_conditions(fold), extents_of(fold)) == (sensor_conditions(operator), extents_of(operator))
        )
        return next(alike, estimate_selectivity(operator))


@cache_by_identity
def sensor_conditions(operator: Placeable) -> frozenset[MoteExpression]:
    """Return the conditions of an operator on sensor values."""
    return frozenset(term for term in conditions(operator) if not is_about_site(term))


def _keys(fold: Fold) -> int:
    """The number of group keys beside the site."""
    return sum(not isinstance(key, SiteNumber) for key in fold.keys)


def _cells(fold: Fold, sites: Sequence[int], folded: FoldStatistics) -> float:
    """Return the number of groups for which `folded.groups` of them are hit in a slice, by bisection."""
    if not _keys(fold):
        return 1.0
    readings = len(sites) * fold.slices.max_ticks(fold.interval) * folded.share
    low, high = 1.0, max(2.0, folded.groups) ** 4 + 100 * readings  # with so many, 99.5 % of the readings hit one each
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        few = expect_contents(fold, sites, folded.share, middle).whole[0] < folded.groups
        low, high = (middle, high) if few else (low, middle)
    return low
