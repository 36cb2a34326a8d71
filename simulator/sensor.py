"""A sensor of a mote: a quantity of the world as whole numbers, at a price."""

from dataclasses import dataclass

import numpy as np

from acquisition.schedule import REGISTER_BITS
from simulator.physical_fields import PhysicalField

LARGEST = 2 ** (REGISTER_BITS - 1) - 1


@dataclass(frozen=True, slots=True)
class Sensor:
    """What it measures, given out as whole multiples of 10^-scale, from `low` to `high`.

    `sample_nc` is the charge that a sample takes, in nanocoulombs.
    """

    name: str
    field: PhysicalField
    scale: int = 0
    low: int = -LARGEST
    high: int = LARGEST
    sample_nc: int = 0

    def read(self, site: int, ms: int) -> int | None:
        """What it gives at one moment; None where it fails."""
        values, nulls = self.read_many(np.array([site]), np.array([ms]))
        return None if nulls[0] else int(values[0])

    def read_many(self, site: np.ndarray, ms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What it gives at many moments, and where it fails."""
        true = self.field.values(site, ms)
        nulls = np.isnan(true)
        multiple = np.abs(np.where(nulls, 0.0, true)) * 10.0**self.scale
        whole = np.floor(np.minimum(multiple, LARGEST) + 0.5) * np.sign(true)  # halves away from zero, SEMANTICS 13
        return np.where(nulls, 0, np.clip(whole, self.low, self.high)).astype(np.int64), nulls
