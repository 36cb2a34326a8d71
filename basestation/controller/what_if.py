"""Placing: what a station would have the motes of a deployment do for some queries, if it had heard of all declared links."""

from collections.abc import Sequence

from acquisition.extent import Catalog
from basestation.controller.forecast import Outlook, added, outlook, untold
from basestation.controller.lifetime import check_promises, lasting
from basestation.controller.reoptimization import together
from basestation.planner.plan import Plan
from basestation.planner.pushdown_policy import Moves
from innet.deployment import Deployment
from innet.placement.statistics import GUESS, Statistics


def placing(
    plans: Sequence[Plan],
    deployment: Deployment,
    catalog: Catalog,
    statistics: Statistics = GUESS,
    moves: Moves = Moves.PLANNED,
) -> Outlook | None:
    """All of them, asked in this order in one clock tick, and so decided about together; None where no mote has anything to do with any.

    ScheduleError where motes cannot sample what they need, PlacementError where no agenda has time for what they send,
    or motes would not last as long as some query asks, ProgramError where what is to run cannot be said in programs.
    """
    world, feedings = untold(deployment, catalog, statistics, moves), {}
    for number, plan in enumerate(plans, 1):
        world, feeding = added(lasting(plan, world, 0), number, world, 0)
        world, feedings = together(world, {**feedings, number: feeding}, 0)
        check_promises(world)
    return outlook(world, list(feedings.values()))
