"""Acquire: sample the sensors of an extent at an interval."""

from dataclasses import dataclass

from innet.operators import MoteOperator, walk


@dataclass(frozen=True, slots=True)
class Acquire(MoteOperator):
    """Sample the attributes `sampled` of `extent` every `interval` ticks. The site and the tick of a reading are free."""

    extent: str
    interval: int
    sampled: tuple[str, ...]

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.sampled

    def label(self) -> str:
        return f"acquire {', '.join(self.sampled) or 'nothing'} of {self.extent} every {self.interval} ticks"


def find_acquires(operator: MoteOperator) -> dict[str, Acquire]:
    """Return the acquisitions below an operator, by extent."""
    return {found.extent: found for found in walk(operator) if isinstance(found, Acquire)}
