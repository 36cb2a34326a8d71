"""Hand-over: what a station leaves when it stops, for a program of another version, which cannot read its state.

It is a fact of the journal, as JSON: the queries that may answer, the extents that users declared, and the tables as they are. All
readings are in the archive by then. The program that takes the station over begins where it stopped, and resumes its queries there.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from basestation.archive.memory import MemoryArchive
from basestation.controller.active_hours import parse_active_hours
from basestation.controller.admission import bind_single_query
from basestation.controller.query_lifecycle import LIVE, QueryRecord, QueryState
from basestation.controller.world import World
from basestation.station.declared_extents import find_declarations
from basestation.station.journal import Journal, QueryRow, Upload
from basestation.station.query_changes import TAKEN_OVER
from basestation.station.recovery import RESTART_LINKS, MakeStation
from basestation.station.service import Station
from basestation.station.uploads import LOAD, apply_upload, encode_table
from gateway.diagnostics import DiagnosticError
from gateway.transports import Transport

HANDOVER = "handover"
"""The name of the fact."""


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A station as of the time in ms at which another program left it, and the rows of queries that do not run any more."""

    station: Station
    at_ms: int
    ended: tuple[QueryRow, ...]


def describe_handover(station: Station, journal: Journal, at_ms: int) -> str | None:
    """The hand-over of a station behind the last entry of its journal; None where something is in its state alone."""
    held, declarations = station.archive, find_declarations(journal)
    is_archived = not (isinstance(held, MemoryArchive) and held.rows)
    if not is_archived or declarations is None or station.engine.pending_corrections():
        return None
    newest = {name: versions[-1] for name, versions in station.engine.stored_versions().items() if versions}
    queries = station.world.queries.values()
    return json.dumps(
        {
            "entry": journal.last,
            "at_ms": at_ms,
            "declared": list(declarations.values()),
            "tables": {name: b64encode(encode_table(version.columns)).decode() for name, version in newest.items()},
            "last_number": station.world.last_number,
            "queries": [_describe(query) for query in queries if not query.has_ended],
        }
    )


def _describe(query: QueryRecord) -> dict[str, object]:
    return {
        "number": query.number,
        "text": query.text,
        "name": query.name,
        "state": query.state.value,
        "reason": query.reason,
        "submitted_at": query.submitted_at,
        "last_tick": query.last_tick,
        "active": None if query.active is None else str(query.active),
    }


def take_over(journal: Journal, make: MakeStation, transport: Transport) -> TakenOver | None:
    """The station of a hand-over; None where there is none, or the program that wrote it has run again since."""
    text = journal.fact(HANDOVER)
    if text is None:
        return None
    given = json.loads(text)
    later = [entry.kind for _, entry in journal.entries(given["entry"])]
    if len(later) < journal.last - given["entry"] or set(later) - {RESTART_LINKS}:
        return None
    now_ms = given["at_ms"]
    station = make(transport, now_ms)
    for declaration in given["declared"]:
        station.declare(declaration, now_ms)
    for extent, body in given["tables"].items():
        if extent in station.world.catalog.extents:  # else it is another deployment, which the start refuses
            apply_upload(Upload(LOAD, now_ms, extent, b64decode(body)), station)
    station.world = replace(station.world, last_number=given["last_number"])
    ended = []
    for about in given["queries"]:
        if about["state"] == QueryState.DRAINING.value:
            ended.append(_ended_row(about, journal, QueryState.STOPPED, TAKEN_OVER))
            continue
        try:
            station.adopt(_record_of(about, station.world), now_ms)
        except DiagnosticError as why:
            ended.append(_ended_row(about, journal, QueryState.FAILED, str(why)))
    return TakenOver(station, now_ms, tuple(ended))


def _record_of(about: Mapping[str, Any], world: World) -> QueryRecord:
    """The query, paused where it ran. DiagnosticError where this program does not take its text."""
    state, reason = QueryState(about["state"]), about["reason"]
    if state in LIVE:
        state, reason = QueryState.PAUSED, TAKEN_OVER
    return QueryRecord(
        about["number"],
        about["text"],
        bind_single_query(about["text"], world),
        state=state,
        last_tick=about["last_tick"],
        submitted_at=about["submitted_at"],
        name=about["name"],
        reason=reason,
        active=None if about["active"] is None else parse_active_hours(about["active"]),
    )


def _ended_row(about: Mapping[str, Any], journal: Journal, state: QueryState, why: str) -> QueryRow:
    body = json.loads(journal.query(about["number"]) or "{}") | {"state": state.value, "reason": why}
    return QueryRow(about["number"], about["name"], state.value, json.dumps(body))
