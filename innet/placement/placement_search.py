"""Place: where operators run. Pure: the same questions on the same network give the same placement.

A condition runs where its reading is made: nothing is cheaper than a message that is not sent. A fold runs wherever its
readings pass, or not at all: then they are delivered and folded at the base station. Which of them run is chosen by what
the whole network uses, together with all other queries: a fold of readings that somebody wants anyway saves nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, prod, sqrt

from acquisition.schedule import Schedule
from innet.costs.energy_model import EnergyPrediction, MoteWorkload, NetworkModel, attempt_ms, predict
from innet.errors import PlacementError
from innet.operators.acquire import find_acquires
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.placement.fold_sharing import free_numbers, has_all_states, merge_folds
from innet.placement.load_model import FrameSizes, NetworkLoads, Round, count_instructions, sites_below
from innet.placement.placement import PlacedOperator, Placement, conditions, is_about_site, select_sites
from innet.placement.slot_rounds import find_slot_rounds
from innet.placement.statistics import GUESS, Statistics

MAX_ROOM = 255
CONFIDENCE_SIGMAS = 2.33
"""So many standard deviations above the mean, where one in a hundred is above."""


@dataclass(frozen=True, slots=True)
class FoldOption:
    """A fold, and what is to be delivered where it does not run."""

    fold: Fold
    unfolded_readings: tuple[Deliver, ...]


@dataclass(frozen=True, slots=True)
class FoldDecision:
    """What was decided about a fold, with what the network uses in an hour if it runs and if it does not."""

    fold: Fold
    runs: bool
    joules: tuple[float, float]  # of all motes: running, not running
    messages: tuple[float, float]  # attempts

    @property
    def reason(self) -> str:
        """The decision as a sentence."""
        less, more = (
            ("in the network", "at the base station") if self.runs else ("at the base station", "in the network")
        )
        joules, messages = (pair if self.runs else pair[::-1] for pair in (self.joules, self.messages))
        used, otherwise = (f"{_told(j, 3)} J and {_told(n, 4)}" for j, n in zip(joules, messages, strict=True))
        return f"folded {less}: all motes use {used} messages an hour, {more} {otherwise}"


def _told(figure: float, digits: int) -> str:
    """With so many digits, and all of those before the point."""
    return f"{figure:,.0f}" if figure >= 10 ** (digits - 1) else f"{figure:.{digits}g}"


@dataclass(frozen=True, slots=True)
class PlacementProblem:
    """What a placement is chosen for. `samples` are the milliseconds and milliampere of one, by site and attribute."""

    network: NetworkModel
    sites: Mapping[str, tuple[int, ...]]  # of each extent
    schedules: Mapping[int, Schedule]
    sizes: FrameSizes
    round: Round
    tick_ms: int
    samples: Mapping[tuple[int, str], tuple[float, float]]
    statistics: Statistics = GUESS


def place(
    delivered: Iterable[Deliver],
    choices: Iterable[FoldOption],
    world: PlacementProblem,
    standing: Sequence[PlacedOperator] = (),
    last: int = 0,
    rounds: Callable[[Placement], Round | None] | None = None,
) -> tuple[Placement, tuple[FoldDecision, ...]]:
    """The cheapest of what was tried: everything folded, nothing folded, and from there one fold at a time.

    `standing` are folds that run already, and go on as they are; `last` is the number that was given last. `rounds` says how
    long those of a placement can be, None where no agenda has time for it; without it all have those of the world.
    """
    found = tuple(dict.fromkeys(choices))
    search = _Search(tuple(dict.fromkeys(delivered)), found, world, standing, last, rounds)
    everything = frozenset(range(len(found)))
    running = search.cheapest((everything, frozenset()))
    while (better := search.improve(running)) is not None:
        running = better
    weighed = []
    for number in sorted(everything):
        with_fold, without = search.trial(running | {number}), search.trial(running - {number})
        joules, messages = (with_fold.joules, without.joules), (with_fold.messages, without.messages)
        weighed.append(FoldDecision(found[number].fold, number in running, joules, messages))
    return search.trial(running).placement, tuple(weighed)


@dataclass(frozen=True, slots=True)
class _Trial:
    """A placement, and the prediction for a round, which takes so many hours."""

    placement: Placement
    prediction: EnergyPrediction
    hours: float

    @property
    def joules(self) -> float:
        """Of all motes, in an hour."""
        return sum(use.total for use in self.prediction.motes.values()) / self.hours

    @property
    def messages(self) -> float:
        """Attempts, in an hour."""
        return self.prediction.total.attempts / self.hours


class _Search:
    """The alternatives of one search: sets of the folds that run. Each is predicted once, and gets an agenda only if that
    decides. An alternative that no agenda has time for is taken only if there is no other."""

    def __init__(
        self,
        delivered: tuple[Deliver, ...],
        options: tuple[FoldOption, ...],
        problem: PlacementProblem,
        standing: Sequence[PlacedOperator],
        last: int,
        rounds: Callable[[Placement], Round | None] | None,
    ) -> None:
        self._delivered, self._options, self._problem = delivered, options, problem
        self._standing, self._last, self._rounds = standing, last, rounds
        self._trials: dict[frozenset[int], _Trial] = {}
        self._known: dict[frozenset[int], Round | None] = {}

    def trial(self, running: frozenset[int]) -> _Trial:
        """An alternative with its prediction. A round of a single epoch is known without the agenda."""
        if running not in self._trials:
            placement = build_placement(
                self._delivered, self._options, running, self._problem, self._standing, self._last
            )
            longest = self._problem.round
            round = longest if longest.epochs == 1 else self._round(running, placement)
            at = replace(self._problem, round=round or Round(1, longest.interval))
            hours = at.round.ticks * at.tick_ms / 3_600_000
            self._trials[running] = _Trial(placement, predict_energy(placement, at), hours)
        return self._trials[running]

    def cheapest(self, alternatives: Iterable[frozenset[int]]) -> frozenset[int]:
        """The cheapest of some alternatives; agendas are computed from the cheapest on until one has time."""
        ranked = sorted(alternatives, key=self._usage)
        return next(filter(self._in_time, ranked), ranked[0])

    def improve(self, running: frozenset[int]) -> frozenset[int] | None:
        """The cheapest alternative that differs in one fold and is cheaper; None if there is none."""
        others = [running ^ {number} for number in range(len(self._options))]
        if self._in_time(running):
            cheaper = sorted((other for other in others if self._usage(other) < self._usage(running)), key=self._usage)
            return next(filter(self._in_time, cheaper), None)
        best = self.cheapest(others) if others else running
        return best if self._in_time(best) or self._usage(best) < self._usage(running) else None

    def _usage(self, running: frozenset[int]) -> tuple[float, int]:
        """Joules of all motes in an hour; of equal ones, more folds are better because they leave the radio to others."""
        return self.trial(running).joules, -len(running)

    def _in_time(self, running: frozenset[int]) -> bool:
        return self._round(running, self.trial(running).placement) is not None

    def _round(self, running: frozenset[int], placement: Placement) -> Round | None:
        if running not in self._known:
            self._known[running] = self._problem.round if self._rounds is None else self._rounds(placement)
        return self._known[running]


def build_placement(
    delivered: Sequence[Deliver],
    choices: Sequence[FoldOption],
    running: Iterable[int],
    world: PlacementProblem,
    standing: Sequence[PlacedOperator] = (),
    last: int = 0,
) -> Placement:
    """The placement in which these of the choices run as folds, and the others are delivered.

    One that a standing fold keeps already needs no other.
    """
    running = frozenset(running)
    readings = [
        *delivered,
        *(d for n, choice in enumerate(choices) if n not in running for d in choice.unfolded_readings),
    ]
    wanted = (choices[number].fold for number in sorted(running))
    lacking = (fold for fold in wanted if not any(has_all_states(placed.operator, fold) for placed in standing))
    folds = merge_folds(lacking, lambda fold: _fits(fold, world))
    numbers = free_numbers(last, [placed.number for placed in standing])
    if len(folds) > len(numbers):
        raise PlacementError(f"{len(folds)} more folds than the {len(standing)} that run are too many to have numbers")
    tree = world.network.tree
    placed = [PlacedOperator(d, select_sites(d, world.sites[d.extent])) for d in dict.fromkeys(readings)]
    placed += standing
    placed += [_fold(fold, number, world, len(folds), standing) for fold, number in zip(folds, numbers, strict=False)]
    unreached = tree.unreached(site for found in placed for site in found.sites)
    return Placement(tree, tuple(placed), unreached)


def _fits(fold: Fold, world: PlacementProblem) -> bool:
    """Whether a frame has room for a partial."""
    shape = PlacedOperator(fold, select_sites(fold, world.sites[fold.extent])).shape
    return world.sizes.partials(shape, 1, 0) <= world.sizes.room


def _fold(
    fold: Fold, number: int, world: PlacementProblem, folds: int, standing: Sequence[PlacedOperator]
) -> PlacedOperator:
    """A fold where its readings are made and pass, with room for the groups expected, as far as its share of RAM goes."""
    tree, hardware = world.network.tree, world.network.hardware
    sites = select_sites(fold, world.sites[fold.extent])
    below = sites_below(tree, sites)
    merging = tuple(sorted(below.keys() - set(sites)))
    placed = PlacedOperator(fold, sites, number, merging)
    filters = any(not is_about_site(term) for term in conditions(fold))
    groups = world.statistics.most_groups(fold, max(below.values(), key=len, default=())) + filters
    open_slices = ceil(world.round.ticks * fold.slices.window_slices / fold.slices.period) + 1
    ram = min((hardware[site].processor.ram_bytes for site in below), default=0)
    left = ram - sum(other.room * other.shape.group_bytes for other in standing)
    fits = left // folds // placed.shape.group_bytes
    return replace(placed, room=max(1, min(MAX_ROOM, open_slices * groups, fits)))


# --- what it uses ----------------------------------------------------------------------------------------------------


def predict_energy(placement: Placement, world: PlacementProblem) -> EnergyPrediction:
    """What a placement uses in a round."""
    network, tree = world.network, placement.tree
    loads = NetworkLoads.of(placement, world.schedules, world.sizes, world.round, world.statistics)
    send_shares = loads.send_shares(tree)
    slots = compute_slot_lengths(loads, world)
    computing = count_instructions(placement, world.schedules, world.round)
    children, sampling = tree.children, find_sampled_attributes(placement)
    rounds = find_slot_rounds(placement, world.round)
    duties = {}
    for site in tree.parent:
        heard = [slots[child] for child in children[site]]
        hops = tree.depth(site)
        listens = rounds.slot_share(rounds.turn(hops + 1))  # its children have theirs a round later
        asks = 1 / rounds.asks - rounds.both(rounds.turn(hops)) * min(1.0, send_shares[site] * rounds.every)
        sampled = sum(
            prod(world.samples.get((site, attribute), (0.0, 0.0))) * world.round.ticks / interval
            for attribute, interval in sampling.get(site, ())
        )
        starts = len(heard) * listens + send_shares[site] + asks
        duties[site] = MoteWorkload(sampled, computing.get(site, 0.0), sum(heard) * listens, starts, slots[site], asks)
    return predict(network, duties, loads.traffic(tree), world.round.ticks * world.tick_ms)


def find_sampled_attributes(placement: Placement) -> dict[int, list[tuple[str, int]]]:
    """Each attribute that a site samples for what runs there, once, with the shortest interval wanted."""
    wanted: dict[int, dict[tuple[str, str], int]] = {}
    for placed in placement.placed:
        acquires = find_acquires(placed.operator).values()
        for site in placed.sites:
            found = wanted.setdefault(site, {})
            for acquire in acquires:
                for attribute in acquire.sampled:
                    key = acquire.extent, attribute
                    found[key] = min(acquire.interval, found.get(key, acquire.interval))
    return {site: [(attribute, every) for (_, attribute), every in found.items()] for site, found in wanted.items()}


def compute_slot_lengths(loads: NetworkLoads, world: PlacementProblem) -> dict[int, int]:
    """By mote, how long its slot for sending has to be, in whole milliseconds: for the most frames, and attempts that fail.

    What does not fit into a slot is lost, so there is room for one frame more: motes report other things, too.
    """
    network = world.network
    most = loads.most_frames(network.tree)
    found = {}
    for site, parent in network.tree.parent.items():
        frames = most[site] + Counter({float(world.sizes.room): 1})
        both = network.topology.ratio(site, parent) * network.topology.ratio(parent, site)
        count = frames.total()
        more = enough_attempts(count, both, network.attempts) / count
        hardware = network.hardware[site]
        found[site] = ceil(more * sum(number * attempt_ms(hardware, size) for size, number in frames.items()))
    return found


def enough_attempts(frames: int, both: float, limit: int) -> float:
    """How many attempts are enough, but for one round in a hundred, where each comes through with probability `both`."""
    needed = frames / both + CONFIDENCE_SIGMAS * sqrt(frames * (1 - both)) / both if both else inf
    return min(needed, frames * limit)
