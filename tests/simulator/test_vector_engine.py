"""The two speeds leave the same trace, byte for byte, and use the same energy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acquisition.schedule import Sampling, Schedule, SensorChannel, sensor_code
from acquisition.ticks import EpochGrid
from innet.payload import MoteAssignment
from innet.program.mote_program import MoteProgram
from simulator.mote_config import MoteConfig
from tests.simulator.join_networks import TEMPERATURE, VOLTAGE, Side, joining_networks
from tests.simulator.networks import TICK_MS, Made, collecting, duties_along, networks


@pytest.mark.promise("placement", "deterministic")
@given(made=networks(), chunks=st.integers(1, 3))
def test_both_engines_give_same_trace_and_energy(made, chunks):
    trace, spent = made.one_by_one()
    swept, spent_too = made.swept(min(chunks, made.rounds))
    assert str(swept) == str(trace)
    assert spent_too == spent


@pytest.mark.promise("deterministic")
@given(made=joining_networks(), chunks=st.integers(1, 3))
def test_both_engines_give_same_trace_for_joins_on_motes(made, chunks):
    trace, spent = made.one_by_one()
    swept, spent_too = made.swept(min(chunks, made.rounds))
    assert str(swept) == str(trace)
    assert spent_too == spent


@pytest.mark.promise("deterministic")
def test_readings_leave_in_order_of_sampling_numbers():
    left, right = (Side(Sampling(number, "", EpochGrid(0, 10), (channel,)), other, True, False, None)
                   for number, other, channel in ((3, 1, TEMPERATURE), (1, 3, VOLTAGE)))  # fmt: skip
    taking, duties = {4: (left,), 5: (right, left)}, duties_along({4: 0, 5: 0}, 10 * TICK_MS, 1.0, 20)
    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, tuple(side.own for side in sides)),
            MoteAssignment(tuple(side.program(mote, True, None) for side in sides), 0, duties[mote]),
            TICK_MS,
        )
        for mote, sides in taking.items()
    }
    made = Made(configs, {(4, 0): 1.0, (0, 4): 1.0, (5, 0): 1.0, (0, 5): 1.0}, 1, None, 0, 2)
    trace, _ = made.one_by_one()
    assert [e["sampling"] for e in trace.of("posted") if e.mote == 5] == [1, 3, 1, 3]
    assert str(made.swept()[0]) == str(trace)


def collecting_network(parents, links, rounds):
    sampling = Sampling(0, "", EpochGrid(0, 10), (SensorChannel("", sensor_code("temperature"), 16),))
    duties = duties_along(parents, 10 * TICK_MS, 1.0, 20)
    configs = {
        mote: MoteConfig(
            Schedule(mote, 1, (sampling,)),
            MoteAssignment((MoteProgram(mote, 0, 1, 1, collecting(1)),), parent, duties[mote]),
            TICK_MS,
        )
        for mote, parent in parents.items()
    }
    return Made(configs, links, 1, None, 0, rounds)
