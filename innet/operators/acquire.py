"""Acquire: read the sensors of an extent, every so many ticks."""

from dataclasses import dataclass

from innet.operators import MoteOperator, walk


@dataclass(frozen=True, slots=True)
class Acquire(MoteOperator):
    """`sampled` are the attributes that are read; the site and the tick of a reading cost nothing and go without."""

    extent: str
    interval: int
    sampled: tuple[str, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.sampled

    def label(self) -> str:
        return f"acquire {', '.join(self.sampled) or 'nothing'} of {self.extent} every {self.interval} ticks"


def find_acquires(operator: MoteOperator) -> dict[str, Acquire]:
    """What is sampled for an operator, by extent."""
    return {found.extent: found for found in walk(operator) if isinstance(found, Acquire)}
