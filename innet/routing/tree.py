"""RoutingTree: the parent of each mote; every route ends at a gateway, without loops."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from innet.errors import RoutingError


@dataclass(frozen=True, slots=True)
class RoutingTree:
    """`parent[mote]` is the next hop towards a gateway. The roots are the gateways, which have no parent.

    One tree spans all gateways, so a mote that two gateways hear still has one parent. The constructor raises
    RoutingError for a loop or a route that ends elsewhere.
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
        """Return the route of a frame: `mote`, each forwarder, and the gateway. RoutingError if there is no route."""
        return self._path(mote, self.roots)

    def _path(self, mote: int, ends: Collection[int]) -> tuple[int, ...]:
        passed: dict[int, None] = {mote: None}
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
        """The number of hops from a mote to its gateway."""
        return len(self.path(mote)) - 1

    def gateway(self, mote: int) -> int:
        """The gateway that receives the frames of a mote."""
        return self.path(mote)[-1]

    @property
    def children(self) -> dict[int, tuple[int, ...]]:
        """The children of each mote and gateway, in ascending order; empty for a leaf."""
        found: dict[int, list[int]] = {member: [] for member in (*self.roots, *self.parent)}
        for mote in sorted(self.parent):
            found[self.parent[mote]].append(mote)
        return {member: tuple(motes) for member, motes in found.items()}

    @property
    def leaves_first(self) -> tuple[int, ...]:
        """Every mote, children before parents: the deepest first, then by number."""
        depths = dict.fromkeys(self.roots, 0)
        for mote in self.parent:
            route = [mote]
            while route[-1] not in depths:
                route.append(self.parent[route[-1]])
            for member in reversed(route[:-1]):
                depths[member] = depths[self.parent[member]] + 1
        return tuple(sorted(self.parent, key=lambda mote: (-depths[mote], mote)))

    def unreached(self, motes: Iterable[int]) -> tuple[int, ...]:
        """Return those of `motes` that have no route to a gateway, in ascending order."""
        return tuple(sorted(set(motes) - self.parent.keys() - set(self.roots)))
