"""A sensor of a mote: measures a quantity of the world as whole numbers and draws charge for each sample."""

from dataclasses import dataclass

import numpy as np

from acquisition.arrays import BoolArray, IntArray
from acquisition.schedule import REGISTER_BITS
from simulator.physical_fields import PhysicalField

LARGEST = 2 ** (REGISTER_BITS - 1) - 1


@dataclass(frozen=True, slots=True)
class Sensor:
    """Measures `field` in whole multiples of 10^-scale, clipped to `low` .. `high`.

    `sample_nc` is the charge of one sample in nanocoulombs.
    """

    name: str
    field: PhysicalField
    scale: int = 0
    low: int = -LARGEST
    high: int = LARGEST
    sample_nc: int = 0

    def read(self, site: int, ms: int) -> int | None:
        """The value at one site and time in milliseconds; None if the sensor fails."""
        values, nulls = self.read_many(np.array([site]), np.array([ms]))
        return None if nulls[0] else int(values[0])

    def read_many(self, site: IntArray, ms: IntArray) -> tuple[IntArray, BoolArray]:
        """The values at many sites and times, and a mask of those at which the sensor fails."""
        true = self.field.values(site, ms)
        nulls = np.isnan(true)
        with np.errstate(over="ignore"):  # a value beyond every number is cut off as well
            multiple = np.abs(np.where(nulls, 0.0, true)) * 10.0**self.scale
        whole = np.floor(np.minimum(multiple, LARGEST) + 0.5) * np.sign(true)  # halves away from zero (semantics 13)
        return np.where(nulls, 0, np.clip(whole, self.low, self.high)).astype(np.int64), nulls
