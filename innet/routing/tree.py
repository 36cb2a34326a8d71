"""RoutingTree: the parent of each mote. A tree that exists is rooted and has no circles."""

from collections.abc import Mapping
from dataclasses import dataclass

from innet.errors import RoutingError


@dataclass(frozen=True, slots=True)
class RoutingTree:
    """`parent[mote]` is the next one towards the root; the root has none."""

    root: int
    parent: Mapping[int, int]

    def __post_init__(self) -> None:
        if self.root in self.parent:
            raise RoutingError(self.root, "the root of a tree has no parent")
        for mote in self.parent:
            self.path(mote)

    def path(self, mote: int) -> tuple[int, ...]:
        """The motes that a frame passes, from this one to the root, both included."""
        passed = [mote]
        while passed[-1] != self.root:
            if passed[-1] not in self.parent:
                raise RoutingError(mote, f"no route: {passed[-1]} has no parent")
            passed.append(self.parent[passed[-1]])
            if len(passed) > len(self.parent) + 1:
                raise RoutingError(mote, f"its route runs in a circle: {passed}")
        return tuple(passed)

    def depth(self, mote: int) -> int:
        return len(self.path(mote)) - 1
