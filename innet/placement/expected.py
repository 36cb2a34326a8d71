"""Expected: what placed operators send and compute in a round, before anybody has measured it.

A *round* is so many epochs of the network, at the end of which everything goes out. How often a condition holds, and how
many groups there are, is not known beforehand; what is taken for it stands here and nowhere else. Answers never depend on it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, prod

from acquisition.schedule import Sampling, Schedule
from innet.costs.model import Traffic
from innet.operators.acquire import acquired
from innet.operators.deliver import Deliver
from innet.operators.expression import Apply, Expression, Measured, Number, SiteNumber
from innet.operators.expression import walk as parts_of
from innet.operators.fold import Fold
from innet.partials import PartialShape
from innet.placement.placement import Placed, Placement, about_site, conditions
from innet.routing.tree import RoutingTree

OFTEN = {"EQ": 0.1, "NE": 0.9, "LT": 0.3, "LE": 0.3, "GT": 0.3, "GE": 0.3, "ISNULL": 0.05}
"""The share of readings for which a comparison is taken to hold."""
DISTINCT = 8
"""How many values a grouping column is taken to have, in one slice; of the site, as many as there are sites below."""
REPORT_EPOCHS = 10
"""Filtered readings are reported at the latest after so many epochs (SEMANTICS 12.3)."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The bits of frames, which are known further up: the bytes of whole frames of ours.

    `readings(sampling, epochs, worst)` is one with so many readings, `worst` if every value is as wide as can be, and
    `fit(sampling)` how many go into one; `partials(shape, whole, bare)` is one with so many partials, and
    `partials_fit(shape)` how many go into one; `room` is the largest.
    """

    readings: Callable[[Sampling, float, bool], float]
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
class Load:
    """What one mote sends of its own accord in a round: frames and the bytes of each, on average and at worst."""

    frames: float
    size: float
    most: int
    most_size: float


def share_of(term: Expression) -> float:
    """For which share of the readings a condition is taken to hold."""
    match term:
        case Number(value):
            return 1.0 if value == 1 else 0.0
        case Apply("AND", parts):
            return prod(share_of(part) for part in parts)
        case Apply("OR", parts):
            return 1 - prod(1 - share_of(part) for part in parts)
        case Apply("NOT", (part,)):
            return 1 - share_of(part)
        case Apply(name, (left, right)) if left == right and name in ("EQ", "NE"):
            return 1.0 if name == "EQ" else 0.0  # what always holds of a value that is there
        case Apply(name):
            return OFTEN.get(name, 0.5)
    return 0.5


def passing(placed: Placed) -> float:
    """The share of its readings that an operator takes."""
    return prod(share_of(term) for term in conditions(placed.operator) if not about_site(term))


def groups_of(fold: Fold, sites: int) -> int:
    """How many groups a slice is taken to have, with readings of so many sites."""
    keys = [sites if isinstance(key, SiteNumber) else DISTINCT for key in fold.keys]
    return max(1, min(prod(keys), fold.slices.most_ticks(fold.interval) * sites))


def most_partials(placed: Placed, sites: int, slices: int) -> int:
    """How many partials of so many slices there can be, whatever is measured, with readings of so many sites.

    Each is of one group at least, and has one reading at least; where there is room for all groups, none is in two.
    """
    fold = placed.operator
    bare = int(any(not about_site(term) for term in conditions(fold)))
    readings = sites * fold.slices.most_ticks(fold.interval)
    groups = sites if all(isinstance(key, SiteNumber) for key in fold.keys) and fold.keys else readings
    groups = min(groups, readings) if fold.keys else 1
    known = slices * (groups + bare)
    return known if placed.room >= known else slices * readings


@dataclass(frozen=True, slots=True)
class Loads:
    """What each mote sends of its own accord in a round: readings, which are passed on as they are, and partials, which end."""

    readings: Mapping[int, list[Load]]
    partials: Mapping[int, list[Load]]

    @classmethod
    def of(cls, placement: Placement, schedules: Mapping[int, Schedule], sizes: Sizes, round: Round) -> "Loads":
        return cls(readings_of(placement, schedules, sizes, round), partials_of(placement, sizes, round))

    def traffic(self, tree: RoutingTree) -> list[Traffic]:
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
            found += [Traffic(site, parent, frames, size) for size, frames in own.items()]
            found += [Traffic(site, parent, frames, size, True) for size, frames in passed.items()]
        return found

    def most_frames(self, tree: RoutingTree) -> dict[int, Counter[float]]:
        """By mote, how many frames of which size it may have to hand over in a round: its own, and all that pass through."""
        most: dict[int, Counter[float]] = {mote: Counter() for mote in (*tree.parent, *tree.roots)}
        for site in tree.leaves_first:
            for load in self.readings.get(site, ()):
                most[site][load.most_size] += load.most
            most[tree.parent[site]] += most[site]
            for load in self.partials.get(site, ()):
                most[site][load.most_size] += load.most
        return most


def readings_of(
    placement: Placement, schedules: Mapping[int, Schedule], sizes: Sizes, round: Round
) -> dict[int, list[Load]]:
    """What each site sends as readings: what any of the operators wants, once."""
    wanted: dict[tuple[int, str], list[Placed]] = {}
    for placed in placement.placed:
        if isinstance(placed.operator, Deliver):
            for site in placed.sites:
                wanted.setdefault((site, placed.operator.extent), []).append(placed)
    found: dict[int, list[Load]] = {}
    known: dict[tuple[Sampling, tuple[int, ...]], Load] = {}  # most sites have the same to send
    for (site, extent), operators in wanted.items():
        if site not in placement.tree.parent:
            continue
        sampling = next(s for s in schedules[site].samplings if s.extent == extent)
        key = sampling, tuple(map(id, operators))
        if key not in known:
            known[key] = _readings(sampling, operators, sizes, round)
        found.setdefault(site, []).append(known[key])
    return found


def _readings(sampling: Sampling, operators: list[Placed], sizes: Sizes, round: Round) -> Load:
    epochs = round.ticks / sampling.epochs.interval
    missed = prod(1 - passing(p) * sampling.epochs.interval / _interval(p) for p in operators)
    share = 1 - missed
    most = max(1, ceil(ceil(epochs) / sizes.fit(sampling)))
    each = max(1.0, epochs) / most  # epochs in a frame
    most_size = sizes.readings(sampling, ceil(each), True)
    often = min(1.0, epochs)  # in which share of the rounds something is due
    if share < 1.0:  # and in which share of those there is something to say
        often *= max(1 - missed ** max(epochs, 1.0), 1 / REPORT_EPOCHS)
    return Load(most * often, sizes.readings(sampling, max(1.0, share * each), False), most, most_size)


def _interval(placed: Placed) -> int:
    return acquired(placed.operator)[placed.operator.extent].interval


def partials_of(placement: Placement, sizes: Sizes, round: Round) -> dict[int, list[Load]]:
    """What each site sends as partials: its own and those of everybody below it, merged."""
    found: dict[int, list[Load]] = {}
    for placed in placement.folds:
        below = sites_below(placement.tree, placed.sites)
        known = {count: _partials(placed, count, sizes, round) for count in set(below.values())}
        for site, contributing in below.items():
            found.setdefault(site, []).append(known[contributing])
    return found


def _partials(placed: Placed, contributing: int, sizes: Sizes, round: Round) -> Load:
    fold, shape = placed.operator, placed.shape
    slices = round.ticks * fold.slices.edges / fold.slices.period
    most = most_partials(placed, contributing, ceil(slices))
    fits = sizes.partials_fit(shape)
    whole, bare = max(1.0, slices) * groups_of(fold, contributing), max(1.0, slices) * (passing(placed) < 1)
    frames = ceil((whole + bare) / fits)
    size = sizes.partials(shape, whole / frames, bare / frames)
    return Load(frames * min(1.0, slices), size, ceil(most / fits), sizes.partials(shape, min(most, fits), 0))


def sites_below(tree: RoutingTree, sites: Iterable[int]) -> dict[int, int]:
    """For each mote that something of these sites passes through, of how many of them; they themselves included."""
    below = dict.fromkeys(tree.parent, 0) | dict.fromkeys(tree.roots, 0)
    for site in sites:
        if site in tree.parent:
            below[site] = 1
    for mote in tree.leaves_first:
        below[tree.parent[mote]] += below[mote]
    return {mote: count for mote, count in below.items() if count and mote in tree.parent}


def instructions_of(placement: Placement, schedules: Mapping[int, Schedule], round: Round) -> dict[int, float]:
    """How many instructions each mote interprets in a round, roughly: all of its operators', as if nothing were skipped."""
    found: dict[int, float] = {}
    for placed in placement.placed:
        computed = _expressions(placed.operator)
        length = 4 + sum(2 + sum(1 for _ in parts_of(e)) for e in computed)
        for site in placed.sites:
            sampling = next(s for s in schedules[site].samplings if s.extent == placed.operator.extent)
            found[site] = found.get(site, 0.0) + length * round.ticks / sampling.epochs.interval
    return found


def _expressions(operator: Deliver | Fold) -> list[Expression]:
    """What is computed for one reading; a value that is sent is one."""
    if isinstance(operator, Fold):
        return [*conditions(operator), *operator.keys, *(value for _, value in operator.states)]
    return [*conditions(operator), *(Measured(operator.extent, attribute) for attribute in operator.sent)]
