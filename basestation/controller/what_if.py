"""Planning without motes: the plan that a station would make for some queries if all declared links were known."""

from collections.abc import Sequence

from acquisition.extent import Catalog
from basestation.controller.aggregate_placement import AggregatePlacement, Candidate, add_query
from basestation.controller.lifetime import check_lifetimes, fit_lifetime
from basestation.controller.network_plan import NetworkPlan, PlanCache
from basestation.controller.reoptimization import plan_jointly
from basestation.controller.world import World
from basestation.planner.plan import Plan
from basestation.planner.pushdown_policy import PushdownPolicy
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics
from innet.routing.parent_selection import choose_tree


def initial_world(
    deployment: Deployment,
    catalog: Catalog,
    statistics: Statistics = GUESS,
    pushdown: PushdownPolicy = PushdownPolicy.PLANNED,
) -> World:
    """The world of a duty-cycled station that knows all declared links and has no queries."""
    tree = choose_tree(deployment.topology, deployment.gateways)
    return World(catalog, deployment, pushdown, True, topology=deployment.topology, tree=tree, statistics=statistics)


def plan_what_if(
    queries: Sequence[Plan],
    deployment: Deployment,
    catalog: Catalog,
    statistics: Statistics = GUESS,
    pushdown: PushdownPolicy = PushdownPolicy.PLANNED,
) -> NetworkPlan | None:
    """Plan queries as if submitted in this order in one clock tick; None if motes have nothing to do for any of them.

    ScheduleError if motes cannot sample what they need; PlacementError if no agenda has time for what they send, or motes do
    not last as long as a query asks; ProgramError if a mote has no room.
    """
    plans, placements = PlanCache(0), dict[int, AggregatePlacement]()
    world = initial_world(deployment, catalog, statistics, pushdown)
    for query in queries:
        added = add_query(fit_lifetime(query, world, plans), world, plans)
        candidate = plan_jointly(Candidate(added.world, {**placements, **added.placements}), plans)
        world, placements = candidate.world, dict(candidate.placements)
        check_lifetimes(world, plans)
    plan = plans.plan(world)
    if not plan.queries:
        return None
    plan.check()
    decisions = tuple(decision for placement in placements.values() for decision in placement.decisions)
    refusals = tuple(placement.refusal for placement in placements.values() if placement.refusal)
    return plan.with_decisions(decisions, refusals)
