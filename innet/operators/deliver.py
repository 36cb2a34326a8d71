"""Deliver: send these attributes of each reading of an extent to the base station."""

from dataclasses import dataclass

from innet.operators import Operator
from innet.operators.acquire import Acquire, acquired


@dataclass(frozen=True, slots=True)
class Deliver(Operator):
    """`extent` says whose readings: below a join there are two, and each needs a Deliver of its own."""

    child: Operator
    extent: str
    sent: tuple[str, ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.sent

    @property
    def acquire(self) -> Acquire:
        """What is read for it."""
        return acquired(self)[self.extent]

    def label(self) -> str:
        return f"deliver {', '.join(self.sent) or 'nothing'} of {self.extent}"
