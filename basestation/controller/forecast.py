"""Outlook: where and when on the motes of a deployment all that runs together would run, and what that would use.

It is what a station decides that is asked one query after the other; no mote has been asked anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog
from basestation.controller.agenda import current_placement_problem, delivery_bound_ms
from basestation.controller.aggregate_placement import AggregatePlacement, place_aggregates
from basestation.controller.query_lifecycle import QueryRecord
from basestation.controller.requirements import compile_all, merge_schedules, place_all, split_plan
from basestation.controller.world import World
from basestation.execution.operator_builder import last_tick
from basestation.planner.plan import Plan
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.planner.rewriter import rewrite
from innet.costs.burst_loss import NO_BURSTS, BurstLoss
from innet.costs.energy_model import EnergyPrediction
from innet.deployment import Deployment
from innet.errors import PlacementError, ProgramError
from innet.placement.agenda import Agenda
from innet.placement.agenda_scheduler import schedule_placement
from innet.placement.load_model import NetworkLoads, Round
from innet.placement.placement import Placement
from innet.placement.placement_search import FoldDecision, predict_energy
from innet.placement.placement_search import PlacementProblem as Network
from innet.placement.statistics import GUESS, Statistics
from innet.program.footprint import Footprint, measure_footprints
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree

INFEASIBLE = ScheduleError, PlacementError, ProgramError
"""Why queries cannot be run on the motes of a deployment."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """`weighed` has a decision for each fold, `refused` why some query is fed by none though it might be; `asks` is whether
    motes ask conditions, for which some mote may have no room; `network` is what it is for, with the round of its agenda."""

    placement: Placement
    weighed: tuple[FoldDecision, ...]
    refused: tuple[str, ...]
    asks: bool
    agenda: Agenda
    network: Network
    programs: tuple[MoteProgram, ...]

    def predicted(self, statistics: Statistics | None = None, climate: BurstLoss = NO_BURSTS) -> EnergyPrediction:
        """What a round of it uses; with other statistics than it was chosen with, if some are given, and with bad times,
        of which no station knows that chooses."""
        network = replace(self.network.network, climate=climate)
        statistics = statistics or self.network.statistics
        return predict_energy(self.placement, replace(self.network, statistics=statistics, network=network))

    @property
    def footprints(self) -> dict[int, Footprint]:
        """The memory of each mote."""
        network = self.network
        loads = NetworkLoads.of(self.placement, network.schedules, network.sizes, network.round, network.statistics)
        return measure_footprints(self.programs, loads, self.placement.tree)


def initial_world(deployment: Deployment, catalog: Catalog, statistics: Statistics = GUESS,
           moves: PushdownPolicy = PushdownPolicy.PLANNED) -> World:  # fmt: skip
    """What a station knows that has heard of all declared links, and has not been asked anything."""
    tree = choose_tree(deployment.topology, deployment.gateways)
    return World(catalog, deployment, moves, True, topology=deployment.topology, tree=tree, statistics=statistics)


def add_query(plan: Plan, number: int, world: World, now: int, text: str = "") -> tuple[World, AggregatePlacement]:
    """A world in which one query more runs, and what was decided for it."""
    better, _ = rewrite(plan)
    feeding = place_aggregates(
        QueryRecord(number, text, plan, last_tick=last_tick(plan.options, now), submitted_at=now),
        split_plan(plan, better.root, world),
        world,
        now,
    )
    return world.with_folds(feeding.begin).with_query(feeding.query), feeding


def make_forecast(world: World, feedings: Sequence[AggregatePlacement] = ()) -> Forecast | None:
    """What all that runs together is and uses, on the tree there is."""
    queries = [query for query in world.live.values() if query.needs]
    if not queries:
        return None
    needs = [need for query in queries for need in query.needs]
    scheduled = merge_schedules(world, 0)
    wanted = place_all(world)
    running, programs = compile_all(wanted, world, scheduled)
    network = current_placement_problem(world, queries, needs, scheduled.schedules)
    tree = network.network.tree
    unreached = tree.unreached(site for each in running for site in each.sites)
    placement = Placement(tree, tuple(running), unreached)
    agenda = schedule_placement(placement, network, delivery_bound_ms(world, queries))
    interval = network.round.interval
    return Forecast(
        placement, tuple(weighed for feeding in feedings for weighed in feeding.weighed),
        tuple(feeding.refused for feeding in feedings if feeding.refused),
        all(each in running for each in wanted if not each.number), agenda,
        replace(network, round=Round(agenda.period // interval, interval)), tuple(programs),
    )  # fmt: skip
