"""Outlook: where and when on the motes of a deployment all that runs together would run, and what that would use.

It is what a station decides that is asked one query after the other; no mote has been asked anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from acquisition.errors import ScheduleError
from acquisition.extent import Catalog
from basestation.controller.agenda import network_of, within_ms
from basestation.controller.aggregate_placement import Feeding, fed
from basestation.controller.query_lifecycle import Query
from basestation.controller.requirements import compiled, inside, placed, shared
from basestation.controller.world import World
from basestation.execution.operator_builder import last_tick
from basestation.planner.plan import Plan
from basestation.planner.pushdown_policy import Moves
from basestation.planner.rewriter import rewrite
from innet.costs.burst_loss import CALM, Climate
from innet.costs.energy_model import Prediction
from innet.deployment import Deployment
from innet.errors import PlacementError, ProgramError
from innet.placement.agenda import Agenda
from innet.placement.agenda_scheduler import agenda_of
from innet.placement.load_model import Loads, Round
from innet.placement.placement import Placement
from innet.placement.placement_search import Weighed, predicted
from innet.placement.placement_search import World as Network
from innet.placement.statistics import GUESS, Statistics
from innet.program.footprint import Footprint, footprints
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree

CANNOT = ScheduleError, PlacementError, ProgramError
"""Why queries cannot be run on the motes of a deployment."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """`weighed` has a decision for each fold, `refused` why some query is fed by none though it might be; `asks` is whether
    motes ask conditions, for which some mote may have no room; `network` is what it is for, with the round of its agenda."""

    placement: Placement
    weighed: tuple[Weighed, ...]
    refused: tuple[str, ...]
    asks: bool
    agenda: Agenda
    network: Network
    programs: tuple[MoteProgram, ...]

    def predicted(self, statistics: Statistics | None = None, climate: Climate = CALM) -> Prediction:
        """What a round of it uses; with other statistics than it was chosen with, if some are given, and with bad times,
        of which no station knows that chooses."""
        network = replace(self.network.network, climate=climate)
        statistics = statistics or self.network.statistics
        return predicted(self.placement, replace(self.network, statistics=statistics, network=network))

    @property
    def footprints(self) -> dict[int, Footprint]:
        """The memory of each mote."""
        network = self.network
        loads = Loads.of(self.placement, network.schedules, network.sizes, network.round, network.statistics)
        return footprints(self.programs, loads, self.placement.tree)


def untold(deployment: Deployment, catalog: Catalog, statistics: Statistics = GUESS,
           moves: Moves = Moves.PLANNED) -> World:  # fmt: skip
    """What a station knows that has heard of all declared links, and has not been asked anything."""
    tree = choose_tree(deployment.topology, deployment.gateways)
    return World(catalog, deployment, moves, True, topology=deployment.topology, tree=tree, statistics=statistics)


def added(plan: Plan, number: int, world: World, now: int, text: str = "") -> tuple[World, Feeding]:
    """A world in which one query more runs, and what was decided for it."""
    better, _ = rewrite(plan)
    feeding = fed(
        Query(number, text, plan, last=last_tick(plan.asked, now), since=now),
        inside(plan, better.root, world),
        world,
        now,
    )
    return world.with_folds(feeding.begin).with_query(feeding.query), feeding


def outlook(world: World, feedings: Sequence[Feeding] = ()) -> Outlook | None:
    """What all that runs together is and uses, on the tree there is."""
    queries = [query for query in world.live.values() if query.needs]
    if not queries:
        return None
    needs = [need for query in queries for need in query.needs]
    scheduled = shared(world, 0)
    wanted = placed(world)
    running, programs = compiled(wanted, world, scheduled)
    network = network_of(world, queries, needs, scheduled.schedules)
    tree = network.network.tree
    unreached = tree.unreached(site for each in running for site in each.sites)
    placement = Placement(tree, tuple(running), unreached)
    agenda = agenda_of(placement, network, within_ms(world, queries))
    interval = network.round.interval
    return Outlook(
        placement, tuple(weighed for feeding in feedings for weighed in feeding.weighed),
        tuple(feeding.refused for feeding in feedings if feeding.refused),
        all(each in running for each in wanted if not each.number), agenda,
        replace(network, round=Round(agenda.period // interval, interval)), tuple(programs),
    )  # fmt: skip
