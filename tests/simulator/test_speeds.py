"""The two speeds leave the same trace, byte for byte, and use the same energy."""

from hypothesis import given
from hypothesis import strategies as st

from acquisition.instants import Epochs
from acquisition.schedule import Channel, Sampling, Schedule, sensor_code
from innet.payload import Orders
from innet.program.program import MoteProgram
from simulator.standing import Standing
from tests.simulator.networks import TICK_MS, Made, collecting, duties_along, networks


@given(made=networks(), chunks=st.integers(1, 3))
def test_both_speeds_leave_the_same_trace_and_use_the_same_energy(made, chunks):
    trace, spent = made.one_by_one()
    swept, spent_too = made.swept(min(chunks, made.rounds))
    assert str(swept) == str(trace)
    assert spent_too == spent


def collecting_network(parents, links, rounds):
    sampling = Sampling(0, "", Epochs(0, 10), (Channel("", sensor_code("temperature"), 16),))
    duties = duties_along(parents, 10 * TICK_MS, 1.0, 20)
    standing = {
        mote: Standing(
            Schedule(mote, 1, (sampling,)),
            Orders((MoteProgram(mote, 0, 1, 1, collecting(1)),), parent, duties[mote]),
            TICK_MS,
        )
        for mote, parent in parents.items()
    }
    return Made(standing, links, 1, None, 0, rounds)
