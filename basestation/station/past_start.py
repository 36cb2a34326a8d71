"""Past start: a query whose past the archive gave, at the moment it begins."""

from collections.abc import Mapping
from dataclasses import dataclass

from acquisition.batch import Batch
from basestation.controller.query_lifecycle import QueryRecord
from basestation.execution.engine import Engine
from basestation.execution.past_windows import PastRange, PastWindows, ReplayedQuery
from basestation.planner.plan import Plan
from basestation.station.past_size import count_slices
from basestation.station.query_accounts import TIMER


@dataclass(frozen=True, slots=True)
class PastStart:
    """A query before it is divided at its seam, its windows that come from the archive, and the tuples of them by extent.

    One `is_resumed` has answered the windows before now.
    """

    plan: Plan
    past: PastRange
    recalled: Mapping[str, Batch]
    is_resumed: bool

    def make_engine(self, query: QueryRecord, engine: Engine) -> PastWindows | ReplayedQuery:
        """The engine that answers the past of a query which the engine of the station runs already."""
        number, tables, catalog = query.number, engine.stored_versions(), engine.catalog
        if not self.past.is_replayed:
            slices = count_slices(self.plan, self.past, {name: len(batch) for name, batch in self.recalled.items()})
            return PastWindows(
                number, self.plan, self.past, catalog, tables, self.recalled, slices, engine.first_due, TIMER
            )
        clock, reads = engine.clock, query.read_columns
        found = ReplayedQuery(
            number, self.plan, self.past, catalog, tables, self.recalled, clock, reads, engine.first_due, TIMER
        )
        if self.is_resumed:
            found.begin_at(clock + 1)
        return found
