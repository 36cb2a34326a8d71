"""The physical world: the values of a quantity by site and time, from a formula or from a recording.

`values` takes arrays of sites and times, `value` one of each. Both give the same to the last bit. Therefore the sine is a table
of this module: libraries compute it differently for one number and for many.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sin

import numpy as np

from acquisition.arrays import FloatArray, IntArray
from simulator.counter_rng import Purpose, deviate, draw

DAY_MS = 86_400_000
_STEPS = 4_096
_SINES = np.array([sin(2 * pi * k / _STEPS) for k in range(_STEPS + 1)])


class PhysicalField:
    """A quantity in the world, in its unit."""

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        """The true values at sites and times in milliseconds; NaN where a sensor fails."""
        raise NotImplementedError

    def value(self, site: int, ms: int) -> float | None:
        """The true value at one site and time in milliseconds; None where a sensor fails."""
        found = float(self.values(np.array([site]), np.array([ms]))[0])
        return None if found != found else found


@dataclass(frozen=True, slots=True)
class Wave(PhysicalField):
    """A mean, a swing around it (over a day, for example), and a gradient from site to site."""

    mean: float
    swing: float = 0.0
    period_ms: int = DAY_MS
    per_site: float = 0.0
    phase_ms: int = 0  # when the swing passes 0 upwards

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        return (
            self.mean + self.per_site * site + self.swing * _sine((ms - self.phase_ms) % self.period_ms, self.period_ms)
        )


def _sine(ms: IntArray, period_ms: int) -> FloatArray:
    """The sine of the elapsed share of a period, from a table: exact to 3e-7."""
    place = ms * _STEPS
    step, rest = place // period_ms, place % period_ms
    left = _SINES[step]
    found: FloatArray = left + (_SINES[step + 1] - left) * (rest / period_ms)
    return found


@dataclass(frozen=True, slots=True)
class SumField(PhysicalField):
    """The sum of several fields: the cycle of the day and that of the year, for example."""

    parts: tuple[PhysicalField, ...]

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        total = np.zeros(np.broadcast(site, ms).shape)
        for part in self.parts:
            total = total + part.values(site, ms)
        return total


@dataclass(frozen=True, slots=True)
class SiteOffsets(PhysicalField):
    """A constant offset for each site: a gradient, or the window that a mote stands at."""

    at: Mapping[int, float]

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        table = np.zeros(max((*self.at, int(site.max(initial=0)))) + 1)
        for number, value in self.at.items():
            table[number] = value
        found: FloatArray = table[site] + 0.0 * ms
        return found


@dataclass(frozen=True, slots=True)
class Noise(PhysicalField):
    """Noise of a standard deviation, independent for each site and time. `about` separates the noise of two quantities."""

    deviation: float
    seed: int
    about: int = 0

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        return self.deviation * deviate(
            draw(self.seed, Purpose.NOISE, self.about, site.astype(np.uint64), ms.astype(np.uint64))
        )


@dataclass(frozen=True, slots=True)
class FailingSensor(PhysicalField):
    """A field whose sensor fails at one site during [begin, end), in milliseconds."""

    field: PhysicalField
    site: int
    begin: int
    end: int

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        fails = (site == self.site) & (self.begin <= ms) & (ms < self.end)
        return np.where(fails, np.nan, self.field.values(site, ms))


@dataclass(frozen=True, slots=True)
class RecordedField(PhysicalField):
    """A recording: a site has its latest value until the next one, and for at most `hold_ms`."""

    ms: Mapping[int, IntArray]  # by site, ascending
    recorded: Mapping[int, FloatArray]
    hold_ms: int

    def values(self, site: IntArray, ms: IntArray) -> FloatArray:
        site, ms = np.broadcast_arrays(site, ms)
        found = np.full(site.shape, np.nan)
        for number, times in self.ms.items():
            here = site == number
            moments = ms[here]
            latest = np.searchsorted(times, moments, side="right") - 1
            holds = (latest >= 0) & (moments - times[latest] < self.hold_ms)
            found[here] = np.where(holds, self.recorded[number][latest], np.nan)
        return found
