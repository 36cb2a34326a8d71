import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simulator.counter_rng import Purpose, deviate, draw, uniform

NUMBERS = st.integers(0, 2**63)


@given(NUMBERS, st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_one_number_and_an_array_have_the_same_luck(seed, pairs):
    links, epochs = (np.array(column, np.uint64) for column in zip(*pairs, strict=True))
    together = draw(seed, Purpose.FRAME, links, epochs)
    alone = [draw(seed, Purpose.FRAME, *pair) for pair in pairs]
    assert together.tolist() == alone
    assert uniform(together).tolist() == [uniform(bits) for bits in alone]
    assert deviate(together).tolist() == [deviate(bits) for bits in alone]


def test_draws_are_even_and_do_not_know_each_other():
    count = 200_000
    some = np.arange(count, dtype=np.uint64)
    first, second = uniform(draw(7, Purpose.FRAME, some)), uniform(draw(7, Purpose.ACK, some))
    assert 0 <= first.min() and first.max() < 1
    shares = np.histogram(first, 16, (0, 1))[0] / count
    assert np.abs(shares - 1 / 16).max() < 5 * (1 / 16 / count) ** 0.5
    for other in (second, np.roll(first, 1), uniform(draw(8, Purpose.FRAME, some))):
        assert abs(np.corrcoef(first, other)[0, 1]) < 5 / count**0.5


def test_deviates_have_mean_0_and_variance_1():
    found = deviate(draw(3, Purpose.NOISE, np.arange(200_000, dtype=np.uint64)))
    assert abs(found.mean()) < 0.015
    assert abs(found.var() - 1) < 0.02
    assert np.abs(found).max() <= 3.5
