"""The two speeds leave the same trace, byte for byte, and use the same energy."""

from hypothesis import given
from hypothesis import strategies as st

from tests.simulator.networks import networks


@given(made=networks(), chunks=st.integers(1, 3))
def test_both_speeds_leave_the_same_trace_and_use_the_same_energy(made, chunks):
    trace, spent = made.one_by_one()
    swept, spent_too = made.swept(min(chunks, made.rounds))
    assert str(swept) == str(trace)
    assert spent_too == spent
