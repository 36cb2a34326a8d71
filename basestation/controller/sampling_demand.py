"""Sampling demand: what the queries together need sampled, and where; schedules are built from it."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd

from acquisition.extent import Catalog
from acquisition.schedule_builder import SamplingNeed, ScheduleSet, build_schedules
from basestation.controller.query_lifecycle import QueryRecord
from innet.placement.placement import find_required_sites, find_sending_sites


@dataclass(frozen=True, slots=True)
class ExtentNeed:
    """All that a merged sampling of one extent, or the rejection of its needs, depends on; intervals in ticks."""

    extent: str
    every: int
    longest: int
    attributes: frozenset[str]

    @classmethod
    def of(cls, extent: str, needs: Sequence[SamplingNeed]) -> "ExtentNeed":
        """Merge the needs of one extent."""
        intervals = [need.every for need in needs]
        attributes = frozenset(name for need in needs for name in need.attributes)
        return cls(extent, gcd(*intervals), max(intervals), attributes)


@dataclass(frozen=True, slots=True)
class SamplingDemand:
    """The demand that schedules have to serve. Equal demands have equal schedules.

    `by_extent` has the merged need of each extent, `sites` the sites that sample it, and `senders` by attribute the sites that
    send its values. `needs` are those of the queries, in their order.
    """

    by_extent: tuple[ExtentNeed, ...]
    sites: tuple[tuple[str, frozenset[int]], ...]
    senders: tuple[tuple[str, tuple[tuple[str, frozenset[int]], ...]], ...]
    needs: tuple[SamplingNeed, ...] = field(compare=False)

    @property
    def sampling(self) -> tuple[object, ...]:
        """The demand without the senders: what is sampled where."""
        return self.by_extent, self.sites

    @classmethod
    def of(cls, records: Iterable[QueryRecord], catalog: Catalog) -> "SamplingDemand":
        """The demand of some queries. A site that the conditions of all of them exclude samples nothing."""
        queries = [query for query in records if query.needs]
        needs = tuple(need for query in queries for need in query.needs)
        by_extent: dict[str, list[SamplingNeed]] = {}
        for need in needs:
            by_extent.setdefault(need.extent, []).append(need)
        sites = {extent.name: extent.sites or () for extent in catalog}  # build_schedules rejects missing sites
        sampling = find_required_sites([operator for query in queries for operator in query.operators], sites)
        sending = find_sending_sites([delivery for query in queries for delivery in query.all_deliveries], sites)
        return cls(
            tuple(ExtentNeed.of(extent, found) for extent, found in by_extent.items()),
            tuple((extent, frozenset(found)) for extent, found in sorted(sampling.items())),
            tuple(
                (extent, tuple((name, frozenset(found)) for name, found in sorted(sending.get(extent, {}).items())))
                for extent in by_extent
            ),
            needs,
        )

    def schedule(self, catalog: Catalog, before: ScheduleSet, tick: int, renewed: Collection[str] = ()) -> ScheduleSet:
        """Build one schedule per site from a tick on; samplings of before that still serve are kept.

        `renewed` are extents that get a new sampling in any case. ScheduleError if motes cannot sample what is needed.
        """
        senders = {extent: dict(found) for extent, found in self.senders}
        return build_schedules(self.needs, catalog, before, tick, renewed, dict(self.sites), senders)
