"""Agendas: the network as placements are chosen for it, and when the radios of its motes are on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import gcd

from acquisition.schedule import Schedule
from acquisition.scheduling import Need
from basestation.planner.network import world_of
from basestation.queries import Query
from basestation.world import World
from innet.errors import PlacementError
from innet.payload import Duty
from innet.placement.place import World as Network
from innet.placement.placement import Placed, Placement
from innet.placement.timing import agenda_of, longest_round
from innet.routing.choose import choose_tree


def network_of(
    world: World, queries: Iterable[Query], needs: Iterable[Need], schedules: Mapping[int, Schedule]
) -> Network:
    """What placements are chosen for: links as they were told, or as they are declared while some sites are not in the tree.

    A round is as long as all of the queries allow.
    """
    deployment, tree, topology = world.deployment, world.tree, world.topology
    declared = choose_tree(deployment.topology, deployment.gateways)
    if (schedules.keys() & declared.parent.keys()) - tree.parent.keys():
        tree, topology = declared, deployment.topology
    round = longest_round(gcd(*(need.every for need in needs)), world.catalog.tick_ms, within_ms(world, queries))
    return world_of(deployment, world.catalog, tree, topology, schedules, round, world.statistics)


def duties(world: World, placed: Iterable[Placed], schedules: Mapping[int, Schedule]) -> dict[int, Duty]:
    """The agenda of each mote in the tree; of none where no agenda has time for what motes send: they stay awake then."""
    queries = [query for query in world.queries.values() if query.needs]
    if not queries or not world.tree.parent:
        return {}
    reached = tuple(replace(p, sites=tuple(s for s in p.sites if s in world.tree.parent)) for p in placed)
    network = network_of(world, queries, [need for query in queries for need in query.needs], schedules)
    known = replace(network.network, tree=world.tree, topology=world.topology)
    try:
        agenda = agenda_of(Placement(world.tree, reached), replace(network, network=known), within_ms(world, queries))
    except PlacementError:
        return {}
    return {site: Duty.of(each, agenda.period_ms) for site, each in agenda.sites.items()}


def within_ms(world: World, queries: Iterable[Query]) -> int | None:
    """How soon what is sampled has to be here; None where some query does not let it wait for a later epoch."""
    within = [query.plan.asked.deliver_within for query in queries]
    return None if None in within or not within else min(within) * world.catalog.tick_ms
