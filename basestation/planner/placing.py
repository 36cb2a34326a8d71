"""Placing: where and when on the motes of a deployment the parts of a query would run, and what that would use.

All of it is known beforehand: the links are those of the deployment, and no mote has been asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import gcd

from acquisition.extent import Catalog
from acquisition.schedule import Schedule
from acquisition.scheduling import NOTHING, Need, share
from basestation.algebra.node import Node
from basestation.planner.lower import collected
from basestation.planner.plan import Plan
from basestation.planner.split import raw_of, split
from innet.costs.hardware import TRIES, hardware
from innet.costs.model import Network, Prediction
from innet.deployment import Deployment
from innet.operators.acquire import acquired
from innet.payload.sizes import sizes
from innet.placement.agenda import Agenda
from innet.placement.expected import Round
from innet.placement.place import Choice, Weighed, World, place, predicted
from innet.placement.placement import Placement
from innet.placement.timing import agenda_of, longest_round
from innet.routing.choose import choose_tree
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class Placing:
    """`weighed` has a decision for each fold; `prediction` is of one round of the agenda."""

    placement: Placement
    weighed: tuple[Weighed, ...]
    agenda: Agenda
    prediction: Prediction


def placing(plan: Plan, root: Node, deployment: Deployment, catalog: Catalog) -> Placing | None:
    """`root` is the plan's tree after its rewrites; None for a query that no mote has anything to do with.

    ScheduleError where motes cannot sample what it needs, PlacementError where no agenda has time for what they send.
    """
    needs = [
        Need(a.extent, frozenset(a.sampled), a.interval)
        for operator in collected(root)
        for a in acquired(operator).values()
    ]
    if not needs:
        return None
    found = split(plan, root, raw_of(deployment, catalog))
    tree = choose_tree(deployment.topology, deployment.gateways)
    schedules = share(needs, catalog, NOTHING, 0).schedules
    within = plan.asked.deliver_within
    within_ms = None if within is None else within * catalog.tick_ms
    round = longest_round(gcd(*(need.every for need in needs)), catalog.tick_ms, within_ms)
    world = world_of(deployment, catalog, tree, deployment.topology, schedules, round)
    choices = [Choice(feed.fold, feed.instead) for feed in found.feeds]
    placement, weighed = place(found.readings, choices, world)
    agenda = agenda_of(placement, world, within_ms)
    world = replace(world, round=Round(agenda.period // round.interval, round.interval))
    return Placing(placement, weighed, agenda, predicted(placement, world))


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
