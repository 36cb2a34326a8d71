"""Past start: a query whose past the archive gave, at the moment it begins."""

from collections.abc import Mapping
from dataclasses import dataclass

from acquisition.batch import Batch
from basestation.controller.query_lifecycle import QueryRecord
from basestation.execution.engine import Engine
from basestation.execution.past_choice import PartialWindows, PastChoice
from basestation.execution.past_windows import PastRange, PastWindows, ReplayedQuery
from basestation.planner.partial_source import PartialSource
from basestation.planner.plan import Plan
from basestation.station.past_partials import decode_partials, select_read
from basestation.station.past_size import count_slices
from basestation.station.query_accounts import TIMER


@dataclass(frozen=True, slots=True)
class PastStart:
    """A query before it is divided at its seam, its windows that come from the archive, and the tuples of them by extent.

    One `is_resumed` has answered the windows before now. `partials` of motes, as rows of the archive,
    may cover more than the tuples; `source` is the aggregation that takes them.
    """

    plan: Plan
    past: PastRange
    recalled: Mapping[str, Batch]
    is_resumed: bool
    source: PartialSource | None = None
    partials: Batch | None = None

    def make_engine(self, query: QueryRecord, engine: Engine) -> PastWindows | ReplayedQuery:
        """The engine that answers the past of a query which the engine of the station runs already."""
        number, tables, catalog = query.number, engine.stored_versions(), engine.catalog
        if not self.past.is_replayed:
            slices = count_slices(self.plan, self.past, {name: len(batch) for name, batch in self.recalled.items()})
            due = engine.first_due
            if self.source is None or self.partials is None:
                return PastWindows(number, self.plan, self.past, catalog, tables, self.recalled, slices, due, TIMER)
            merged_past = decode_partials(self.source, self.partials)
            merged = PartialWindows(
                number,
                self.plan,
                self.past,
                catalog,
                tables,
                merged_past.source,
                merged_past.partials,
                merged_past.folds,
                slices,
                due,
                TIMER,
            )
            reads = query.read_columns
            recalled = {name: select_read(batch, reads.get(name, ())) for name, batch in self.recalled.items()}
            return PastChoice(
                merged, number, self.plan, self.past, catalog, tables, recalled, slices, due, TIMER, reads
            )
        clock, reads = engine.clock, query.read_columns
        found = ReplayedQuery(
            number, self.plan, self.past, catalog, tables, self.recalled, clock, reads, engine.first_due, TIMER
        )
        if self.is_resumed:
            found.begin_at(clock + 1)
        return found
