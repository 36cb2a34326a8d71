"""Failure detector: finds the motes through which no frame has arrived for too long, so that routes avoid them.

A working mote shows itself by its own frames and by those that it forwards. If a whole subtree is overdue, the detector
suspects the mote at its top, or its link: that mote is *silent* until a frame of it arrives again. The motes below it get
another parent, and their timeouts start again.
"""

from collections.abc import Iterable, Mapping

from innet.routing.tree import RoutingTree


class FailureDetector:
    """The silent motes, by timeouts over the routing tree. All times have one unit, which the caller chooses."""

    def __init__(self) -> None:
        self.motes: frozenset[int] = frozenset()
        """The motes that are silent now."""
        self._last_arrival: dict[int, int] = {}  # by mote: the time of its last arrival, or of its start

    def record_arrivals(self, frames: Iterable[tuple[int, int]], tree: RoutingTree, now: int) -> None:
        """Record frames that arrived at `now`, each as (origin, last hop before the gateway).

        If the last hop is the one that the tree predicts, every mote on the path counts as alive; otherwise only these
        two do.
        """
        alive: set[int] = set()
        for mote, last in set(frames):
            route = tree.path(mote)[:-1] if mote in tree.parent else (mote,)
            alive.update(route if route[-1] == last else (mote, last))
        self.begin(alive, now)
        self.motes -= alive

    def begin(self, motes: Iterable[int], now: int) -> None:
        """Start the timeouts of `motes` at `now`."""
        for mote in motes:
            self._last_arrival[mote] = now

    def find_overdue(self, tree: RoutingTree, patience: Mapping[int, int], now: int) -> frozenset[int]:
        """Return the overdue motes: nothing of them arrived for longer than their `patience`; update `motes`.

        A mote without a patience of its own has the longest of the motes below it, and is not in the result.
        """
        oldest = min(self._last_arrival.values(), default=now)
        if now - oldest <= min(patience.values(), default=now - oldest):
            return frozenset()
        most = dict(patience)
        for mote in tree.leaves_first:
            parent = tree.parent[mote]
            if mote in most and parent not in patience:
                most[parent] = max(most[mote], most.get(parent, 0))
        overdue = {m for m in tree.parent if m in most and now - self._last_arrival.get(m, now) > most[m]}
        found = {mote for mote in overdue if tree.parent[mote] not in overdue} - self.motes
        if found:
            self.motes |= found
            self.begin((mote for mote in tree.parent if found & set(tree.path(mote)[1:])), now)
        return frozenset(overdue & patience.keys())
