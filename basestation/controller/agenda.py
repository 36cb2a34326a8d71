"""Agendas: the network as placements are chosen for it, and when the radios of its motes are on."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import gcd

from acquisition.schedule import Schedule
from acquisition.schedule_builder import SamplingNeed
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.world import World
from basestation.planner.placement_problem import build_placement_problem
from innet.errors import PlacementError
from innet.placement.agenda import MAX_FIRST_ROUND, Agenda
from innet.placement.agenda_scheduler import longest_round, schedule_placement
from innet.placement.placement import PlacedOperator, Placement
from innet.placement.placement_search import PlacementProblem as Network
from innet.placement.slot_rounds import longest_pause
from innet.routing.parent_selection import choose_tree

ROUNDS_PER_HOP, ROUNDS_FOR_FRAMES = 1, 6
"""So many rounds for each hop, and so many for the frames behind the first, from the one on in which its turn is to ask: then all
motes have been told. Three frames are usual; in the office, six hops and half of all attempts in vain, it takes up to 13 of 17
rounds until all have said so."""


def current_placement_problem(
    world: World, queries: Iterable[QueryRecord], needs: Iterable[SamplingNeed], schedules: Mapping[int, Schedule]
) -> Network:
    """What placements are chosen for: links as they were told, or as they are declared while some sites are not in the tree.

    A round is as long as all of the queries allow.
    """
    deployment, tree, topology = world.deployment, world.tree, world.topology
    declared = choose_tree(deployment.topology, deployment.gateways)
    if (schedules.keys() & declared.parent.keys()) - tree.parent.keys():
        tree, topology = declared, deployment.topology
    round = longest_round(
        gcd(*(need.every for need in needs)), world.catalog.tick_ms, delivery_bound_ms(world, queries)
    )
    return build_placement_problem(deployment, world.catalog, tree, topology, schedules, round, world.statistics)


def with_agenda(world: World, placed: Iterable[PlacedOperator], schedules: Mapping[int, Schedule], now: int) -> World:
    """The world with the agenda of the motes; or with why there is none, and then they are awake."""
    try:
        found, awake_reason = find_agenda(world, placed, schedules, now), None
    except PlacementError as why:
        found, awake_reason = None, str(why)
    return replace(world.with_agenda(found, now), awake_reason=awake_reason)


def find_agenda(
    world: World, placed: Iterable[PlacedOperator], schedules: Mapping[int, Schedule], now: int
) -> Agenda | None:
    """The agenda of the motes in the tree, which may be the one that they have.

    Another one for the same tree begins when all have been told; until then they go on with the one before, and nobody is
    told a third. One that was made in this clock tick nobody knows yet. None where motes are to be awake; PlacementError, with
    the figures, where no agenda has time for all that is to be sent.
    """
    queries, before = [query for query in world.live.values() if query.needs], world.agenda
    if not (world.duty_cycled and queries and world.tree.parent):
        return None
    same_tree, unknown = _of_its_tree(world), world.agenda_tick == now
    if must_defer(world, now):
        return before
    reached = tuple(replace(p, sites=tuple(s for s in p.sites if s in world.tree.parent)) for p in placed)
    network = current_placement_problem(world, queries, [need for query in queries for need in query.needs], schedules)
    known = replace(network.network, tree=world.tree, topology=world.topology)
    found = schedule_placement(
        Placement(world.tree, reached), replace(network, network=known), delivery_bound_ms(world, queries)
    )
    if not same_tree or replace(found, first=before.first) == before:
        return replace(found, first=before.first) if same_tree else found
    first = -(-(before.begin if unknown else _told(world, now)) // found.period)
    if first > MAX_FIRST_ROUND:
        raise PlacementError(
            f"motes count {MAX_FIRST_ROUND:,} rounds; of {found.period_ms:,} ms there were more since tick 0"
        )
    return replace(found, first=first)


def is_agenda_pending(world: World, now: int) -> bool:
    """Whether motes have been told of an agenda that has not begun."""
    return world.agenda is not None and now < world.agenda.begin


def must_defer(world: World, now: int) -> bool:
    """Whether what motes are to do besides is told when the agenda has begun that they are being told of, for it has no room in that."""
    return is_agenda_pending(world, now) and world.agenda_tick != now and _of_its_tree(world)


def latest_begin(world: World, query: QueryRecord, now: int) -> int:
    """The tick by which motes have begun with what waits for an agenda now, for a query; a round is no longer than it allows."""
    interval = gcd(*(need.every for need in query.needs))
    round = longest_round(interval, world.catalog.tick_ms, delivery_bound_ms(world, [query]))
    return _told(world, world.agenda.begin) + round.ticks


def _of_its_tree(world: World) -> bool:
    agenda = world.agenda
    return agenda is not None and {n: each.parent for n, each in agenda.sites.items()} == dict(world.tree.parent)


def _told(world: World, now: int) -> int:
    """The tick at which all have been told what they are told from now on."""
    hops = max(map(world.tree.depth, world.tree.parent))
    return now + (world.agenda.rounds.asks + ROUNDS_PER_HOP * hops + ROUNDS_FOR_FRAMES) * world.agenda.period


def delivery_bound_ms(world: World, queries: Iterable[QueryRecord]) -> int | None:
    """How soon what is sampled has to be here; None where some query does not let it wait for a later epoch."""
    within = [query.plan.options.deliver_within for query in queries]
    return None if None in within or not within else min(within) * world.catalog.tick_ms


def round_ticks(world: World) -> int:
    """The ticks of a round: that of the agenda, or one epoch of motes that are awake."""
    if world.agenda is not None:
        return world.agenda.period
    return gcd(*(need.every for query in world.live.values() for need in query.needs)) or 1


def transit_ticks(query: QueryRecord, world: World) -> int:
    """For how many ticks what motes have measured for a query may wait in them, be on its way, and is waited for."""
    pause = max(
        (longest_pause(each) for each in (*query.all_deliveries, *(fed.fold for fed in query.all_partial_sources))),
        default=0,
    )
    wait = max((world.catalog.find(need.extent).wait for need in query.needs), default=0)
    return pause + wait + 2 * round_ticks(world)
