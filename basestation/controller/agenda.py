"""Agenda changes: when motes switch from one TDMA schedule to the next, and how long data may be in transit under it."""

from collections.abc import Mapping
from dataclasses import replace
from math import gcd

from basestation.controller.network_plan import NetworkPlan, PlanCache, delivery_bound_ms
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.world import World
from innet.errors import PlacementError
from innet.operators.identity_cache import cache_newest
from innet.placement.agenda import MAX_FIRST_ROUND, Agenda
from innet.placement.agenda_scheduler import longest_round
from innet.placement.placement import Placement
from innet.placement.slot_rounds import longest_pause

ROUNDS_PER_HOP, ROUNDS_FOR_FRAMES = 1, 6
"""An agenda reaches all motes within this many rounds per hop plus this many for the frames after the first one, counted from
the round in which it is a mote's turn to ask. Three frames are usual. Measured in the office with six hops and half of all
attempts lost: all motes confirm within 13 of 17 rounds."""


def with_agenda(world: World, plan: NetworkPlan, plans: PlanCache) -> World:
    """The world with the agenda of a plan. If there is none, motes stay awake and the world has the reason."""
    try:
        found, awake_reason = find_agenda(world, plan, plans), None
    except PlacementError as why:
        found, awake_reason = None, str(why)
    return replace(world.with_agenda(found, plans.now), awake_reason=awake_reason)


def find_agenda(world: World, plan: NetworkPlan, plans: PlanCache) -> Agenda | None:
    """The agenda of the motes in the tree, or None where motes stay awake. It may be the one that they have.

    A different agenda for the same tree begins when all motes have received it. Until then they follow the one before, and
    receive no third one. An agenda computed in this very tick has not been sent yet, so it may be replaced.

    PlacementError, with the figures, if no agenda has time for all that has to be sent.
    """
    now, before = plans.now, world.agenda
    if not (world.duty_cycled and plan.queries and world.tree.parent):
        return None
    if must_defer(world, now):
        return before
    reached = tuple(replace(p, sites=tuple(s for s in p.sites if s in world.tree.parent)) for p in plan.requested)
    problem = plans.problem(world, plan.queries, plan.planned)
    network = replace(problem.network, tree=world.tree, topology=world.topology)
    placement = Placement(world.tree, reached)
    found = plans.agenda(placement, replace(problem, network=network), delivery_bound_ms(world, plan.queries))
    if before is None or not _has_tree_of(before, world):
        return found
    if replace(found, first=before.first) == before:
        return replace(found, first=before.first)
    unsent = world.agenda_tick == now
    first = -(-(before.begin if unsent else _received_by(world, before, now)) // found.period)
    if first > MAX_FIRST_ROUND:
        raise PlacementError(
            f"motes count {MAX_FIRST_ROUND:,} rounds; of {found.period_ms:,} ms there were more since tick 0"
        )
    return replace(found, first=first)


def is_agenda_pending(world: World, now: int) -> bool:
    """Whether motes have been sent an agenda that has not begun."""
    return world.agenda is not None and now < world.agenda.begin


def must_defer(world: World, now: int) -> bool:
    """Whether a change has to wait until the pending agenda has begun, which has no room for it."""
    agenda = world.agenda
    return agenda is not None and now < agenda.begin and world.agenda_tick != now and _has_tree_of(agenda, world)


def latest_begin(world: World, query: QueryRecord, pending: Agenda) -> int:
    """The tick by which motes have begun with a query that waits for a pending agenda. Its rounds bound the last wait."""
    interval = gcd(*(need.every for need in query.needs))
    round = longest_round(interval, world.catalog.tick_ms, delivery_bound_ms(world, [query]))
    return _received_by(world, pending, pending.begin) + round.ticks


def _has_tree_of(agenda: Agenda, world: World) -> bool:
    return {number: site.parent for number, site in agenda.sites.items()} == dict(world.tree.parent)


def _received_by(world: World, agenda: Agenda, now: int) -> int:
    """The tick at which all motes have received what is sent to them from now on under an agenda."""
    hops = max(map(world.tree.depth, world.tree.parent))
    return now + (agenda.rounds.poll_every + ROUNDS_PER_HOP * hops + ROUNDS_FOR_FRAMES) * agenda.period


def round_ticks(world: World) -> int:
    """The ticks of a round: the period of the agenda, or one epoch for motes that are awake."""
    if world.agenda is not None:
        return world.agenda.period
    return _common_interval(world.live)


@cache_newest
def _common_interval(live: Mapping[int, QueryRecord]) -> int:
    """The ticks of an epoch of all live queries; a station needs it in each look."""
    return gcd(*(need.every for query in live.values() for need in query.needs)) or 1


def transit_ticks(query: QueryRecord, world: World) -> int:
    """How many ticks after it was measured a reading for a query may still arrive and is waited for."""
    pause = max(map(longest_pause, query.operators), default=0)
    wait = max((world.catalog.extents[need.extent].wait for need in query.needs), default=0)
    return pause + wait + 2 * round_ticks(world)
