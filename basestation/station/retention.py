"""Retention: what a station's file keeps of results, events and commands, and the count of what it dropped.

The oldest results go first, by their time over all queries. The newest results of each query stay, so that its numbers go on.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

DAY_MS = 86_400_000
LARGEST_LOG = 500_000_000
"""Bytes of entries that no snapshot covers yet; more means that snapshots fail."""

MEASURED = "results measured"
"""The fact that has a time in ms and the bytes of the results before it."""
FIRST_MS = -(2**63)


@dataclass(frozen=True, slots=True)
class Budget:
    """`numbers` are kept of each query, `numbers_of_user` of the queries of a user together, in equal parts; `result_bytes` of all together, compressed; `age_ms` of None is without limit."""

    numbers: int = 100_000
    result_bytes: int = 1_000_000_000
    age_ms: int | None = None
    events: int = 10_000
    commands: int = 10_000
    numbers_of_user: int | None = None


@dataclass(slots=True)
class Storage:
    """Bytes in the file now, and how many results, events and commands have ever been dropped."""

    result_bytes: int = 0
    log_bytes: int = 0
    dropped: dict[str, int] = field(default_factory=dict)


def trim(database: sqlite3.Connection, budget: Budget, now_ms: int) -> dict[str, int]:
    """Drop what is above the budget; how many results (by their numbers), events and commands went."""
    size = _measure_results(database)
    drops = [_drop_numbers(database, budget.numbers, budget.numbers_of_user)]
    if budget.age_ms is not None:
        drops.append(_drop_until(database, now_ms - budget.age_ms))
    size -= sum(freed for _, freed in drops)
    drops.append(_drop_bytes(database, size - budget.result_bytes))
    _keep_measure(database, size - drops[-1][1], now_ms)
    dropped = {
        "results": sum(count for count, _ in drops),
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
    results = _measure_results(database)
    log = database.execute("SELECT coalesce(sum(length(body)), 0) FROM entries").fetchone()[0]
    return Storage(results, log, dict(database.execute("SELECT what, count FROM dropped").fetchall()))


def _measure_results(database: sqlite3.Connection) -> int:
    """The bytes of all results. Those before the last trim were counted then: a start reads the newer ones only."""
    row = database.execute("SELECT value FROM facts WHERE name = ?", (MEASURED,)).fetchone()
    at_ms, size = (FIRST_MS, 0) if row is None else map(int, row[0].split())
    return size + _measure_since(database, at_ms)


def _measure_since(database: sqlite3.Connection, at_ms: int) -> int:
    statement = "SELECT coalesce(sum(size), 0) FROM results INDEXED BY results_by_age WHERE at_ms >= ?"
    return int(database.execute(statement, (at_ms,)).fetchone()[0])


def _keep_measure(database: sqlite3.Connection, size: int, now_ms: int) -> None:
    """Keep the bytes of the results before a time; later results have this time or a later one."""
    value = f"{now_ms} {size - _measure_since(database, now_ms)}"
    database.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (MEASURED, value))


def drop_oldest(database: sqlite3.Connection, table: str, keep: int) -> int:
    """Drop the oldest rows of a numbered table above `keep`; how many went."""
    statement = f"DELETE FROM {table} WHERE number <= (SELECT max(number) FROM {table}) - ?"
    return database.execute(statement, (keep,)).rowcount


def _drop_numbers(database: sqlite3.Connection, keep: int, of_user: int | None = None) -> tuple[int, int]:
    """Drop the oldest results of each query above its numbers; how many numbers and bytes went.

    A query keeps `keep` numbers, and no more than its own limit or its part of those `of_user`, which all queries of a user share equally.
    """
    numbers, size, owners = 0, 0, dict[int, str | None]()
    query = -1
    while (
        found := database.execute("SELECT min(query) FROM results WHERE query > ?", (query,)).fetchone()[0]
    ) is not None:
        query = found
        row = database.execute("SELECT owner FROM owners WHERE query = ?", (query,)).fetchone()
        owners[query] = None if row is None else str(row[0])
    counts = Counter(owners.values())
    for query, owner in owners.items():
        kept = keep if of_user is None or owner is None else min(keep, max(1, of_user // counts[owner]))
        newest = "SELECT behind FROM results WHERE query = ? ORDER BY first DESC LIMIT 1"
        own = database.execute("SELECT numbers FROM limits WHERE query = ?", (query,)).fetchone()
        last = database.execute(newest, (query,)).fetchone()[0] - (kept if own is None else min(kept, own[0]))
        statement = "DELETE FROM results WHERE query = ? AND first < ? AND behind <= ? RETURNING behind - first, size"
        for count, freed in database.execute(statement, (query, last, last)):
            numbers, size = numbers + count, size + freed
    return numbers, size


def _drop_until(database: sqlite3.Connection, at_ms: int) -> tuple[int, int]:
    """Drop the results up to a time, but for the newest of each query; how many numbers and bytes went."""
    statement = (
        "DELETE FROM results WHERE at_ms <= ? AND first <"
        " (SELECT max(first) FROM results AS other WHERE other.query = results.query) RETURNING behind - first, size"
    )
    numbers = size = 0
    for count, freed in database.execute(statement, (at_ms,)):
        numbers, size = numbers + count, size + freed
    return numbers, size


def _drop_bytes(database: sqlite3.Connection, surplus: int) -> tuple[int, int]:
    """Drop the oldest results that have `surplus` bytes together; how many numbers and bytes went."""
    if surplus > 0:
        for at_ms, size in database.execute("SELECT at_ms, size FROM results INDEXED BY results_by_age ORDER BY at_ms"):
            surplus -= size
            if surplus <= 0:
                return _drop_until(database, at_ms)
    return 0, 0
