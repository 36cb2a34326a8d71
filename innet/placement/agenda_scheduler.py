"""Agenda scheduler: assigns slots so that children send before their parents and no transmission disturbs another.

Greedy: the deepest motes first, each as early as possible. The result is not the shortest agenda, but one that is easy
to explain.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from innet.errors import PlacementError
from innet.placement.agenda import (
    MAX_AGENDA_SLOTS,
    MAX_ROUND_MS,
    MAX_SLOT_MS,
    Activity,
    Agenda,
    SiteAgenda,
    Slot,
)
from innet.placement.energy_prediction import compute_slot_lengths, find_sampled_attributes
from innet.placement.load_model import NetworkLoads, Round, count_instructions
from innet.placement.placement import Placement
from innet.placement.placement_problem import PlacementProblem
from innet.placement.slot_rounds import find_slot_rounds
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree

MAX_EPOCHS = 16
"""Epochs in a round, at most: their readings wait in the RAM of a mote."""


@dataclass(frozen=True, slots=True)
class MoteWork:
    """The work of one mote in a round."""

    ticks: tuple[int, ...] = ()  # at which it samples, from the beginning of the round
    sense_ms: float = 0.0  # per tick
    compute_ms: float = 0.0  # per tick
    send_ms: float = 1.0  # per round


def make_agenda(
    tree: RoutingTree, work: Mapping[int, MoteWork], period: int, tick_ms: int, topology: Topology | None = None
) -> Agenda:
    """Return an agenda with rounds of `period` ticks for every mote of the tree.

    Without a topology, every mote is assumed to disturb every other. PlacementError, with the mote, if a round is too
    short for all slots, or if the agenda exceeds a limit of its encoding.
    """
    if period * tick_ms > MAX_ROUND_MS:
        raise PlacementError(f"a round of {period * tick_ms:,} ms exceeds the {MAX_ROUND_MS:,} ms that motes can count")
    interference = _InterferenceMap(tree, topology)
    own = {site: _own_slots(work.get(site, MoteWork()), tick_ms) for site in tree.parent}
    sends: dict[int, Slot] = {}
    children = tree.children
    for site in tree.leaves_first:
        parent, length = tree.parent[site], max(1, ceil(work.get(site, MoteWork()).send_ms))
        if length > MAX_SLOT_MS:
            raise PlacementError(
                f"its slot would take {length:,} ms, and a slot takes at most {MAX_SLOT_MS:,} ms", site
            )
        if len(children[site]) >= MAX_AGENDA_SLOTS:
            excess = (
                f"it has {len(children[site]):,} children, and a mote has at most {MAX_AGENDA_SLOTS} slots with its own"
            )
            raise PlacementError(excess, site)
        ready = max([slot.end_ms for slot in own[site]] + [sends[child].end_ms for child in children[site]], default=0)
        others = [sends[other] for other in interference.of(site) if other in sends]
        start = _find_gap(ready, length, [*others, *own.get(parent, ())])
        if start + length > period * tick_ms:
            late = (
                f"its slot would end after {start + length} ms, and the next round begins after {period * tick_ms} ms"
            )
            raise PlacementError(late, site)
        sends[site] = Slot(start, length, Activity.SEND, parent)
    sites = {}
    for site in sorted(tree.parent):
        received = (Slot(s.start_ms, s.length_ms, Activity.RECEIVE, c) for c in children[site] for s in [sends[c]])
        slots = sorted([*own[site], *received, sends[site]], key=lambda slot: slot.start_ms)
        sites[site] = SiteAgenda(site, tree.parent[site], tuple(slots))
    return Agenda(period, tick_ms, sites)


def longest_round(interval: int, tick_ms: int, within_ms: int | None = None) -> Round:
    """Return the longest round in which a sample can still arrive `within_ms`; one epoch if that is None.

    The first sample of a round waits for the last, and then for its transmission.
    """
    epochs = 1 if within_ms is None else min(MAX_EPOCHS, (within_ms - 1) // (interval * tick_ms) + 1)
    return Round(epochs, interval)


def schedule_placement(placement: Placement, problem: PlacementProblem, within_ms: int | None = None) -> Agenda:
    """Return the agenda of a placement, with rounds as long as possible, up to `problem.round`.

    PlacementError, with the figures, if not even rounds of one epoch have room for their slots and arrive `within_ms`.
    """
    for epochs in range(problem.round.epochs, 0, -1):
        round = Round(epochs, problem.round.interval)
        work = _work(placement, replace(problem, round=round))
        try:
            found = make_agenda(placement.tree, work, round.ticks, problem.tick_ms, problem.network.topology)
        except PlacementError:
            if epochs == 1:
                raise
            continue
        if within_ms is None or found.latest_ms <= within_ms:
            return replace(found, rounds=find_slot_rounds(placement, round))
    raise PlacementError(f"a sample arrives after {found.latest_ms:,} ms, and is to arrive within {within_ms:,} ms")


def _work(placement: Placement, problem: PlacementProblem) -> dict[int, MoteWork]:
    """Return the work of each mote in a round."""
    loads = NetworkLoads.of(placement, problem.schedules, problem.sizes, problem.round, memo=problem.memo)
    slots = compute_slot_lengths(loads, problem)
    computing, sampling = (
        count_instructions(placement, problem.schedules, problem.round),
        find_sampled_attributes(placement),
    )
    work = {}
    for site, slot in slots.items():
        sampled = sampling.get(site, ())
        ticks = sorted({tick for _, interval in sampled for tick in range(0, problem.round.ticks, interval)})
        sense = sum(problem.samples.get((site, attribute), (0.0, 0.0))[0] for attribute, _ in sampled)
        instruction_us = problem.network.hardware[site].processor.instruction_us
        compute = computing.get(site, 0.0) * instruction_us / 1_000 / max(1, len(ticks))
        work[site] = MoteWork(tuple(ticks), sense, compute, slot)
    return work


def _own_slots(work: MoteWork, tick_ms: int) -> list[Slot]:
    """Return the slots for sensing and computing, at each tick with a sample."""
    slots = []
    for tick in work.ticks:
        sensed = tick * tick_ms + ceil(work.sense_ms)
        if work.sense_ms:
            slots.append(Slot(tick * tick_ms, ceil(work.sense_ms), Activity.SENSE))
        if work.compute_ms:
            slots.append(Slot(sensed, ceil(work.compute_ms), Activity.COMPUTE))
    return slots


def _find_gap(ready: int, length: int, taken: list[Slot]) -> int:
    """Return the earliest start, from `ready` on, of a span of `length` ms that overlaps no slot in `taken`."""
    start = ready
    for slot in sorted(taken, key=lambda slot: slot.start_ms):
        if slot.start_ms >= start + length:
            break
        start = max(start, slot.end_ms)
    return start


class _InterferenceMap:
    """Whether motes disturb each other: one is audible where another is received."""

    def __init__(self, tree: RoutingTree, topology: Topology | None) -> None:
        self._tree, self._topology = tree, topology
        self._children = tree.children
        self._audible = topology.audible if topology else {}
        self._hearing: dict[int, list[int]] = {}
        for receiver, senders in self._audible.items():
            for sender in senders:
                self._hearing.setdefault(sender, []).append(receiver)

    def of(self, site: int) -> set[int]:
        """Return the motes that must not send while this one does."""
        if self._topology is None:
            return set(self._tree.parent) - {site}
        parent = self._tree.parent[site]
        audible = self._audible.get(parent, frozenset())
        disturbed = {child for receiver in self._hearing.get(site, ()) for child in self._children.get(receiver, ())}
        neighbours = {parent, *self._children[parent], *self._children[site]}
        return {*audible, *disturbed, *neighbours} - {site}
