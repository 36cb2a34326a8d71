"""RoutingTree: the parent of each mote. A tree that exists leads everybody to a gateway and has no circles."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from innet.errors import RoutingError


@dataclass(frozen=True, slots=True)
class RoutingTree:
    """`parent[mote]` is the next one towards a gateway. The roots are the gateways; they have no parent.

    One tree for all gateways: since a mote has one parent, one that two gateways hear is still one mote.
    """

    roots: tuple[int, ...]
    parent: Mapping[int, int]

    def __post_init__(self) -> None:
        for root in self.roots:
            if root in self.parent:
                raise RoutingError(root, "the root of a tree has no parent")
        checked = set(self.roots)
        for mote in self.parent:
            checked.update(self._path(mote, checked))

    def path(self, mote: int) -> tuple[int, ...]:
        """The motes that a frame passes, from this one to its gateway, both included."""
        return self._path(mote, self.roots)

    def _path(self, mote, ends) -> tuple[int, ...]:
        passed = {mote: None}
        at = mote
        while at not in ends:
            if at not in self.parent:
                raise RoutingError(mote, f"no route: {at} has no parent")
            at = self.parent[at]
            if at in passed:
                raise RoutingError(mote, f"its route runs in a circle: {[*passed, at]}")
            passed[at] = None
        return tuple(passed)

    def depth(self, mote: int) -> int:
        return len(self.path(mote)) - 1

    def gateway(self, mote: int) -> int:
        """The gateway at which the frames of a mote arrive."""
        return self.path(mote)[-1]

    @property
    def children(self) -> dict[int, tuple[int, ...]]:
        """Who sends to whom directly; everybody in the tree is in it."""
        found: dict[int, list[int]] = {member: [] for member in (*self.roots, *self.parent)}
        for mote in sorted(self.parent):
            found[self.parent[mote]].append(mote)
        return {member: tuple(motes) for member, motes in found.items()}

    @property
    def leaves_first(self) -> tuple[int, ...]:
        """Every mote, each before its parent; the deepest first, then by number."""
        depths = dict.fromkeys(self.roots, 0)
        for mote in self.parent:
            way = [mote]
            while way[-1] not in depths:
                way.append(self.parent[way[-1]])
            for member in reversed(way[:-1]):
                depths[member] = depths[self.parent[member]] + 1
        return tuple(sorted(self.parent, key=lambda mote: (-depths[mote], mote)))

    def unreached(self, motes: Iterable[int]) -> tuple[int, ...]:
        """Those of the motes from which no way leads to a gateway."""
        return tuple(sorted(set(motes) - self.parent.keys() - set(self.roots)))
