"""Query rows: each query as clients see it, for the table of queries in the journal."""

import json
from collections.abc import Mapping

from acquisition.ticks import rfc3339_of
from basestation.controller.query_lifecycle import QueryRecord, QueryState
from basestation.history.answer import find_extents
from basestation.results.schema import schema_of
from basestation.results.wire import columns_as_json
from basestation.station.journal import QueryRow
from basestation.station.query_names import plain_name


def row_of(record: QueryRecord, tick_ms: int, account: Mapping[str, int] | None = None) -> QueryRow:
    """The row of a query; of one that is over with the counts of its account."""
    schema = schema_of(record.number, record.plan)
    body = {
        "number": record.number,
        "name": plain_name(record.name),
        "text": record.text,
        "state": record.state.value,
        "reason": record.reason,
        "kind": record.plan.kind,
        "columns": columns_as_json(schema.columns),
        "extents": sorted(extent.name for extent in find_extents(record.plan)),
        "submitted": rfc3339_of(record.submitted_at, tick_ms),
        "ends": None if record.last_tick is None else rfc3339_of(record.last_tick, tick_ms),
        "active": None if record.active is None else str(record.active),
        "awaited": sorted(record.awaited) if record.state is QueryState.DEPLOYING else [],
        "lifetime_violation": record.lifetime_violation,
    } | ({} if account is None else {"account": dict(account)})
    if schema.has_loops:
        body["loops"] = True
        if len(getattr(record.plan.statement, "loops", ())) > 1:
            body["several_loops"] = True
    return QueryRow(record.number, record.name, record.state.value, json.dumps(body))
