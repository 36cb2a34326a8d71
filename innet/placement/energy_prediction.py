"""Energy prediction: the energy and traffic of a placement in one round, and the length of each slot for sending."""

from collections import Counter
from math import ceil, inf, prod, sqrt

from innet.costs.energy_model import EnergyPrediction, MoteWorkload, attempt_ms, predict
from innet.operators.acquire import find_acquires
from innet.placement.load_model import NetworkLoads, count_instructions
from innet.placement.placement import Placement
from innet.placement.placement_problem import PlacementProblem
from innet.placement.slot_rounds import find_slot_rounds

CONFIDENCE_SIGMAS = 2.33
"""Standard deviations above the mean that one value in a hundred exceeds."""


def predict_energy(placement: Placement, problem: PlacementProblem) -> EnergyPrediction:
    """Predict the energy and traffic of a placement in one round."""
    network, tree = problem.network, placement.tree
    loads = NetworkLoads.of(
        placement, problem.schedules, problem.sizes, problem.round, problem.statistics, problem.memo
    )
    send_shares = loads.send_shares(tree)
    slots = compute_slot_lengths(loads, problem)
    computing = count_instructions(placement, problem.schedules, problem.round)
    children, sampling = tree.children, find_sampled_attributes(placement)
    rounds = find_slot_rounds(placement, problem.round)
    duties = {}
    for site in tree.parent:
        child_slots = [slots[child] for child in children[site]]
        hops = tree.depth(site)
        listen_share = rounds.slot_share(rounds.poll_phase(hops + 1))  # children poll a round after their parent
        sends_anyway = min(1.0, send_shares[site] * rounds.every)
        polls = 1 / rounds.poll_every - rounds.overlap_share(rounds.poll_phase(hops)) * sends_anyway
        sampled = sum(
            prod(problem.samples.get((site, attribute), (0.0, 0.0))) * problem.round.ticks / interval
            for attribute, interval in sampling.get(site, ())
        )
        starts = len(child_slots) * listen_share + send_shares[site] + polls
        listen_ms = sum(child_slots) * listen_share
        duties[site] = MoteWorkload(sampled, computing.get(site, 0.0), listen_ms, starts, slots[site], polls)
    return predict(network, duties, loads.traffic(tree), problem.round.ticks * problem.tick_ms)


def find_sampled_attributes(placement: Placement) -> dict[int, list[tuple[str, int]]]:
    """Return (attribute, interval) of each attribute that a site samples, once, at the shortest interval of its operators."""
    intervals: dict[int, dict[tuple[str, str], int]] = {}
    alike = {
        (placed.sites, acquire): None
        for placed in placement.placed
        for acquire in find_acquires(placed.operator).values()
    }
    for sites, acquire in alike:
        for site in sites:
            found = intervals.setdefault(site, {})
            for attribute in acquire.sampled:
                key = acquire.extent, attribute
                found[key] = min(acquire.interval, found.get(key, acquire.interval))
    return {site: [(attribute, every) for (_, attribute), every in found.items()] for site, found in intervals.items()}


def compute_slot_lengths(loads: NetworkLoads, problem: PlacementProblem) -> dict[int, int]:
    """Return the length of each mote's slot for sending, in whole milliseconds, with time for failed attempts.

    Frames that do not fit into a slot are lost. So a slot has room for the largest number of frames, and for one more:
    motes also send reports of their own.
    """
    network = problem.network
    most = loads.most_frames(network.tree)
    largest, found = Counter({float(problem.sizes.room): 1}), {}
    for site, parent in network.tree.parent.items():
        frames = most[site] + largest
        both = network.topology.ratio(site, parent) * network.topology.ratio(parent, site)
        count = frames.total()
        more = enough_attempts(count, both, network.attempts) / count
        hardware = network.hardware[site]
        found[site] = ceil(more * sum(number * attempt_ms(hardware, size) for size, number in frames.items()))
    return found


def enough_attempts(frames: int, both: float, limit: int) -> float:
    """Return the attempts that suffice for `frames` frames in 99 of 100 rounds.

    `both` is the probability that a frame and its acknowledgement arrive; `limit` is the attempts per frame.
    """
    needed = frames / both + CONFIDENCE_SIGMAS * sqrt(frames * (1 - both)) / both if both else inf
    return min(needed, frames * limit)
