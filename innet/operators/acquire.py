"""Acquire: sample the sensors of an extent at an interval."""

from collections.abc import Mapping
from dataclasses import dataclass

from innet.operators import MoteOperator, walk
from innet.operators.identity_cache import cache_by_identity


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


@cache_by_identity
def find_acquires(operator: MoteOperator) -> Mapping[str, Acquire]:
    """Return the acquisitions below an operator, by extent."""
    return {found.extent: found for found in walk(operator) if isinstance(found, Acquire)}
