"""Expected: what placed operators send and compute in a round, before anybody has measured it.

A *round* is so many epochs of the network, at the end of which everything goes out. How often a condition holds, and how
many groups there are, `innet.placement.statistics` says.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, prod

import numpy as np

from acquisition.payload import MAX_FILTER_REPORT_INTERVAL
from acquisition.schedule import Sampling, Schedule
from innet.costs.energy_model import HopTraffic
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteExpression, SensorValue, SiteNumber
from innet.operators.mote_expression import walk as parts_of
from innet.partials import PartialShape
from innet.placement.placement import PlacedOperator, Placement, conditions, is_about_site
from innet.placement.statistics import GUESS, Statistics, sampling_interval
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """The bits of frames, which are known further up: the bytes of whole frames of ours.

    `readings(sampling, epochs, share, worst)` is one that tells of so many epochs and has a reading of that share of them,
    `worst` if every value is as wide as can be, and `fit(sampling)` how many go into one; `partials(shape, whole, bare)` is one with so many partials, and
    `partials_fit(shape)` how many go into one; `room` is the largest.
    """

    readings: Callable[[Sampling, float, float, bool], float]
    fit: Callable[[Sampling], int]
    partials: Callable[[PartialShape, float, float], float]
    partials_fit: Callable[[PartialShape], int]
    room: int


@dataclass(frozen=True, slots=True)
class Round:
    """So many `epochs` of `interval` ticks."""

    epochs: int
    interval: int

    @property
    def ticks(self) -> int:
        return self.epochs * self.interval


@dataclass(frozen=True, slots=True)
class SendLoad:
    """What one mote sends of its own accord in a round: frames and the bytes of each, on average and at worst.

    `often` is the share of the rounds in which it sends any.
    """

    frames: float
    size: float
    send_share: float
    max_frames: int
    max_size: float


def bound_partials(placed: PlacedOperator, sites: int, slices: int) -> int:
    """How many partials of so many slices there can be, whatever is measured, with readings of so many sites.

    Each is of one group at least, and has one reading at least; where there is room for all groups, none is in two.
    """
    known = slices * bound_groups(placed, sites)
    return known if placed.room >= known else slices * _readings_of_slice(placed.operator, sites)


def bound_groups(placed: PlacedOperator, sites: int) -> int:
    """How many partials of one slice there can be where there is room for all of them."""
    fold = placed.operator
    bare = int(any(not is_about_site(term) for term in conditions(fold)))
    readings = _readings_of_slice(fold, sites)
    groups = sites if all(isinstance(key, SiteNumber) for key in fold.keys) and fold.keys else readings
    return (min(groups, readings) if fold.keys else 1) + bare


def _readings_of_slice(fold: Fold, sites: int) -> int:
    """At most."""
    return sites * fold.slices.max_ticks(fold.interval)


@dataclass(frozen=True, slots=True)
class NetworkLoads:
    """What each mote sends of its own accord in a round: readings, which are passed on as they are, and partials, which end."""

    readings: Mapping[int, list[SendLoad]]
    partials: Mapping[int, list[SendLoad]]

    @classmethod
    def of(cls, placement: Placement, schedules: Mapping[int, Schedule], sizes: FrameSizes, round: Round,
           statistics: Statistics = GUESS) -> "NetworkLoads":  # fmt: skip
        readings = predict_reading_loads(placement, schedules, sizes, round, statistics)
        return cls(readings, predict_partial_loads(placement, sizes, round, statistics))

    def traffic(self, tree: RoutingTree) -> list[HopTraffic]:
        """Everything that rises in a round, hop by hop, while nothing is lost."""
        found = []
        passing_by: dict[int, Counter[float]] = {mote: Counter() for mote in (*tree.parent, *tree.roots)}
        for site in tree.leaves_first:
            parent, passed = tree.parent[site], passing_by.pop(site)
            own = Counter[float]()
            for load in self.readings.get(site, ()):
                own[load.size] += load.frames
            passing_by[parent] += passed + own
            for load in self.partials.get(site, ()):
                own[load.size] += load.frames
            found += [HopTraffic(site, parent, frames, size) for size, frames in own.items()]
            found += [HopTraffic(site, parent, frames, size, True) for size, frames in passed.items()]
        return found

    def send_shares(self, tree: RoutingTree) -> dict[int, float]:
        """By mote, the share of the rounds in which it has anything to send, its own or what others sent."""
        silent = dict.fromkeys((*tree.parent, *tree.roots), 1.0)
        for site in tree.leaves_first:
            silent[site] *= prod(1 - load.send_share for load in self.readings.get(site, ()))
            silent[tree.parent[site]] *= silent[site]
            silent[site] *= prod(1 - load.send_share for load in self.partials.get(site, ()))
        return {site: 1 - silent[site] for site in tree.parent}

    def most_frames(self, tree: RoutingTree) -> dict[int, Counter[float]]:
        """By mote, how many frames of which size it may have to hand over in a round: its own, and all that pass through."""
        most: dict[int, Counter[float]] = {mote: Counter() for mote in (*tree.parent, *tree.roots)}
        for site in tree.leaves_first:
            for load in self.readings.get(site, ()):
                most[site][load.max_size] += load.max_frames
            most[tree.parent[site]] += most[site]
            for load in self.partials.get(site, ()):
                most[site][load.max_size] += load.max_frames
        return most


def predict_reading_loads(placement: Placement, schedules: Mapping[int, Schedule], sizes: FrameSizes, round: Round,
                statistics: Statistics = GUESS) -> dict[int, list[SendLoad]]:  # fmt: skip
    """What each site sends as readings: what any of the operators wants, once."""
    wanted: dict[tuple[int, str], list[Deliver]] = {}
    for placed in placement.placed:
        if isinstance(placed.operator, Deliver):
            for site in placed.sites:
                wanted.setdefault((site, placed.operator.extent), []).append(placed.operator)
    found: dict[int, list[SendLoad]] = {}
    for (site, extent), operators in wanted.items():
        if site in placement.tree.parent:
            sampling = next(s for s in schedules[site].samplings if s.extent == extent)
            share = statistics.wanted_share(operators, site, sampling.epochs.interval)
            filters = all(_filters(operator, sampling) for operator in operators)
            found.setdefault(site, []).append(_readings(sampling, share, filters, sizes, round))
    return found


def _filters(operator: Deliver, sampling: Sampling) -> bool:
    """Whether there may be readings that it does not want."""
    often = sampling_interval(operator) > sampling.epochs.interval
    return often or any(not is_about_site(term) for term in conditions(operator))


def _readings(sampling: Sampling, share: float, filters: bool, sizes: FrameSizes, round: Round) -> SendLoad:
    """Of a sampling of whose readings that share is wanted; if it `filters`, that may be any share."""
    epochs = round.ticks / sampling.epochs.interval
    due, each = min(1.0, epochs), max(1.0, epochs)  # in which share of the rounds something is sampled, and how much
    silent = (1 - share) ** each  # in which share of those nothing is wanted
    # What was filtered waits for something to be sent, and at most for so many rounds.
    fit = sizes.fit(sampling)
    longest = ceil(min(MAX_FILTER_REPORT_INTERVAL, fit) / each)
    chances = [silent ** (waits - 1) * (1.0 if waits == longest else 1 - silent) for waits in range(1, longest + 1)]
    waits = sum(chance * rounds for rounds, chance in enumerate(chances, 1))
    parts = sum(chance * ceil(rounds * each / fit) for rounds, chance in enumerate(chances, 1))
    often = due / waits
    size = sizes.readings(sampling, each * waits / parts, share, False)
    held = each * longest if filters else ceil(each)  # what everybody may have to tell at once
    most = ceil(held / fit)
    told = ceil(held / most)
    most_size = sizes.readings(sampling, told, min(1.0, ceil(each) / told), True)  # of what was held nothing was wanted
    return SendLoad(parts * often, size, often, most, most_size)


def predict_partial_loads(
    placement: Placement, sizes: FrameSizes, round: Round, statistics: Statistics = GUESS
) -> dict[int, list[SendLoad]]:
    """What each site sends as partials: its own and those of everybody below it, merged."""
    found: dict[int, list[SendLoad]] = {}
    for placed in placement.folds:
        known: dict[tuple[int, ...], SendLoad] = {}
        for site, below in sites_below(placement.tree, placed.sites).items():
            if below not in known:
                known[below] = _partials(placed, below, sizes, round, statistics)
            found.setdefault(site, []).append(known[below])
    return found


def _partials(
    placed: PlacedOperator, below: tuple[int, ...], sizes: FrameSizes, round: Round, statistics: Statistics
) -> SendLoad:
    fold, shape = placed.operator, placed.shape
    slices = round.ticks * fold.slices.window_slices / fold.slices.period
    often, together = min(1.0, slices), max(1.0, slices)
    most = bound_partials(placed, len(below), ceil(slices))
    fits = sizes.partials_fit(shape)
    contents = statistics.contents(fold, below)
    frames = float(np.mean(np.ceil((contents.whole + contents.bare) * together / fits)))
    whole, bare = (float(part.mean()) * together / frames for part in (contents.whole, contents.bare))
    most_size = sizes.partials(shape, min(most, fits), 0)
    return SendLoad(frames * often, sizes.partials(shape, whole, bare), often, ceil(most / fits), most_size)


def sites_below(tree: RoutingTree, sites: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """For each mote that something of these sites passes through, of which of them; they themselves included."""
    below: dict[int, list[int]] = {mote: [] for mote in (*tree.parent, *tree.roots)}
    for site in sites:
        if site in tree.parent:
            below[site].append(site)
    for mote in tree.leaves_first:
        below[tree.parent[mote]] += below[mote]
    return {mote: tuple(sorted(found)) for mote, found in below.items() if found and mote in tree.parent}


def count_instructions(placement: Placement, schedules: Mapping[int, Schedule], round: Round) -> dict[int, float]:
    """How many instructions each mote interprets in a round, roughly: all of its operators', as if nothing were skipped."""
    found: dict[int, float] = {}
    for placed in placement.placed:
        computed = _expressions(placed.operator)
        length = 4 + sum(2 + sum(1 for _ in parts_of(e)) for e in computed)
        for site in placed.sites:
            sampling = next(s for s in schedules[site].samplings if s.extent == placed.operator.extent)
            found[site] = found.get(site, 0.0) + length * round.ticks / sampling.epochs.interval
    return found


def _expressions(operator: Deliver | Fold) -> list[MoteExpression]:
    """What is computed for one reading; a value that is sent is one."""
    if isinstance(operator, Fold):
        return [*conditions(operator), *operator.keys, *(value for _, value in operator.states)]
    return [*conditions(operator), *(SensorValue(operator.extent, attribute) for attribute in operator.sent)]
