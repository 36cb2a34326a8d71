"""Placement search: chooses which folds run in the network, by the energy of all motes.

Pure and deterministic. A condition runs on the mote that takes the reading: no message is cheaper than one that is not
sent. A fold runs on every mote that its readings pass, or not at all; then its readings are delivered, and the base
station folds them. The search compares the energy of the whole network with all queries: a fold of readings that another
query has delivered anyway saves nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from innet.costs.energy_model import EnergyPrediction
from innet.errors import PlacementError
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.placement.energy_prediction import predict_energy
from innet.placement.fold_sharing import free_numbers, has_all_states, merge_folds
from innet.placement.load_model import Round, sites_below
from innet.placement.placement import PlacedOperator, Placement, conditions, is_about_site, select_sites
from innet.placement.placement_problem import PlacementProblem

MAX_ROOM = 255
"""The largest room of a fold: a table declares its room in one byte."""


@dataclass(frozen=True, slots=True)
class FoldOption:
    """A fold that may run, and the readings that are delivered if it does not."""

    fold: Fold
    unfolded_readings: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class FoldDecision:
    """The decision about a fold, with the usage of the whole network per hour if it runs and if it does not."""

    fold: Fold
    runs: bool
    joules: tuple[float, float]  # (if it runs, if not)
    messages: tuple[float, float]  # attempts: (if it runs, if not)

    @property
    def reason(self) -> str:
        """The decision as a sentence."""
        less, more = (
            ("in the network", "at the base station") if self.runs else ("at the base station", "in the network")
        )
        joules, messages = (pair if self.runs else pair[::-1] for pair in (self.joules, self.messages))
        used, otherwise = (f"{_format(j, 3)} J and {_format(n, 4)}" for j, n in zip(joules, messages, strict=True))
        return f"folded {less}: all motes use {used} messages an hour, {more} {otherwise}"


def _format(figure: float, digits: int) -> str:
    """Format a figure with that many significant digits, and all digits before the point."""
    return f"{figure:,.0f}" if figure >= 10 ** (digits - 1) else f"{figure:.{digits}g}"


def place(
    deliveries: Iterable[Deliver],
    options: Iterable[FoldOption],
    problem: PlacementProblem,
    running_folds: Sequence[PlacedOperator] = (),
    last: int = 0,
    find_round: Callable[[Placement], Round | None] | None = None,
) -> tuple[Placement, tuple[FoldDecision, ...]]:
    """Return the cheapest placement found, and the decision about each option.

    A local search: it begins with all options folded or none, and then changes one option at a time while that saves
    energy. `deliveries` always run. `running_folds` run already and stay unchanged; `last` is the fold number assigned
    last. `find_round` returns the round that an agenda of a placement can have, or None if no agenda fits; without it every
    placement has the round of the problem.
    """
    options = tuple(dict.fromkeys(options))
    search = _Search(tuple(dict.fromkeys(deliveries)), options, problem, running_folds, last, find_round)
    everything = frozenset(range(len(options)))
    running = search.cheapest((everything, frozenset()))
    while (better := search.improve(running)) is not None:
        running = better
    decisions = []
    for number in sorted(everything):
        with_fold, without = search.trial(running | {number}), search.trial(running - {number})
        joules, messages = (with_fold.joules, without.joules), (with_fold.messages, without.messages)
        decisions.append(FoldDecision(options[number].fold, number in running, joules, messages))
    return search.trial(running).placement, tuple(decisions)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A placement, and the prediction for one of its rounds, which lasts `hours`."""

    placement: Placement
    prediction: EnergyPrediction
    hours: float

    @property
    def joules(self) -> float:
        """Joules of all motes per hour."""
        return sum(use.total for use in self.prediction.motes.values()) / self.hours

    @property
    def messages(self) -> float:
        """Attempts per hour."""
        return self.prediction.total.attempts / self.hours


class _Search:
    """The alternatives of one search: sets of options that run as folds, by index.

    Each alternative is predicted once, and its agenda is computed only if it decides. An alternative that no agenda fits
    is taken only if there is no other.
    """

    def __init__(
        self,
        deliveries: tuple[Deliver, ...],
        options: tuple[FoldOption, ...],
        problem: PlacementProblem,
        running_folds: Sequence[PlacedOperator],
        last: int,
        find_round: Callable[[Placement], Round | None] | None,
    ) -> None:
        self._deliveries, self._options, self._problem = deliveries, options, problem
        self._running_folds, self._last, self._find_round = running_folds, last, find_round
        self._trials: dict[frozenset[int], _Trial] = {}
        self._rounds: dict[frozenset[int], Round | None] = {}

    def trial(self, running: frozenset[int]) -> _Trial:
        """Return an alternative with its prediction. A round of one epoch is known without the agenda."""
        if running not in self._trials:
            placement = build_placement(
                self._deliveries, self._options, running, self._problem, self._running_folds, self._last
            )
            longest = self._problem.round
            round = longest if longest.epochs == 1 else self._round(running, placement)
            at = replace(self._problem, round=round or Round(1, longest.interval))
            hours = at.round.ticks * at.tick_ms / 3_600_000
            self._trials[running] = _Trial(placement, predict_energy(placement, at), hours)
        return self._trials[running]

    def cheapest(self, alternatives: Iterable[frozenset[int]]) -> frozenset[int]:
        """Return the cheapest alternative with an agenda that fits; the cheapest of all if none does."""
        ranked = sorted(alternatives, key=self._usage)
        return next(filter(self._in_time, ranked), ranked[0])

    def improve(self, running: frozenset[int]) -> frozenset[int] | None:
        """Return the cheapest alternative that differs in one option and is cheaper; None if there is none."""
        others = [running ^ {number} for number in range(len(self._options))]
        if self._in_time(running):
            cheaper = sorted((other for other in others if self._usage(other) < self._usage(running)), key=self._usage)
            return next(filter(self._in_time, cheaper), None)
        best = self.cheapest(others) if others else running
        return best if self._in_time(best) or self._usage(best) < self._usage(running) else None

    def _usage(self, running: frozenset[int]) -> tuple[float, int]:
        """Joules of all motes per hour. Of equal alternatives, more folds are better: they leave more air time."""
        return self.trial(running).joules, -len(running)

    def _in_time(self, running: frozenset[int]) -> bool:
        return self._round(running, self.trial(running).placement) is not None

    def _round(self, running: frozenset[int], placement: Placement) -> Round | None:
        if running not in self._rounds:
            find_round = self._find_round
            self._rounds[running] = self._problem.round if find_round is None else find_round(placement)
        return self._rounds[running]


def build_placement(
    deliveries: Sequence[Deliver],
    options: Sequence[FoldOption],
    running: Iterable[int],
    problem: PlacementProblem,
    running_folds: Sequence[PlacedOperator] = (),
    last: int = 0,
) -> Placement:
    """Return the placement in which the options with the indexes `running` fold, and the others deliver their readings.

    An option whose states a running fold already has gets no fold of its own. PlacementError if the fold numbers run out.
    """
    running = frozenset(running)
    readings = [
        *deliveries,
        *(d for n, option in enumerate(options) if n not in running for d in option.unfolded_readings),
    ]
    required = (options[number].fold for number in sorted(running))
    lacking = (fold for fold in required if not any(has_all_states(placed.fold, fold) for placed in running_folds))
    folds = merge_folds(lacking, lambda fold: _fits(fold, problem))
    numbers = free_numbers(last, [placed.number for placed in running_folds])
    if len(folds) > len(numbers):
        raise PlacementError(
            f"{len(folds)} new folds need numbers, and beside {len(running_folds)} running folds "
            f"{len(numbers)} are free; stop queries first"
        )
    tree = problem.network.tree
    placed = [PlacedOperator(d, select_sites(d, problem.sites[d.extent])) for d in dict.fromkeys(readings)]
    placed += running_folds
    placed += [
        _fold(fold, number, problem, len(folds), running_folds) for fold, number in zip(folds, numbers, strict=False)
    ]
    unreached = tree.unreached(site for sites in {found.sites for found in placed} for site in sites)
    return Placement(tree, tuple(placed), unreached)


def _fits(fold: Fold, problem: PlacementProblem) -> bool:
    """Whether one partial of a fold fits into a frame."""
    shape = PlacedOperator(fold, select_sites(fold, problem.sites[fold.extent])).shape
    return problem.sizes.partials(shape, 1, 0) <= problem.sizes.room


def _fold(
    fold: Fold, number: int, problem: PlacementProblem, folds: int, running_folds: Sequence[PlacedOperator]
) -> PlacedOperator:
    """Place a fold at its sites and on their routes, with room for the expected groups within its share of the RAM.

    `folds` is the number of new folds, which share the RAM that the running folds leave.
    """
    tree, hardware = problem.network.tree, problem.network.hardware
    sites = select_sites(fold, problem.sites[fold.extent])
    below = sites_below(tree, sites)
    merging = tuple(sorted(below.keys() - set(sites)))
    placed = PlacedOperator(fold, sites, number, merging)
    filters = any(not is_about_site(term) for term in conditions(fold))
    groups = problem.statistics.most_groups(fold, max(below.values(), key=len, default=())) + filters
    open_slices = ceil(problem.round.ticks * fold.slices.window_slices / fold.slices.period) + 1
    ram = min((hardware[site].processor.ram_bytes for site in below), default=0)
    left = ram - sum(other.room * other.shape.group_bytes for other in running_folds)
    fits = left // folds // placed.shape.group_bytes
    return replace(placed, room=max(1, min(MAX_ROOM, open_slices * groups, fits)))
