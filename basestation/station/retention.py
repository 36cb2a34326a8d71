"""Retention: what a station's file keeps of results, events and commands, and the count of what it dropped.

The oldest results go first, by their time over all queries. The newest results of each query stay, so that its numbers go on.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

DAY_MS = 86_400_000
LARGEST_LOG = 500_000_000
"""Bytes of entries that no snapshot covers yet; more means that snapshots fail."""


@dataclass(frozen=True, slots=True)
class Budget:
    """`numbers` are kept of each query, `result_bytes` of all together, compressed; `age_ms` of None is without limit."""

    numbers: int = 100_000
    result_bytes: int = 1_000_000_000
    age_ms: int | None = None
    events: int = 10_000
    commands: int = 10_000


@dataclass(slots=True)
class Storage:
    """Bytes in the file now, and how many results, events and commands have ever been dropped."""

    result_bytes: int = 0
    log_bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


def trim(database: sqlite3.Connection, budget: Budget, now_ms: int) -> dict[str, int]:
    """Drop what is above the budget; how many results (by their numbers), events and commands went."""
    results = _drop_numbers(database, budget.numbers)
    if budget.age_ms is not None:
        results += _drop_until(database, now_ms - budget.age_ms)
    results += _drop_bytes(database, budget.result_bytes)
    dropped = {
        "results": results,
        "events": drop_oldest(database, "events", budget.events),
        "commands": drop_oldest(database, "commands", budget.commands),
    }
    count_dropped(database, dropped)
    return dropped


def count_dropped(database: sqlite3.Connection, dropped: Mapping[str, int]) -> None:
    """Add to what has ever been dropped."""
    database.executemany(
        "INSERT INTO dropped VALUES (?, ?) ON CONFLICT (what) DO UPDATE SET count = count + excluded.count",
        [(what, count) for what, count in dropped.items() if count],
    )


def measure(database: sqlite3.Connection) -> Storage:
    """Measure the file as it is now."""
    results = database.execute("SELECT coalesce(sum(size), 0) FROM results INDEXED BY results_by_age").fetchone()[0]
    log = database.execute("SELECT coalesce(sum(length(body)), 0) FROM entries").fetchone()[0]
    return Storage(results, log, dict(database.execute("SELECT what, count FROM dropped").fetchall()))


def drop_oldest(database: sqlite3.Connection, table: str, keep: int) -> int:
    """Drop the oldest rows of a numbered table above `keep`; how many went."""
    statement = f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?"
    return database.execute(statement, (keep,)).rowcount


def _drop_numbers(database: sqlite3.Connection, keep: int) -> int:
    """Drop the oldest results of each query above `keep` numbers."""
    dropped, query = 0, -1
    while (
        found := database.execute("SELECT min(query) FROM results WHERE query > ?", (query,)).fetchone()[0]
    ) is not None:
        query = found
        newest = "SELECT behind FROM results WHERE query = ? ORDER BY first DESC LIMIT 1"
        last = database.execute(newest, (query,)).fetchone()[0] - keep
        statement = "DELETE FROM results WHERE query = ? AND first < ? AND behind <= ? RETURNING behind - first"
        dropped += sum(count for (count,) in database.execute(statement, (query, last, last)))
    return dropped


def _drop_until(database: sqlite3.Connection, at_ms: int) -> int:
    """Drop the results up to a time, but for the newest of each query."""
    statement = (
        "DELETE FROM results WHERE at_ms <= ? AND first <"
        " (SELECT max(first) FROM results AS other WHERE other.query = results.query) RETURNING behind - first"
    )
    return sum(count for (count,) in database.execute(statement, (at_ms,)))


def _drop_bytes(database: sqlite3.Connection, keep: int) -> int:
    """Drop the oldest results until no more than `keep` bytes are left."""
    surplus = measure(database).result_bytes - keep
    if surplus <= 0:
        return 0
    for at_ms, size in database.execute("SELECT at_ms, size FROM results INDEXED BY results_by_age ORDER BY at_ms"):
        surplus -= size
        if surplus <= 0:
            return _drop_until(database, at_ms)
    return 0
