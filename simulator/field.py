"""The physical world: what a sensor would measure at a place and time, by a formula."""

from dataclasses import dataclass
from math import pi, sin
from typing import Protocol


class Field(Protocol):
    """A quantity in the world."""

    def value(self, site: int, ms: int) -> float | None:
        """The true value in the quantity's unit; None where a sensor would fail."""


@dataclass(frozen=True, slots=True)
class Wave:
    """A mean, a swing around it (a day, for example), and a gradient from site to site."""

    mean: float
    swing: float = 0.0
    period_ms: int = 86_400_000
    per_site: float = 0.0

    def value(self, site: int, ms: int) -> float:
        return self.mean + self.per_site * site + self.swing * sin(2 * pi * ms / self.period_ms)


@dataclass(frozen=True, slots=True)
class Failing:
    """A field whose sensor fails at one site during [begin, end)."""

    field: Field
    site: int
    begin: int
    end: int

    def value(self, site: int, ms: int) -> float | None:
        return None if site == self.site and self.begin <= ms < self.end else self.field.value(site, ms)
