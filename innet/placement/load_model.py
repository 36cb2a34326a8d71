"""Load model: what placed operators send and compute in a round, by statistics.

A *round* is a number of epochs, at the end of which everything is sent. `innet.placement.statistics` estimates how often
conditions are true and how many groups there are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, prod

import numpy as np

from acquisition.payload import MAX_FILTER_REPORT_INTERVAL
from acquisition.schedule import Sampling, Schedule
from innet.costs.energy_model import HopTraffic
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.identity_cache import cache_by_identity
from innet.operators.mote_expression import MoteExpression, SensorValue, SiteNumber
from innet.operators.mote_expression import walk as parts_of
from innet.partials import PartialShape
from innet.placement.load_memo import LoadMemo
from innet.placement.placement import PlacedOperator, Placement, conditions, is_about_site
from innet.placement.statistics import GUESS, Statistics, sampling_interval
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class FrameSizes:
    """The sizes of frames in bytes, header included; a package further up knows the encoding.

    `readings(sampling, epochs, share, worst)` is a frame that covers so many epochs and has a reading in that share of them,
    with the widest values if `worst`; `fit(sampling)` is the number of epochs in one frame. `partials(shape, whole, bare)` is
    a frame with so many partials; `partials_fit(shape)` is the number in one frame. `room` is the largest frame.
    """

    readings: Callable[[Sampling, float, float, bool], float]
    fit: Callable[[Sampling], int]
    partials: Callable[[PartialShape, float, float], float]
    partials_fit: Callable[[PartialShape], int]
    room: int


@dataclass(frozen=True, slots=True)
class Round:
    """A round of `epochs` epochs of `interval` ticks."""

    epochs: int
    interval: int

    @property
    def ticks(self) -> int:
        """Ticks in a round."""
        return self.epochs * self.interval


@dataclass(frozen=True, slots=True)
class SendLoad:
    """The frames that one mote originates in a round, for one operator or sampling.

    `frames` and `size` (bytes) are means. `send_share` is the share of the rounds in which it sends any. `max_frames` and
    `max_size` are the worst case.
    """

    frames: float
    size: float
    send_share: float
    max_frames: int
    max_size: float


def bound_partials(placed: PlacedOperator, sites: int, slices: int) -> int:
    """Return the largest number of partials of `slices` slices with readings of `sites` sites.

    A partial has one group and at least one reading. With room for all groups, no group is in two partials.
    """
    known = slices * bound_groups(placed, sites)
    return known if placed.room >= known else slices * _readings_of_slice(placed.fold, sites)


def bound_groups(placed: PlacedOperator, sites: int) -> int:
    """Return the largest number of partials of one slice, with room for all groups."""
    fold = placed.fold
    bare = int(any(not is_about_site(term) for term in conditions(fold)))
    readings = _readings_of_slice(fold, sites)
    groups = sites if all(isinstance(key, SiteNumber) for key in fold.keys) and fold.keys else readings
    return (min(groups, readings) if fold.keys else 1) + bare


def _readings_of_slice(fold: Fold, sites: int) -> int:
    """Return the largest number of readings of a slice."""
    return sites * fold.slices.max_ticks(fold.interval)


@dataclass(frozen=True, slots=True)
class NetworkLoads:
    """The frames that each mote originates in a round: readings, which are forwarded unchanged, and partials, which merge."""

    readings: Mapping[int, list[SendLoad]]
    partials: Mapping[int, list[SendLoad]]

    @classmethod
    def of(cls, placement: Placement, schedules: Mapping[int, Schedule], sizes: FrameSizes, round: Round,
           statistics: Statistics = GUESS, memo: LoadMemo | None = None) -> "NetworkLoads":  # fmt: skip
        """Predict the loads of a placement; `schedules` is by site. The `memo` has what earlier placements have in common with it."""
        memo = LoadMemo() if memo is None else memo
        delivered = [placed for placed in placement.placed if isinstance(placed.operator, Deliver)]
        readings = memo.find(
            ("readings", round, *(placed.sites for placed in delivered)),
            (placement.tree, schedules, sizes, statistics, *(placed.operator for placed in delivered)),
            lambda: predict_reading_loads(placement, schedules, sizes, round, statistics),
        )
        return cls(readings, predict_partial_loads(placement, sizes, round, statistics, memo))

    def traffic(self, tree: RoutingTree) -> list[HopTraffic]:
        """Return all upward traffic of a round, hop by hop, while nothing is lost."""
        found = []
        # By mote: the mean number of frames of each size that it forwards.
        forwarded: dict[int, dict[float, float]] = {mote: {} for mote in (*tree.parent, *tree.roots)}
        for site in tree.leaves_first:
            parent, passed = tree.parent[site], forwarded.pop(site)
            own: dict[float, float] = {}
            for load in self.readings.get(site, ()):
                own[load.size] = own.get(load.size, 0.0) + load.frames
            onward = forwarded[parent]
            for size in passed | own:
                frames = passed.get(size, 0.0) + own.get(size, 0.0)
                if frames > 0:
                    onward[size] = onward.get(size, 0.0) + frames
            for load in self.partials.get(site, ()):
                own[load.size] = own.get(load.size, 0.0) + load.frames
            found += [HopTraffic(site, parent, frames, size) for size, frames in own.items()]
            found += [HopTraffic(site, parent, frames, size, True) for size, frames in passed.items()]
        return found

    def send_shares(self, tree: RoutingTree) -> dict[int, float]:
        """Return, by mote, the share of the rounds in which it has anything to send, of its own or forwarded."""
        silent = dict.fromkeys((*tree.parent, *tree.roots), 1.0)
        for site in tree.leaves_first:
            silent[site] *= prod(1 - load.send_share for load in self.readings.get(site, ()))
            silent[tree.parent[site]] *= silent[site]
            silent[site] *= prod(1 - load.send_share for load in self.partials.get(site, ()))
        return {site: 1 - silent[site] for site in tree.parent}

    def most_frames(self, tree: RoutingTree) -> dict[int, Counter[float]]:
        """Return, by mote, the number of frames per size that it may have to send in a round: its own, and all that it forwards."""
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
    """Return the readings that each site sends: every reading that any of its operators takes, once."""
    delivered: dict[
        tuple[str, tuple[int, ...]], list[int]
    ] = {}  # numbers of operators of an extent with the same sites
    for number, placed in enumerate(placement.placed):
        if isinstance(placed.operator, Deliver):
            delivered.setdefault((placed.operator.extent, placed.sites), []).append(number)
    numbers: dict[tuple[int, str], tuple[int, ...]] = {}  # of the operators of a site and extent
    for (extent, sites), those in delivered.items():
        for site in sites:
            numbers[site, extent] = (*numbers.get((site, extent), ()), *those)
    alike: dict[tuple[int, ...], list[tuple[int, str]]] = {}  # (site, extent) with the same operators and interval
    samplings: dict[tuple[int, str], Sampling] = {}
    for (site, extent), here in numbers.items():
        if site in placement.tree.parent:
            sampling = next(s for s in schedules[site].samplings if s.extent == extent)
            samplings[site, extent] = sampling
            alike.setdefault((sampling.epochs.interval, *here), []).append((site, extent))
    shares: dict[tuple[int, str], tuple[float, bool]] = {}
    for (interval, *alike_numbers), places in alike.items():
        found_operators = (placement.placed[number].operator for number in sorted(alike_numbers))
        operators = [operator for operator in found_operators if isinstance(operator, Deliver)]
        filters = all(_filters(operator, interval) for operator in operators)
        wanted = statistics.wanted_shares(operators, [site for site, _ in places], interval)
        shares.update((place, (share, filters)) for place, share in zip(places, wanted, strict=True))
    found: dict[int, list[SendLoad]] = {}
    for (site, extent), sampling in samplings.items():
        found.setdefault(site, []).append(_readings(sampling, *shares[site, extent], sizes, round))
    return found


def _filters(operator: Deliver, interval: int) -> bool:
    """Whether there may be readings, one each `interval` ticks, that the operator does not take."""
    is_coarser = sampling_interval(operator) > interval
    return is_coarser or any(not is_about_site(term) for term in conditions(operator))


def _readings(sampling: Sampling, share: float, filters: bool, sizes: FrameSizes, round: Round) -> SendLoad:
    """Return the load of a sampling if the share `share` of its readings is sent; any share may occur if it `filters`."""
    epochs = round.ticks / sampling.epochs.interval
    due, each = min(1.0, epochs), max(1.0, epochs)  # the share of rounds with a sample, and the samples in one of those
    silent = (1 - share) ** each  # the share of those rounds in which no reading is sent
    # A report of filtered readings waits for a reading to be sent, up to `longest` rounds.
    fit = sizes.fit(sampling)
    longest = ceil(min(MAX_FILTER_REPORT_INTERVAL, fit) / each)
    chances = [silent ** (waits - 1) * (1.0 if waits == longest else 1 - silent) for waits in range(1, longest + 1)]
    waits = sum(chance * rounds for rounds, chance in enumerate(chances, 1))
    parts = sum(chance * ceil(rounds * each / fit) for rounds, chance in enumerate(chances, 1))
    send_share = due / waits
    size = sizes.readings(sampling, each * waits / parts, share, False)
    held = each * longest if filters else ceil(each)  # epochs that a mote may have to report at once
    max_frames = ceil(held / fit)
    reported = ceil(held / max_frames)  # epochs in one frame; those held before this round had no reading to send
    max_size = sizes.readings(sampling, reported, min(1.0, ceil(each) / reported), True)
    return SendLoad(parts * send_share, size, send_share, max_frames, max_size)


def predict_partial_loads(
    placement: Placement,
    sizes: FrameSizes,
    round: Round,
    statistics: Statistics = GUESS,
    memo: LoadMemo | None = None,
) -> dict[int, list[SendLoad]]:
    """Return the partials that each site sends: its own and those of all sites below it, merged."""
    memo = LoadMemo() if memo is None else memo
    found: dict[int, list[SendLoad]] = {}
    for placed in placement.folds:
        loads = memo.find(
            ("partials", round, placed.operator, placed.sites, placed.room),
            (placement.tree, sizes, statistics),
            partial(_loads_of_fold, placed, placement.tree, sizes, round, statistics),
        )
        for site, load in loads.items():
            found.setdefault(site, []).append(load)
    return found


def _loads_of_fold(
    placed: PlacedOperator, tree: RoutingTree, sizes: FrameSizes, round: Round, statistics: Statistics
) -> dict[int, SendLoad]:
    """Return the partials of one fold that each site sends."""
    known: dict[tuple[int, ...], SendLoad] = {}
    found = {}
    for site, below in sites_below(tree, placed.sites).items():
        if below not in known:
            known[below] = _partials(placed, below, sizes, round, statistics)
        found[site] = known[below]
    return found


def _partials(
    placed: PlacedOperator, below: tuple[int, ...], sizes: FrameSizes, round: Round, statistics: Statistics
) -> SendLoad:
    """Return the load of a fold at a mote with the partials of the sites `below`."""
    fold, shape = placed.fold, placed.shape
    slices = round.ticks * fold.slices.window_slices / fold.slices.period
    send_share, slices_sent = min(1.0, slices), max(1.0, slices)
    most = bound_partials(placed, len(below), ceil(slices))
    fits = sizes.partials_fit(shape)
    contents = statistics.contents(fold, below)
    frames = float(np.mean(np.ceil((contents.whole + contents.bare) * slices_sent / fits)))
    whole, bare = (float(part.mean()) * slices_sent / frames for part in (contents.whole, contents.bare))
    max_size = sizes.partials(shape, min(most, fits), 0)
    size = sizes.partials(shape, whole, bare)
    return SendLoad(frames * send_share, size, send_share, ceil(most / fits), max_size)


def sites_below(tree: RoutingTree, sites: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """Return, for each mote, those of `sites` whose frames pass it, itself included; motes without any are left out."""
    below: dict[int, list[int]] = {mote: [] for mote in (*tree.parent, *tree.roots)}
    for site in sites:
        if site in tree.parent:
            below[site].append(site)
    for mote in tree.leaves_first:
        below[tree.parent[mote]] += below[mote]
    return {mote: tuple(sorted(found)) for mote, found in below.items() if found and mote in tree.parent}


def count_instructions(placement: Placement, schedules: Mapping[int, Schedule], round: Round) -> dict[int, float]:
    """Return the instructions that each mote interprets in a round: all of its operators', as if no jump were taken."""
    lengths: dict[tuple[str, tuple[int, ...]], int] = {}  # of all operators of an extent with the same sites
    for placed in placement.placed:
        alike = placed.operator.extent, placed.sites
        lengths[alike] = lengths.get(alike, 0) + _length(placed.operator)
    found: dict[int, float] = {}
    for (extent, sites), length in lengths.items():
        for site in sites:
            interval = next(s for s in schedules[site].samplings if s.extent == extent).epochs.interval
            found[site] = found.get(site, 0.0) + length * round.ticks / interval
    return found


@cache_by_identity
def _length(operator: Deliver | Fold) -> int:
    """Return the instructions that an operator takes for one reading, nearly."""
    return 4 + sum(2 + sum(1 for _ in parts_of(each)) for each in _expressions(operator))


def _expressions(operator: Deliver | Fold) -> list[MoteExpression]:
    """Return the expressions that are computed for one reading; each value that is sent is one."""
    if isinstance(operator, Fold):
        return [*conditions(operator), *operator.keys, *(value for _, value in operator.states)]
    return [*conditions(operator), *(SensorValue(operator.extent, attribute) for attribute in operator.sent)]
