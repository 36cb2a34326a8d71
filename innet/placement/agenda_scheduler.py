"""Timing: makes agendas. Children send before their parents, and nobody sends while a neighbour's receiver would hear it.

Greedy: the deepest motes first, each as early as it can. That is not the shortest agenda there is; it is one that
can be told in a sentence.
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
from innet.placement.load_model import NetworkLoads, Round, count_instructions
from innet.placement.placement import Placement
from innet.placement.placement_search import PlacementProblem, compute_slot_lengths, find_sampled_attributes
from innet.placement.slot_rounds import find_slot_rounds
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree

MAX_EPOCHS = 16
"""No more epochs wait for each other: their readings are in a mote's RAM meanwhile."""


@dataclass(frozen=True, slots=True)
class MoteWork:
    """What one mote has to do in a round. It samples at `ticks` from the beginning of the round on."""

    ticks: tuple[int, ...] = ()
    sense_ms: float = 0.0
    compute_ms: float = 0.0
    send_ms: float = 1.0


def make_agenda(
    tree: RoutingTree, work: Mapping[int, MoteWork], period: int, tick_ms: int, topology: Topology | None = None
) -> Agenda:
    """An agenda for every mote of the tree. Without a topology, all motes are taken to hear each other.

    PlacementError, with the mote, where a round is too short for what has to go out at its end, or motes cannot be told of it.
    """
    if period * tick_ms > MAX_ROUND_MS:
        raise PlacementError(f"rounds of {period * tick_ms:,} ms are longer than motes count, {MAX_ROUND_MS:,} ms")
    earshot = _InterferenceMap(tree, topology)
    own = {site: _own_slots(work.get(site, MoteWork()), tick_ms) for site in tree.parent}
    sends: dict[int, Slot] = {}
    children = tree.children
    for site in tree.leaves_first:
        parent, length = tree.parent[site], max(1, ceil(work.get(site, MoteWork()).send_ms))
        if length > MAX_SLOT_MS:
            raise PlacementError(f"it would send for {length:,} ms, and a slot has {MAX_SLOT_MS:,} ms at most", site)
        if len(children[site]) >= MAX_AGENDA_SLOTS:
            said = f"{len(children[site]):,} motes would send to it, and it keeps {MAX_AGENDA_SLOTS} slots with its own"
            raise PlacementError(said, site)
        ready = max([slot.end_ms for slot in own[site]] + [sends[child].end_ms for child in children[site]], default=0)
        others = [sends[other] for other in earshot.of(site) if other in sends]
        start = _find_gap(ready, length, [*others, *own.get(parent, ())])
        if start + length > period * tick_ms:
            late = f"it would send until {start + length} ms, and after {period * tick_ms} ms the next round begins"
            raise PlacementError(late, site)
        sends[site] = Slot(start, length, Activity.SEND, parent)
    sites = {}
    for site in sorted(tree.parent):
        heard = (Slot(s.start_ms, s.length_ms, Activity.RECEIVE, c) for c in children[site] for s in [sends[c]])
        slots = sorted([*own[site], *heard, sends[site]], key=lambda slot: slot.start_ms)
        sites[site] = SiteAgenda(site, tree.parent[site], tuple(slots))
    return Agenda(period, tick_ms, sites)


def longest_round(interval: int, tick_ms: int, within_ms: int | None = None) -> Round:
    """As many epochs as may wait for each other where what is sampled is to arrive `delivery_bound_ms`; one, if nothing is said.

    The first waits for the last, and then has to get here: what waits for all the time there is comes too late.
    """
    epochs = 1 if within_ms is None else min(MAX_EPOCHS, (within_ms - 1) // (interval * tick_ms) + 1)
    return Round(epochs, interval)


def schedule_placement(placement: Placement, world: PlacementProblem, within_ms: int | None = None) -> Agenda:
    """The agenda of a placement: with rounds of `world.round`, or the longest shorter ones that arrive in time.

    PlacementError, with the figures, if not even single epochs do.
    """
    for epochs in range(world.round.epochs, 0, -1):
        round = Round(epochs, world.round.interval)
        work = _work(placement, replace(world, round=round))
        try:
            found = make_agenda(placement.tree, work, round.ticks, world.tick_ms, world.network.topology)
        except PlacementError:
            if epochs == 1:
                raise
            continue
        if within_ms is None or found.latest_ms <= within_ms:
            return replace(found, rounds=find_slot_rounds(placement, round))
    raise PlacementError(
        f"what is sampled arrives after {found.latest_ms:,} ms, and is to be there within {within_ms:,}"
    )


def find_round(placement: Placement, world: PlacementProblem, within_ms: int | None = None) -> Round | None:
    """The round that the agenda of a placement has; None where there is no agenda for it."""
    try:
        agenda = schedule_placement(placement, world, within_ms)
    except PlacementError:
        return None
    return Round(agenda.period // world.round.interval, world.round.interval)


def _work(placement: Placement, world: PlacementProblem) -> dict[int, MoteWork]:
    slots = compute_slot_lengths(NetworkLoads.of(placement, world.schedules, world.sizes, world.round), world)
    computing, sampling = (
        count_instructions(placement, world.schedules, world.round),
        find_sampled_attributes(placement),
    )
    work = {}
    for site, slot in slots.items():
        sampled = sampling.get(site, ())
        ticks = sorted({tick for _, interval in sampled for tick in range(0, world.round.ticks, interval)})
        sense = sum(world.samples.get((site, attribute), (0.0, 0.0))[0] for attribute, _ in sampled)
        instruction_us = world.network.hardware[site].processor.instruction_us
        compute = computing.get(site, 0.0) * instruction_us / 1_000 / max(1, len(ticks))
        work[site] = MoteWork(tuple(ticks), sense, compute, slot)
    return work


def _own_slots(work: MoteWork, tick_ms: int) -> list[Slot]:
    """Sensing and computing, at each tick at which something is sampled."""
    slots = []
    for tick in work.ticks:
        sensed = tick * tick_ms + ceil(work.sense_ms)
        if work.sense_ms:
            slots.append(Slot(tick * tick_ms, ceil(work.sense_ms), Activity.SENSE))
        if work.compute_ms:
            slots.append(Slot(sensed, ceil(work.compute_ms), Activity.COMPUTE))
    return slots


def _find_gap(ready: int, length: int, taken: list[Slot]) -> int:
    """The first moment from `ready` on at which nothing is taken for so long."""
    start = ready
    for slot in sorted(taken, key=lambda slot: slot.start_ms):
        if slot.start_ms >= start + length:
            break
        start = max(start, slot.end_ms)
    return start


class _InterferenceMap:
    """Whose sending would be heard where another is listened to."""

    def __init__(self, tree: RoutingTree, topology: Topology | None) -> None:
        self._tree, self._topology = tree, topology
        self._children = tree.children
        self._audible = topology.audible if topology else {}
        self._hearing: dict[int, list[int]] = {}
        for receiver, senders in self._audible.items():
            for sender in senders:
                self._hearing.setdefault(sender, []).append(receiver)

    def of(self, site: int) -> set[int]:
        """The motes that must not send while this one does."""
        if self._topology is None:
            return set(self._tree.parent) - {site}
        parent = self._tree.parent[site]
        heard = self._audible.get(parent, frozenset())
        disturbed = {child for receiver in self._hearing.get(site, ()) for child in self._children.get(receiver, ())}
        return (heard | disturbed | set(self._children[parent]) | {parent} | set(self._children[site])) - {site}
