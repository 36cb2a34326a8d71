"""Footprint: the memory that programs need on a mote, against the capacity of its hardware."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from innet.costs.hardware import Processor
from innet.placement.load_model import NetworkLoads
from innet.program.mote_program import MoteProgram
from innet.program.table_memory import total_bytes
from innet.routing.tree import RoutingTree


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes on a mote. `programs` counts running programs twice, for their next version; `tables` is room for partials; `queue`
    is the largest amount of readings, its own and forwarded ones, that may wait for its slot. Partials wait in the tables.
    """

    programs: int
    tables: int
    queue: int

    def fits(self, processor: Processor) -> bool:
        """Whether programs and tables fit on the mote."""
        return self.programs <= processor.program_bytes and self.tables <= processor.ram_bytes


def measure_footprint(programs: Iterable[MoteProgram], queue: int = 0) -> Footprint:
    """Return the footprint of the programs of one mote; `queue` is in bytes."""
    programs = tuple(programs)
    tables = {table.number: table for program in programs for table in program.tables}
    return Footprint(2 * sum(len(program.code) for program in programs), total_bytes(list(tables.values())), queue)


def measure_footprints(programs: Iterable[MoteProgram], loads: NetworkLoads, tree: RoutingTree) -> dict[int, Footprint]:
    """Return the footprint of each mote in the tree; a mote without programs forwards readings of others."""
    by_site: dict[int, list[MoteProgram]] = {site: [] for site in tree.parent}
    for program in programs:
        by_site.setdefault(program.site, []).append(program)
    queues = measure_queues(loads, tree)
    return {site: measure_footprint(by_site[site], queues[site]) for site in sorted(tree.parent)}


def measure_queues(loads: NetworkLoads, tree: RoutingTree) -> Mapping[int, int]:
    """Return, by mote, the bytes of the frames with readings that may wait at once."""
    most = NetworkLoads(loads.readings, {}).most_frames(tree)
    return {site: round(sum(size * count for size, count in most[site].items())) for site in tree.parent}
