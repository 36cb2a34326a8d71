"""Silence: through whom nothing has come for so long that nothing should go through them any more.

A mote that is well is heard by its own frames, and by those that it hands on. Where nothing comes of a whole subtree, the
mote at its top is to blame, or its link: it is *silent* until something of it comes again. Those below it get another
parent, and as much time as at first to be heard through that one.
"""

from collections.abc import Iterable, Mapping

from innet.routing.tree import RoutingTree


class FailureDetector:
    """Times are whatever the caller counts in. Who was never heard is nobody's loss: it is in no tree."""

    def __init__(self) -> None:
        self.motes: frozenset[int] = frozenset()
        self._heard: dict[int, int] = {}

    def record_arrivals(self, frames: Iterable[tuple[int, int]], tree: RoutingTree, now: int) -> None:
        """Something came of these: where it began, and who handed it over last.

        Who else it went through is known if it left the tree where the tree says that it should.
        """
        heard = set()
        for mote, last in set(frames):
            way = tree.path(mote)[:-1] if mote in tree.parent else (mote,)
            heard.update(way if way[-1] == last else (mote, last))
        self.begin(heard, now)
        self.motes -= heard

    def begin(self, motes: Iterable[int], now: int) -> None:
        """From now on something is due of these."""
        for mote in motes:
            self._heard[mote] = now

    def find_overdue(self, tree: RoutingTree, patience: Mapping[int, int], now: int) -> frozenset[int]:
        """Those of whom nothing came for longer than their `patience`.

        Of whom nothing is due itself it is as late as the last of what is due through it.
        """
        most = dict(patience)
        for mote in tree.leaves_first:
            parent = tree.parent[mote]
            if mote in most and parent not in patience:
                most[parent] = max(most[mote], most.get(parent, 0))
        overdue = {m for m in tree.parent if m in most and now - self._heard.get(m, now) > most[m]}
        found = {mote for mote in overdue if tree.parent[mote] not in overdue} - self.motes
        if found:
            self.motes |= found
            self.begin((mote for mote in tree.parent if found & set(tree.path(mote)[1:])), now)
        return frozenset(overdue & patience.keys())
