"""World: what the base station knows now. It is replaced, never changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from acquisition.extent import Catalog
from acquisition.scheduling import NOTHING, Scheduled
from basestation.queries import Event, Query, State
from gateway.frame import COORDINATOR
from gateway.image import Image
from innet.routing.choose import rebuild
from innet.routing.topology import LinksReport, Topology
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class World:
    """`scheduled` and `programs` are what the motes should run: the desired state."""

    catalog: Catalog
    scheduled: Scheduled = NOTHING
    programs: Mapping[int, Image] = field(default_factory=dict)
    topology: Topology = field(default_factory=Topology)
    tree: RoutingTree = field(default_factory=lambda: RoutingTree((COORDINATOR,), {}))
    queries: Mapping[int, Query] = field(default_factory=dict)

    def with_links(self, reports: Iterable[LinksReport]) -> "World":
        """After motes told whom they hear."""
        topology = self.topology.with_reports(reports)
        if topology is self.topology:
            return self
        return replace(self, topology=topology, tree=rebuild(self.tree, topology))

    def with_query(self, query: Query) -> "World":
        return replace(self, queries={**self.queries, query.number: query})

    def with_acknowledged(self, outstanding: frozenset[tuple[int, int, int]]) -> "World":
        """A query whose frames are all acknowledged runs. `outstanding` also has those that nobody ever answered."""
        world = self
        for query in self.queries.values():
            if query.state is State.DEPLOYING and not query.awaited & outstanding:
                world = world.with_query(query.after(Event.ALL_ACKED))
        return world

    def next_number(self) -> int:
        """The number of the next query; a number is never used again."""
        return max(self.queries, default=0) + 1
