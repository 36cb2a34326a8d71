"""Schema migration: the steps that bring the file of an older station to the schema of this program, one version at a time.

A step works on the file inside one transaction with all others (`basestation.station.journal_file`), so it is done whole or not at all.
"""

import json
import sqlite3
from collections.abc import Callable


def migrate(database: sqlite3.Connection, version: int, target: int) -> None:
    """Bring a file from its version to a target version. The caller commits."""
    for step in _STEPS[version - OLDEST : target - OLDEST]:
        step(database)


def _add_queries(database: sqlite3.Connection) -> None:
    """Version 2: queries have a table, and the argument of `submit` is a JSON object. A start fills the table."""
    database.execute(
        "CREATE TABLE queries (number INTEGER PRIMARY KEY, name TEXT, state TEXT NOT NULL, body TEXT NOT NULL) STRICT"
    )
    database.execute("CREATE INDEX queries_by_name ON queries (name, number) WHERE name IS NOT NULL")
    database.execute("CREATE INDEX queries_by_state ON queries (state, number)")
    for number, body in database.execute("SELECT number, body FROM entries WHERE kind = 'submit'").fetchall():
        given = body[:8] + _as_target(body[8:].decode()).encode()  # 8 bytes of time come first
        database.execute("UPDATE entries SET body = ? WHERE number = ?", (given, number))
    for number, text in database.execute("SELECT number, argument FROM commands WHERE kind = 'submit'").fetchall():
        database.execute("UPDATE commands SET argument = ? WHERE number = ?", (_as_target(text), number))


def _as_target(text: str) -> str:
    return json.dumps({"text": text}, ensure_ascii=False)


def _add_times_of_results(database: sqlite3.Connection) -> None:
    """Version 3: results have times and sizes. Those of before get the newest time in the file, so they age from then on."""
    database.execute("ALTER TABLE results RENAME TO results_before")
    database.execute(
        "CREATE TABLE results (query INTEGER NOT NULL, first INTEGER NOT NULL, behind INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
        " size INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (query, first)) STRICT, WITHOUT ROWID"
    )
    newest = " UNION ALL ".join(f"SELECT max(at_ms) FROM {table}" for table in ("snapshots", "commands", "events"))
    (at_ms,) = database.execute(f"SELECT coalesce(max(at), 0) FROM (SELECT 0 AS at UNION ALL {newest})").fetchone()
    database.execute(
        "INSERT INTO results SELECT query, first, behind, ?, length(body), body FROM results_before", (at_ms,)
    )
    database.execute("DROP TABLE results_before")
    database.execute("CREATE INDEX results_by_age ON results (at_ms, size)")
    database.execute("CREATE TABLE dropped (what TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT")


def _begin_failures(database: sqlite3.Connection) -> None:
    """Version 4: the log has how queries ran out of memory. Entries of before have none, and a start takes them as they go."""
    database.execute(
        "INSERT OR REPLACE INTO facts VALUES ('failures are kept after', (SELECT coalesce(max(number), 0) FROM entries))"
    )


OLDEST = 1
"""The first version that a step begins at."""
_STEPS: tuple[Callable[[sqlite3.Connection], None], ...] = (
    _add_queries,
    _add_times_of_results,
    _begin_failures,
)
