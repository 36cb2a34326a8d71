"""Saved state: what other programs read from a data directory, whether its station runs or not; they change nothing in it."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from acquisition.extent import Catalog
from basestation.execution.ingest.stored_table import TableVersion
from basestation.execution.snapshot import SnapshotError
from basestation.station.journal_file import NAME, JournalError, check
from basestation.station.station_snapshot import restore_station


@dataclass(frozen=True, slots=True)
class SavedState:
    """The catalog of a station, and the versions of its stored extents by name, as of its newest snapshot."""

    catalog: Catalog
    tables: dict[str, list[TableVersion]]


def read_saved_state(folder: Path) -> SavedState:
    """Read the newest snapshot of a data directory. JournalError where there is none that this version reads."""
    check(folder / NAME, is_whole=False)
    database = sqlite3.connect(f"{(folder / NAME).absolute().as_uri()}?mode=ro", uri=True)
    try:
        row = database.execute("SELECT body FROM snapshots ORDER BY entry DESC LIMIT 1").fetchone()
    finally:
        database.close()
    if row is None:
        raise JournalError(f"the station of {folder} has written no snapshot yet", "name its deployment with -c")
    try:
        station = restore_station(row[0], {"transport": None})
    except SnapshotError as why:
        raise JournalError(f"the state in {folder} cannot be read: {why}", "name the deployment with -c") from why
    return SavedState(station.world.catalog, station.engine.stored_versions())
