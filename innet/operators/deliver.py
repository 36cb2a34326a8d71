"""Deliver: send these attributes of each tuple to the base station."""

from dataclasses import dataclass

from innet.operators import Operator


@dataclass(frozen=True, slots=True)
class Deliver(Operator):
    child: Operator
    sent: tuple[str, ...]

    @property
    def children(self) -> tuple[Operator, ...]:
        return (self.child,)

    @property
    def attributes(self) -> tuple[str, ...]:
        return self.sent

    def label(self) -> str:
        return f"deliver {', '.join(self.sent) or 'nothing'}"
