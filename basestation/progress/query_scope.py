"""Heeds: what of all that is known of an extent says something about a query, and what about others only.

Motes send what they were asked for when they measured. A reading that came without a column that a query reads was sent for
others, and is none of its readings; so is a report that one was filtered by conditions that are not its own.
"""

from dataclasses import dataclass

from basestation.progress.watermark import NEVER


@dataclass(frozen=True, slots=True)
class QueryScope:
    """Readings that came with all of these columns, and reports of ticks from `find_report_starts` on."""

    columns: frozenset[str] = frozenset()
    reports_from: int = -NEVER


WHOLE_SCOPE = QueryScope()
