"""Topology -> routing tree: the cheapest paths by expected transmissions. Pure; ties go to the lower number."""

import heapq

from innet.routing.topology import Topology
from innet.routing.tree import RoutingTree


def choose_tree(topology: Topology, root: int) -> RoutingTree:
    """Motes without any path to the root are left out of the tree."""
    best: dict[int, float] = {}
    parent: dict[int, int] = {}
    queue = [(0.0, root, root)]
    while queue:
        cost, mote, via = heapq.heappop(queue)
        if mote in best:
            continue
        best[mote] = cost
        if mote != root:
            parent[mote] = via
        for other in topology.motes - best.keys():
            step = topology.cost(other, mote)
            if step != float("inf"):
                heapq.heappush(queue, (cost + step, other, mote))
    return RoutingTree(root, parent)
