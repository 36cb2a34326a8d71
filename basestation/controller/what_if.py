"""Placing: what a station would have the motes of a deployment do for some queries, if it had heard of all declared links."""

from collections.abc import Sequence

from acquisition.extent import Catalog
from basestation.controller.forecast import Forecast, add_query, initial_world, make_forecast
from basestation.controller.lifetime import check_lifetimes, fit_lifetime
from basestation.controller.reoptimization import plan_jointly
from basestation.planner.plan import Plan
from basestation.planner.pushdown_policy import PushdownPolicy
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics


def plan_what_if(
    plans: Sequence[Plan],
    deployment: Deployment,
    catalog: Catalog,
    statistics: Statistics = GUESS,
    moves: PushdownPolicy = PushdownPolicy.PLANNED,
) -> Forecast | None:
    """All of them, asked in this order in one clock tick, and so decided about together; None where no mote has anything to do with any.

    ScheduleError where motes cannot sample what they need, PlacementError where no agenda has time for what they send,
    or motes would not last as long as some query asks, ProgramError where what is to run cannot be said in programs.
    """
    world, feedings = initial_world(deployment, catalog, statistics, moves), {}
    for number, plan in enumerate(plans, 1):
        world, feeding = add_query(fit_lifetime(plan, world, 0), number, world, 0)
        world, feedings = plan_jointly(world, {**feedings, number: feeding}, 0)
        check_lifetimes(world)
    return make_forecast(world, list(feedings.values()))
