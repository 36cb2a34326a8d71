"""The physical world: what a sensor would measure at a place and time, by a formula or by a recording.

Formulas are asked for arrays of places and times; `value` asks for one. Both give the same to the last bit, which is
why there is no sine of a library in here: libraries compute it differently for one number and for many.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sin

import numpy as np

from simulator.counter_rng import Purpose, deviate, draw

DAY_MS = 86_400_000
_STEPS = 4_096
_SINES = np.array([sin(2 * pi * k / _STEPS) for k in range(_STEPS + 1)])


class PhysicalField:
    """A quantity in the world, in its unit."""

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        """The true values at sites and times; NaN where a sensor would fail."""
        raise TypeError(f"{type(self).__name__} does not say its values")

    def value(self, site: int, ms: int) -> float | None:
        """The true value at one site and time; None where a sensor would fail."""
        found = float(self.values(np.array([site]), np.array([ms]))[0])
        return None if found != found else found


@dataclass(frozen=True, slots=True)
class Wave(PhysicalField):
    """A mean, a swing around it (a day, for example), and a gradient from site to site."""

    mean: float
    swing: float = 0.0
    period_ms: int = DAY_MS
    per_site: float = 0.0
    phase_ms: int = 0  # when it passes its mean upwards

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        return (
            self.mean + self.per_site * site + self.swing * _sine((ms - self.phase_ms) % self.period_ms, self.period_ms)
        )


def _sine(ms: np.ndarray, period_ms: int) -> np.ndarray:
    """The sine of the share of a period that has gone by, from a table: right to 3e-7."""
    place = ms * _STEPS
    step, rest = place // period_ms, place % period_ms
    left = _SINES[step]
    return left + (_SINES[step + 1] - left) * (rest / period_ms)


@dataclass(frozen=True, slots=True)
class SumField(PhysicalField):
    """Several things at once: the cycle of the day and that of the year, for example."""

    parts: tuple[PhysicalField, ...]

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        total = np.zeros(np.broadcast(site, ms).shape)
        for part in self.parts:
            total = total + part.values(site, ms)
        return total


@dataclass(frozen=True, slots=True)
class SiteOffsets(PhysicalField):
    """What is different from place to place and always the same: a gradient, the window that a mote stands at."""

    at: Mapping[int, float]

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        table = np.zeros(max((*self.at, int(site.max(initial=0)))) + 1)
        for number, value in self.at.items():
            table[number] = value
        return table[site] + 0.0 * ms


@dataclass(frozen=True, slots=True)
class Noise(PhysicalField):
    """What is different each time, with a standard deviation. `about` tells the noise of two quantities apart."""

    deviation: float
    seed: int
    about: int = 0

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        return self.deviation * deviate(
            draw(self.seed, Purpose.NOISE, self.about, site.astype(np.uint64), ms.astype(np.uint64))
        )


@dataclass(frozen=True, slots=True)
class FailingSensor(PhysicalField):
    """A field whose sensor fails at one site during [begin, end)."""

    field: PhysicalField
    site: int
    begin: int
    end: int

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        fails = (site == self.site) & (self.begin <= ms) & (ms < self.end)
        return np.where(fails, np.nan, self.field.values(site, ms))


@dataclass(frozen=True, slots=True)
class RecordedField(PhysicalField):
    """What was recorded: a site has its latest value, until the next one or for `hold_ms`, whichever ends first."""

    ms: Mapping[int, np.ndarray]  # for each site, ascending
    recorded: Mapping[int, np.ndarray]
    hold_ms: int

    def values(self, site: np.ndarray, ms: np.ndarray) -> np.ndarray:
        site, ms = np.broadcast_arrays(site, ms)
        found = np.full(site.shape, np.nan)
        for number, times in self.ms.items():
            here = site == number
            wanted = ms[here]
            latest = np.searchsorted(times, wanted, side="right") - 1
            held = (latest >= 0) & (wanted - times[latest] < self.hold_ms)
            found[here] = np.where(held, self.recorded[number][latest], np.nan)
        return found
