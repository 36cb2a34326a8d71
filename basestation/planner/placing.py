"""Placing: where and when on the motes of a deployment the parts of queries would run together, and what that would use.

All of it is known beforehand: the links are those of the deployment, and no mote has been asked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd

from acquisition.extent import Catalog
from acquisition.schedule import Schedule
from acquisition.scheduling import NOTHING, Need, share
from basestation.algebra.node import Node
from basestation.planner.lower import collected
from basestation.planner.moves import Moves
from basestation.planner.plan import Plan
from basestation.planner.split import raw_of, split
from innet.costs.hardware import TRIES, hardware
from innet.costs.model import Network, Prediction
from innet.deployment import Deployment
from innet.operators.acquire import acquired
from innet.operators.deliver import Deliver
from innet.payload.sizes import sizes
from innet.placement.agenda import Agenda
from innet.placement.expected import Loads, Round
from innet.placement.place import Choice, Weighed, World, arranged, place, predicted
from innet.placement.placement import Placement
from innet.placement.statistics import GUESS, Statistics
from innet.placement.timing import agenda_of, longest_round
from innet.program.compile import compile_programs
from innet.program.footprint import Footprint, footprints
from innet.program.program import MoteProgram
from innet.routing.choose import choose_tree
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class Placing:
    """`weighed` has a decision for each fold; `world` is what it was chosen for, with the round of its agenda."""

    placement: Placement
    weighed: tuple[Weighed, ...]
    agenda: Agenda
    world: World
    programs: tuple[MoteProgram, ...]

    def predicted(self, statistics: Statistics | None = None) -> Prediction:
        """What a round of it uses; with other statistics than it was chosen for, if some are given."""
        return predicted(self.placement, replace(self.world, statistics=statistics or self.world.statistics))

    @property
    def footprints(self) -> dict[int, Footprint]:
        """The memory of each mote."""
        world = self.world
        loads = Loads.of(self.placement, world.schedules, world.sizes, world.round, world.statistics)
        return footprints(self.programs, loads, self.placement.tree)


@dataclass(frozen=True, slots=True)
class Asked:
    """A query that is to be placed: `root` is its plan's tree after the rewrites."""

    plan: Plan
    root: Node

    @property
    def needs(self) -> list[Need]:
        """What it asks of the sensed extents; nothing, if motes have nothing to do with it."""
        found = [acquire for operator in collected(self.root) for acquire in acquired(operator).values()]
        return [Need(each.extent, frozenset(each.sampled), each.interval) for each in found]


def placing(
    asked: Sequence[Asked],
    deployment: Deployment,
    catalog: Catalog,
    statistics: Statistics = GUESS,
    moves: Moves = Moves.PLANNED,
) -> Placing | None:
    """All of them together; None where no mote has anything to do with any.

    ScheduleError where motes cannot sample what they need, PlacementError where no agenda has time for what they send,
    ProgramError where what is to run cannot be said in programs. Whether it fits into memory, `footprints` says.
    """
    needs = [need for each in asked for need in each.needs]
    if not needs:
        return None
    delivered, choices = _moving(asked, deployment, catalog, moves)
    tree = choose_tree(deployment.topology, deployment.gateways)
    schedules = share(needs, catalog, NOTHING, 0).schedules
    within = [each.plan.asked.deliver_within for each in asked if each.plan.asked.deliver_within is not None]
    within_ms = min(within) * catalog.tick_ms if within else None
    round = longest_round(gcd(*(need.every for need in needs)), catalog.tick_ms, within_ms)
    world = world_of(deployment, catalog, tree, deployment.topology, schedules, round)
    world = replace(world, statistics=statistics)
    if moves is Moves.EVERYTHING:
        placement, weighed = arranged(delivered, choices, range(len(choices)), world, {}), ()
    else:
        placement, weighed = place(delivered, choices, world)
    agenda = agenda_of(placement, world, within_ms)
    world = replace(world, round=Round(agenda.period // round.interval, round.interval))
    programs = compile_programs(placement.placed, schedules.values())
    return Placing(placement, weighed, agenda, world, tuple(programs))


def _moving(
    asked: Sequence[Asked], deployment: Deployment, catalog: Catalog, moves: Moves
) -> tuple[list[Deliver], list[Choice]]:
    """What is delivered in any case, and what may be folded."""
    if moves is Moves.NOTHING:
        return [operator for each in asked for operator in collected(each.root)], []
    raw = raw_of(deployment, catalog)
    found = [split(each.plan, each.root, raw) for each in asked]
    choices = dict.fromkeys(Choice(feed.fold, feed.instead) for each in found for feed in each.feeds)
    return [operator for each in found for operator in each.readings], list(choices)


def world_of(
    deployment: Deployment,
    catalog: Catalog,
    tree: RoutingTree,
    topology: Topology,
    schedules: Mapping[int, Schedule],
    round: Round,
) -> World:
    """What a placement is chosen for, on the motes of a deployment with the links that are known now."""
    motes = deployment.motes
    kinds = {number: hardware(site.hardware) for number, site in motes.items()}
    batteries = {number: site.battery for number, site in motes.items()}
    names = {sampling.extent for schedule in schedules.values() for sampling in schedule.samplings}
    extents = [extent for extent in catalog if extent.name in names]
    samples = {
        (site, attribute.name): (spec.sample_ms, spec.sample_ma)
        for extent in extents
        for attribute in extent.schema
        for site in extent.sites
        if (spec := motes[site].sensors.get(attribute.sensor or attribute.name))
    }
    sites = {extent.name: extent.sites for extent in extents}
    network = Network(tree, topology, kinds, batteries, TRIES)
    return World(network, sites, schedules, sizes(), round, catalog.tick_ms, samples)
