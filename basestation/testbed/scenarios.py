"""Scenarios as a station sees them: their deployment and radio, and the configuration of motes for a placement."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from acquisition.schedule import Schedule
from basestation.controller.network_plan import NetworkPlan
from basestation.testbed.recorded_world import add_recorded_world
from innet.costs.burst_loss import NO_BURSTS, BurstLoss
from innet.deployment import Deployment
from innet.payload import MoteAssignment, RadioSchedule, group_by_site
from simulator import measurement, scenario
from simulator.measurement import Measurement
from simulator.mote_config import MoteConfig
from simulator.scenario import Scenario, default_scenario
from simulator.vector_engine.layout import NotVectorisableError

__all__ = [
    "NotVectorisableError",
    "Scenario",
    "burst_loss_of",
    "deployment_of",
    "make_mote_configs",
    "measure",
    "read_scenario",
    "scenario_around",
]


def read_scenario(path: str | Path) -> Scenario:
    """The scenario in a file, with the world of its recording if it has one.

    Raises ConfigError with every fault of the file, DiagnosticError for a schema that does not fit, and OSError.
    """
    return add_recorded_world(scenario.read_scenario(path))


def scenario_around(deployment: Deployment, path: str | None) -> Scenario:
    """A scenario without queries and faults for a deployment.

    Its world and its radio are those of the scenario file at `path`, or a default if that is None. Raises ConfigError and
    OSError for the file.
    """
    around = default_scenario(deployment)
    if path is None:
        return around
    file = read_scenario(path)
    return replace(around, name=file.name, begin_ms=file.begin_ms, seed=file.seed, world=file.world,
                   delivery=file.delivery, bursts=file.bursts, source=file.source)  # fmt: skip


def deployment_of(of: Scenario) -> Deployment:
    """The deployment of a scenario, with the links that its motes report in good times."""
    return replace(of.deployment, links=of.links)


def burst_loss_of(of: Scenario) -> BurstLoss:
    """The share of rounds in which a link of a scenario is bad, in the long run, and what it delivers then."""
    bursts = of.bursts
    return BurstLoss(bursts.begin / (bursts.begin + bursts.end), bursts.left) if bursts else NO_BURSTS


def make_mote_configs(placed: NetworkPlan) -> dict[int, MoteConfig]:
    """The configuration of each mote of a tree."""
    schedules, tree, agenda = placed.problem.schedules, placed.placement.tree, placed.agenda
    programs = group_by_site(placed.programs)
    return {
        site: MoteConfig(
            schedules.get(site, Schedule(site, 1, ())),
            MoteAssignment(programs.get(site, ()), parent, RadioSchedule.of(agenda, site)),
            agenda.tick_ms,
        )
        for site, parent in tree.parent.items()
    }


def measure(
    placed: NetworkPlan, world: Scenario, seed: int, rounds: int, on_progress: Callable[[int], None]
) -> Measurement:
    """Simulate the motes of a placement for so many rounds, in the world and on the radio of a scenario."""
    configs = make_mote_configs(placed)
    return measurement.measure(configs, placed.placement.placed, world, seed, rounds, on_progress)
