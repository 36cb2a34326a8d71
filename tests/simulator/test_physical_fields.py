from math import pi, sin

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.physical_fields import DAY_MS, FailingSensor, Noise, RecordedField, SiteOffsets, SumField, Wave

FIELDS = {
    "wave": Wave(20.0, 3.3, 7_000, 0.1, 1_500),
    "noise": Noise(0.3, seed=5, about=77),
    "places": SiteOffsets({1: 0.5, 4: -2.25}),
    "sum": SumField((Wave(20.0, 3.0), SiteOffsets({2: 1.0}), Noise(0.1, seed=1))),
    "failing": FailingSensor(Wave(1.0), site=3, begin=1_000, end=5_000),
    "recording": RecordedField({2: np.array([0, 50, 3_000])}, {2: np.array([1.5, 2.5, 3.5])}, hold_ms=2_000),
}


@pytest.mark.parametrize("name", FIELDS)
@given(moments=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 10_000)), min_size=1, max_size=30))
def test_one_moment_and_many_are_the_same_to_the_bit(name, moments):
    field = FIELDS[name]
    site, ms = (np.array(column) for column in zip(*moments, strict=True))
    together = [None if value != value else value for value in field.values(site, ms).tolist()]
    assert together == [field.value(*moment) for moment in moments]


def test_a_wave_is_a_sine_around_its_mean():
    wave = Wave(mean=20.0, swing=3.0, phase_ms=8 * 3_600_000)
    for hour in range(48):
        expected = 20.0 + 3.0 * sin(2 * pi * (hour - 8) / 24)
        assert wave.value(1, hour * 3_600_000) == pytest.approx(expected, abs=1e-6)
    assert wave.value(1, 0) == wave.value(1, 365 * DAY_MS)


def test_noise_differs_by_time_place_quantity_and_seed():
    moments = [(1, 0), (1, 1), (2, 0)]
    found = [Noise(1.0, seed, about).value(*moment) for moment in moments for seed in (1, 2) for about in (1, 2)]
    assert len(set(found)) == len(found)


def test_a_recording_holds_its_values_and_no_longer():
    field = FIELDS["recording"]
    assert [field.value(2, ms) for ms in (0, 49, 50, 2_049, 2_050, 2_999, 3_000)] == [
        1.5,
        1.5,
        2.5,
        2.5,
        None,
        None,
        3.5,
    ]
    assert field.value(1, 50) is None


def test_a_sensor_that_fails_says_nothing():
    assert [FIELDS["failing"].value(3, ms) for ms in (999, 1_000, 4_999, 5_000)] == [1.0, None, None, 1.0]
    assert FIELDS["failing"].value(2, 2_000) == 1.0
