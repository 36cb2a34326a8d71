"""Networks and operators for tests of placement, and merged partials."""

from acquisition.schedule import Sampling, Schedule, SensorChannel
from acquisition.ticks import EpochGrid
from innet.costs.energy_model import NetworkModel
from innet.costs.hardware import Hardware, Processor, Radio, Sensing
from innet.operators.acquire import Acquire
from innet.operators.deliver import Deliver
from innet.operators.fold import Fold
from innet.operators.mote_expression import MoteConstant, SensorValue, SiteNumber, make_instruction
from innet.operators.mote_select import MoteSelect
from innet.operators.slices import SlicePattern
from innet.partials import merge_partials
from innet.payload.frame_sizes import make_frame_sizes
from innet.placement.load_model import Round
from innet.placement.placement_problem import PlacementProblem
from innet.routing.parent_selection import choose_tree
from innet.routing.topology import Topology

HARDWARE = Hardware(
    "test",
    "a mote with round figures",
    3.0,
    Radio(250_000, 17, 11, 102, 17.4, 19.7, 0.0, 0.6, 0.2),
    Processor(1.8, 0.005, 15.0, 1024, 2048),
    Sensing(10.0, 0.5),
    {},
)
TEMP, VOLT = SensorValue("field", "temp"), SensorValue("field", "volt")
ACQUIRE = Acquire("field", 10, ("temp",))
WARM = MoteSelect(ACQUIRE, make_instruction("GT", TEMP, MoteConstant(2050)))


def mean(*keys, child=ACQUIRE, slices=None, kind="SUM"):
    """Return a fold of the mean temperature."""
    return Fold(child, "field", slices or SlicePattern.cut(60, (0,), 10), keys, ((kind, TEMP),))


def deliver(child=ACQUIRE, *sent):
    return Deliver(child, "field", sent or ("temp",))


BY_SITE, BY_VOLT = SiteNumber(), VOLT


def world_of(ratios, epochs=1, sites=None, attributes=("temp",)):
    """Return a problem in which every mote of the links samples the field; 0 is the gateway."""
    topology = Topology.of_ratios(ratios)
    tree = choose_tree(topology, (0,))
    motes = sorted(topology.motes - {0})
    sites = tuple(motes if sites is None else sites)
    sampling = Sampling(0, "field", EpochGrid(0, 10), tuple(SensorChannel(name, 1, 16) for name in attributes))
    schedules = {site: Schedule(site, 1, (sampling,)) for site in sites}
    network = NetworkModel(tree, topology, dict.fromkeys(motes, HARDWARE), dict.fromkeys(motes, 20_000.0), 8)
    samples = {(site, name): (10.0, 0.5) for site in motes for name in attributes}
    return PlacementProblem(network, {"field": sites}, schedules, make_frame_sizes(), Round(epochs, 10), 1000, samples)


def line(count, ratio=1.0):
    """Return links 0 - 1 - 2 - … in which each mote hears the next only."""
    return {pair: ratio for n in range(count) for pair in ((n, n + 1), (n + 1, n))}


def merged(partials, kinds, bitmap):
    """Return one partial per slice and group, in the order of first appearance."""
    held = {}
    for partial in partials:
        place = partial.slice, partial.group, partial.bare
        held[place] = merge_partials(held[place], partial, kinds, bitmap) if place in held else partial
    return list(held.values())
