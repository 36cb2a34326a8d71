"""Footprint: what a mote keeps in its memory for what runs on it, against what its hardware has set aside."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from innet.costs.hardware import Processor
from innet.placement.load_model import NetworkLoads
from innet.program.mote_program import MoteProgram
from innet.program.table_memory import total_bytes
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes. `programs` are those that run and as many for their next version; `queue` is what waits for the mote's slot
    at most: readings of its own and of others, which partials are not: those are in the tables."""

    programs: int
    tables: int
    queue: int

    def fits(self, processor: Processor) -> bool:
        return self.programs <= processor.program_bytes and self.tables <= processor.ram_bytes


def measure_footprint(programs: Iterable[MoteProgram], queue: int = 0) -> Footprint:
    """Of the programs of one mote."""
    programs = tuple(programs)
    tables = {table.number: table for program in programs for table in program.tables}
    return Footprint(2 * sum(len(program.code) for program in programs), total_bytes(list(tables.values())), queue)


def measure_footprints(programs: Iterable[MoteProgram], loads: NetworkLoads, tree: RoutingTree) -> dict[int, Footprint]:
    """Of each mote that is in the tree; one that runs nothing passes on what others send."""
    by_site: dict[int, list[MoteProgram]] = {site: [] for site in tree.parent}
    for program in programs:
        by_site.setdefault(program.site, []).append(program)
    queues = measure_queues(loads, tree)
    return {site: measure_footprint(by_site[site], queues[site]) for site in sorted(tree.parent)}


def measure_queues(loads: NetworkLoads, tree: RoutingTree) -> Mapping[int, int]:
    """By mote, the bytes of the readings that may wait in it at once, as frames."""
    most = NetworkLoads(loads.readings, {}).most_frames(tree)
    return {site: round(sum(size * count for size, count in most[site].items())) for site in tree.parent}
