"""Query scope: which readings and filter reports of an extent count for one query.

A mote sends the columns that its queries needed when it measured. A reading without a column of this query was sent for other
queries and does not count here. Neither does a filter report that predates the conditions of this query.
"""

from dataclasses import dataclass

from basestation.progress.watermark import NEVER


@dataclass(frozen=True, slots=True)
class QueryScope:
    """Readings that have all `columns`, and filter reports for ticks from `reports_from` on."""

    columns: frozenset[str] = frozenset()
    reports_from: int = -NEVER


WHOLE_SCOPE = QueryScope()
"""Every reading and every report counts."""
