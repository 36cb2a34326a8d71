"""Build the routing tree from the topology: cheapest paths by expected transmissions (ETX).

Pure and deterministic: of equal paths, the one over the lower mote number wins.
"""

import heapq
from collections.abc import Collection, Iterable

from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree

PARENT_SWITCH_THRESHOLD = 0.5
"""Expected transmissions that a new parent must save before a mote moves to it."""
SILENT_MOTE_PENALTY = 1e9
"""Expected transmissions added to a path through a silent mote: more than any other path costs."""


def choose_tree(topology: Topology, roots: Iterable[int]) -> RoutingTree:
    """Return the tree of cheapest paths to the gateways `roots`; it leaves out motes that no path connects."""
    roots = tuple(roots)
    return RoutingTree(roots, _cheapest(topology, roots)[1])


def update_tree(
    tree: RoutingTree,
    topology: Topology,
    silent: Collection[int] = (),
    switching: float = PARENT_SWITCH_THRESHOLD,
    known: Collection[int] | None = None,
) -> RoutingTree:
    """Return the tree after new reports; the same object if no parent changes.

    Paths avoid the motes in `silent` where another path exists. A mote keeps its parent while the path through it costs
    at most `switching` expected transmissions more than the cheapest. With `known`, the tree has those motes only:
    motes may hear motes of other networks.

    Kept parents form no loop. A link costs at least one transmission, so a kept parent is still nearer to its gateway
    than its child, as long as `switching` is less than one.
    """
    if not 0 <= switching < 1:
        raise ValueError(f"expected a switching threshold from 0 to less than 1, found {switching}")
    cost, parent = _cheapest(topology, tree.roots, silent, known)
    for mote in parent:
        kept = tree.parent.get(mote)
        if kept is None or kept not in cost:
            continue
        if _onward(cost, kept, silent) + topology.cost(mote, kept) <= cost[mote] + switching:
            parent[mote] = kept
    return tree if parent == tree.parent else RoutingTree(tree.roots, parent)


def _onward(cost: dict[int, float], mote: int, silent: Collection[int]) -> float:
    """The cost of a frame from the moment that `mote` has it."""
    return cost[mote] + SILENT_MOTE_PENALTY * (mote in silent)


def _cheapest(
    topology: Topology, roots: tuple[int, ...], silent: Collection[int] = (), known: Collection[int] | None = None
) -> tuple[dict[int, float], dict[int, int]]:
    """Return the cost of the cheapest path of each mote to a gateway, and its first hop (Dijkstra)."""
    neighbours = topology.neighbours
    best: dict[int, float] = {}
    parent: dict[int, int] = {}
    queue = [(0.0, root, root) for root in sorted(roots)]
    while queue:
        cost, mote, via = heapq.heappop(queue)
        if mote in best:
            continue
        best[mote] = cost
        if mote != via:
            parent[mote] = via
        for other in neighbours.get(mote, ()):
            if known is not None and other not in known:
                continue
            if other not in best and (step := topology.cost(other, mote)) != float("inf"):
                heapq.heappush(queue, (_onward(best, mote, silent) + step, other, mote))
    return best, parent
