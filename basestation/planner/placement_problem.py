"""Builds the input of operator placement from a deployment."""

from collections.abc import Mapping

from acquisition.extent import Catalog
from acquisition.schedule import Schedule
from innet.costs.energy_model import NetworkModel
from innet.costs.hardware import MAX_ATTEMPTS, load_hardware
from innet.deployment import Deployment
from innet.payload.frame_sizes import make_frame_sizes
from innet.placement.load_model import Round
from innet.placement.placement_problem import PlacementProblem
from innet.placement.statistics import GUESS, Statistics
from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


def build_placement_problem(
    deployment: Deployment,
    catalog: Catalog,
    tree: RoutingTree,
    topology: Topology,
    schedules: Mapping[int, Schedule],
    round: Round,
    statistics: Statistics = GUESS,
) -> PlacementProblem:
    """The placement problem for the motes of a deployment and its currently known links."""
    motes = deployment.motes
    kinds = {number: load_hardware(site.hardware) for number, site in motes.items()}
    batteries = {number: site.battery for number, site in motes.items()}
    names = {sampling.extent for schedule in schedules.values() for sampling in schedule.samplings}
    extents = [extent for extent in catalog if extent.name in names]
    samples = {
        (site, attribute.name): (spec.sample_ms, spec.sample_ma)
        for extent in extents
        for attribute in extent.schema
        for site in extent.sites or ()
        if (spec := motes[site].sensors.get(attribute.sensor or attribute.name))
    }
    sites = {extent.name: extent.sites or () for extent in extents}
    network = NetworkModel(tree, topology, kinds, batteries, MAX_ATTEMPTS)
    return PlacementProblem(
        network, sites, schedules, make_frame_sizes(deployment.mtu), round, catalog.tick_ms, samples, statistics
    )
