"""Deliver: send attributes of each reading of an extent to the base station."""

from dataclasses import dataclass

from innet.operators import MoteOperator
from innet.operators.acquire import Acquire, find_acquires


@dataclass(frozen=True, slots=True)
class Deliver(MoteOperator):
    """Send the attributes `sent` of the readings of `extent`. A join has two extents, and a Deliver for each."""

    child: MoteOperator
    extent: str
    sent: tuple[str, ...]

    @property
    def children(self) -> tuple[MoteOperator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.sent

    @property
    def acquire(self) -> Acquire:
        """The acquisition of its readings."""
        return find_acquires(self)[self.extent]

    def label(self) -> str:
        return f"deliver {', '.join(self.sent) or 'nothing'} of {self.extent}"
