"""The cost model predicts the energy of simulated motes: the office, collecting, mote by mote."""

import re

import pytest

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from innet.costs import energy_model
from innet.costs.hardware import MAX_ATTEMPTS
from innet.deployment.toml_reader import read_deployment
from innet.payload import MoteAssignment
from innet.placement.agenda import Activity
from innet.program.mote_program import MoteProgram
from innet.routing.parent_selection import choose_tree
from innet.routing.topology import Topology
from simulator.mote_config import MoteConfig
from tests.docs.pages import ROOT
from tests.simulator.networks import KIND, SENSORS, TICK_MS, Made, collecting, duties_along

ROUND_MS = 30_000
FRAME = 23  # bytes of a reading with two values of 16 bits, after the first few epochs, as the trace shows
INSTRUCTIONS = 7  # of `collecting` two channels
CHANNELS = tuple(SensorChannel("", sensor_code(sensor.name), 16) for sensor in SENSORS)


@pytest.fixture(scope="module")
def office():
    return read_deployment(ROOT / "examples/lab54/deployment.toml")


def made(links, tree, duties, rounds):
    sampling = Sampling(3, "", EpochGrid(0, ROUND_MS // TICK_MS), CHANNELS)
    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, (sampling,)),
            MoteAssignment((MoteProgram(mote, 3, 1, 2, collecting(2)),), parent, duties[mote]),
            TICK_MS,
        )
        for mote, parent in tree.parent.items()
    }
    return Made(configs, links, 7, None, 0, rounds)


def predicted(links, tree, duties):
    """Each mote has one frame of its own and forwards one of each mote below it."""
    below = dict.fromkeys((*tree.parent, *tree.roots), 0)
    for mote in tree.leaves_first:
        below[tree.parent[mote]] += 1 + below[mote]
    traffic = [energy_model.HopTraffic(mote, parent, 1, FRAME) for mote, parent in tree.parent.items()]
    traffic += [
        energy_model.HopTraffic(mote, parent, below[mote], FRAME, forwarded=True)
        for mote, parent in tree.parent.items()
    ]
    does = {}
    for mote, duty in duties.items():
        slots = [slot for slot in duty.slots if slot.activity is Activity.RECEIVE]
        sampled = sum(sensor.sample_nc for sensor in SENSORS) / 1_000
        does[mote] = energy_model.MoteWorkload(
            sampled, INSTRUCTIONS, sum(slot.length_ms for slot in slots), len(slots) + 1
        )
    network = energy_model.NetworkModel(tree, Topology.of_ratios(links), dict.fromkeys(duties, KIND), {}, MAX_ATTEMPTS)
    return energy_model.predict(network, does, traffic, ROUND_MS)


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize(
    "loss, share, allowed",
    [(0.0, 1.0, 0.001), (0.2, 1.0, 0.05), (0.2, 0.5, 0.05), (None, 1.0, 0.1), (None, 0.5, 0.2)],
    ids=["nothing is lost", "a fifth is lost", "… in slots half as long", "links of the office", "… half as long"],
)
def test_predicted_energy_equals_measured_energy(office, loss, share, allowed, counts):
    """`share` of a slot that would hold every attempt of every frame; None are the links of the office as they are."""
    tree = choose_tree(office.topology, office.gateways)
    links = office.links if loss is None else dict.fromkeys(office.links, 1 - loss)
    duties = duties_along(tree.parent, ROUND_MS, share, 500)
    rounds = counts(200, 1_000)
    trace, spent = made(links, tree, duties, rounds).swept()
    prediction = predicted(links, tree, duties)
    assert set(spent) == set(prediction.motes) and len(spent) == 54
    for mote, joules in spent.items():
        assert prediction.motes[mote].total * rounds == pytest.approx(joules, rel=allowed), mote
    if share == 1.0:
        tried = [int(attempts) for attempts in re.findall(r" sent .* attempts=(\d+)", str(trace))]
        assert prediction.total.frames * rounds == pytest.approx(len(tried), rel=0.02)
        assert prediction.total.attempts * rounds == pytest.approx(sum(tried), rel=0.02)
