"""Topology -> routing tree: the cheapest paths by expected transmissions. Pure; ties go to the lower number."""

import heapq
from collections.abc import Collection, Iterable

from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree

PARENT_SWITCH_THRESHOLD = 0.5
"""How many expected transmissions another parent must save before a mote is moved to it."""
SILENT_MOTE_PENALTY = 1e9
"""What it costs to go through who is silent: more than any other way there is."""


def choose_tree(topology: Topology, roots: Iterable[int]) -> RoutingTree:
    """Motes without any path to a gateway are left out of the tree."""
    roots = tuple(roots)
    return RoutingTree(roots, _cheapest(topology, roots)[1])


def update_tree(
    tree: RoutingTree,
    topology: Topology,
    silent: Collection[int] = (),
    switching: float = PARENT_SWITCH_THRESHOLD,
    known: Collection[int] | None = None,
) -> RoutingTree:
    """The tree after new reports: where there is another way nothing goes through who is silent, and a mote moves only
    where it saves enough. Only who is `known` is in it, if that is said: motes may hear those of others.

    A mote keeps its parent while the way through it costs at most `switching` more than the cheapest. That leaves no
    circle: a link costs at least one transmission, so a parent that is kept is still nearer to its gateway than its
    child, as long as `switching` is less than one.
    """
    if not 0 <= switching < 1:
        raise ValueError(f"switching is from 0 to less than 1, not {switching}")
    cost, parent = _cheapest(topology, tree.roots, silent, known)
    for mote in parent:
        kept = tree.parent.get(mote)
        if kept in cost and _onward(cost, kept, silent) + topology.cost(mote, kept) <= cost[mote] + switching:
            parent[mote] = kept
    return tree if parent == tree.parent else RoutingTree(tree.roots, parent)


def _onward(cost: dict[int, float], mote: int, silent: Collection[int]) -> float:
    """What a frame costs from a mote on that it was handed to."""
    return cost[mote] + SILENT_MOTE_PENALTY * (mote in silent)


def _cheapest(
    topology: Topology, roots: tuple[int, ...], silent: Collection[int] = (), known: Collection[int] | None = None
) -> tuple[dict[int, float], dict[int, int]]:
    """What a frame costs from each mote to its gateway, and its first hop."""
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
