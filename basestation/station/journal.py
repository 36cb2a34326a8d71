"""Journal: what a station keeps in its file (`basestation.station.journal_file`).

It holds what came in (frames and commands with their times), what was answered, and snapshots of the whole station. A
station is a function of what came in, so the newest snapshot and the entries behind it are the station (docs/decisions/0150).
One thread writes; any may read results, their bounds, queries and events, and sees what is committed.
"""

import sqlite3
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from basestation.archive.manifest import (
    NO_CHANGE,
    ArchiveFile,
    FileChange,
    apply_change,
    forget_files,
    list_anew,
    read_files,
)
from basestation.station.journal_file import NAME, RESTORE, JournalError, lock, new_epoch, open_database, unlock
from basestation.station.retention import Budget, count_dropped, measure, trim

NO_FACTS: Mapping[str, str] = {}
_STEP = struct.Struct(">qI")
_UPLOAD = struct.Struct(">qH")


@dataclass(frozen=True, slots=True)
class Steps:
    """Consecutive steps of the station: (time in ms, bytes that had arrived)."""

    looks: Sequence[tuple[int, bytes]]
    kind = "steps"

    def encode(self) -> bytes:
        return zlib.compress(b"".join(_STEP.pack(now, len(chunk)) + chunk for now, chunk in self.looks), 1)

    @classmethod
    def decode(cls, body: bytes) -> "Steps":
        data, at, looks = zlib.decompress(body), 0, []
        while at < len(data):
            now, size = _STEP.unpack_from(data, at)
            at += _STEP.size + size
            looks.append((now, data[at - size : at]))
        return cls(looks)


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a user at a time in ms: `submit` with its text, `stop` with a number (`basestation.station.commands`)."""

    kind: str
    now_ms: int
    argument: str

    def encode(self) -> bytes:
        return self.now_ms.to_bytes(8, "big", signed=True) + self.argument.encode()

    @classmethod
    def decode(cls, kind: str, body: bytes) -> "Command":
        return cls(kind, int.from_bytes(body[:8], "big", signed=True), body[8:].decode())


@dataclass(frozen=True, slots=True)
class Upload:
    """Tuples or a table of an extent at a time in ms: `push` or `load` of a client, or `recall` from the archive (`basestation.station.uploads`)."""

    kind: str
    now_ms: int
    extent: str
    columns: bytes

    def encode(self) -> bytes:
        name = self.extent.encode()
        return _UPLOAD.pack(self.now_ms, len(name)) + name + self.columns

    @classmethod
    def decode(cls, kind: str, body: bytes) -> "Upload":
        now_ms, length = _UPLOAD.unpack_from(body)
        end = _UPLOAD.size + length
        return cls(kind, now_ms, body[_UPLOAD.size : end].decode(), body[end:])


Entry = Steps | Command | Upload
UPLOADS = "push", "load", "recall"


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command that was carried out, for the history of queries; `query` is None where it was refused."""

    command: Command
    key: str | None
    query: int | None
    owner: str | None = None
    """Of the query that it made."""
    keep: int | None = None
    """How many of the newest updates of the query that it made are kept; None for as many as of every other."""


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query as clients see it: `body` is a JSON object."""

    number: int
    name: str | None
    state: str
    body: str


@dataclass(frozen=True, slots=True)
class ResultChunk:
    """JSON lines of one query's feed, numbered from `first` to before `behind`, given at a time in ms."""

    query: int
    first: int
    behind: int
    lines: str
    at_ms: int = 0


class Journal:
    """One station's file. One process may hold a data directory at a time; the lock dies with it."""

    def __init__(self, folder: Path) -> None:
        """Open the data directory, or make it. JournalError where it cannot be used."""
        self.path = folder / NAME
        self._lock = lock(folder)
        try:
            self._db, self.is_migrated = open_database(self.path)
        except BaseException:
            unlock(self._lock)
            raise
        self.on_results: list[Callable[[], None]] = []
        """Called after each commit of results, on the thread that commits."""
        self.list_version = 0
        """Grows after each commit that changes queries or their owners."""
        self._reading = threading.Lock()
        self._reader = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self.last = self._number("SELECT max(number) FROM entries")
        try:
            self.storage = measure(self._db)
        except sqlite3.DatabaseError as why:
            self.close()
            raise JournalError(f"{self.path} is damaged: {why}", RESTORE) from why
        if (epoch := self.fact("epoch")) is None:
            self.state_fact("epoch", epoch := new_epoch())
        self.epoch = epoch
        """Of the numbers of queries and results: another one where they begin anew, as after a restore."""

    def close(self) -> None:
        """Give the directory back."""
        with self._reading:
            self._reader.close()
        self._db.close()
        unlock(self._lock)

    def commit(self, entries: Iterable[Entry], results: Sequence[ResultChunk] = (),
               events: Iterable[tuple[int, str, str]] = (), commands: Sequence[CommandRecord] = (),
               queries: Sequence[QueryRow] = (), files: FileChange = NO_CHANGE,
               facts: Mapping[str, str] = NO_FACTS) -> None:  # fmt: skip
        """Keep all of it for good or, with sqlite3.Error, nothing. An event is (time in ms, kind, JSON)."""
        number = self.last
        with self._db:
            for entry in entries:
                number += 1
                self._db.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, entry.kind, entry.encode()))
            self._db.executemany(
                "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (r.query, r.first, r.behind, r.at_ms, len(body := zlib.compress(r.lines.encode(), 1)), body)
                    for r in results
                ),
            )
            self._db.executemany("INSERT INTO events (at_ms, kind, body) VALUES (?, ?, ?)", events)
            self._db.executemany(
                "INSERT INTO commands (at_ms, kind, argument, idempotency_key, query) VALUES (?, ?, ?, ?, ?)",
                ((c.command.now_ms, c.command.kind, c.command.argument, c.key, c.query) for c in commands),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO owners VALUES (?, ?)",
                ((c.query, c.owner) for c in commands if c.query is not None and c.owner is not None),
            )
            self._db.executemany(
                "INSERT OR IGNORE INTO limits VALUES (?, ?)",
                ((c.query, c.keep) for c in commands if c.query is not None and c.keep is not None),
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO queries VALUES (?, ?, ?, ?)",
                ((query.number, query.name, query.state, query.body) for query in queries),
            )
            apply_change(self._db, files)
            count_dropped(self._db, {"archived readings": files.dropped})
            self._db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        self.last = number
        if queries or commands:
            self.list_version += 1
        if results:
            for wake in self.on_results:
                wake()

    def entries(self, after: int) -> Iterator[tuple[int, Entry]]:
        """The entries above a number, with theirs, in their order."""
        rows = self._db.execute("SELECT number, kind, body FROM entries WHERE number > ? ORDER BY number", (after,))
        for number, kind, body in rows:
            try:
                entry = _decode(kind, body)
            except (zlib.error, struct.error, UnicodeDecodeError) as why:
                raise JournalError(f"{self.path} is damaged: entry {number}: {why}", RESTORE) from why
            yield number, entry

    def save_snapshot(self, entry: int, at_ms: int, body: bytes, keep: int = 2) -> None:
        """Keep the state behind an entry. The oldest snapshots but `keep` go, and the entries that the rest covers."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", (entry, at_ms, body))
            kept = self._db.execute("SELECT entry FROM snapshots ORDER BY entry DESC LIMIT ?", (keep,)).fetchall()
            oldest = kept[-1][0]
            self._db.execute("DELETE FROM snapshots WHERE entry < ?", (oldest,))
            if len(kept) == keep:
                self._db.execute("DELETE FROM entries WHERE number <= ? AND number < ?", (oldest, self.last))

    def snapshots(self) -> Iterator[tuple[int, int, bytes]]:
        """(number of the last entry in it, its time in ms, state), the newest first."""
        yield from self._db.execute("SELECT entry, at_ms, body FROM snapshots ORDER BY entry DESC")

    @property
    def has_snapshots(self) -> bool:
        """Whether there is a snapshot, readable or not."""
        return self._number("SELECT count(*) FROM snapshots") > 0

    def replace_snapshots(self, at_ms: int, body: bytes) -> None:
        """Keep the state behind the last entry, and no other; or, with sqlite3.Error, leave all as it is."""
        with self._db:
            self._db.execute("DELETE FROM snapshots")
            self._db.execute("INSERT INTO snapshots VALUES (?, ?, ?)", (self.last, at_ms, body))

    @property
    def last_query(self) -> int:
        """The greatest number of a query that was given."""
        return self._number("SELECT max(number) FROM queries") or 0

    @property
    def first(self) -> int:
        """The number of the oldest entry that is left; one more than the last where none is."""
        return self._number("SELECT min(number) FROM entries") or self.last + 1

    def results(self, query: int, after: int, limit: int) -> list[ResultChunk]:
        """Chunks of a query's feed that hold numbers above `after`, as many as hold `limit` numbers."""
        found: list[ResultChunk] = []
        count = 0
        statement = (  # the chunk that holds the number is found by the key, so that those before it are not read
            "SELECT query, first, behind, body FROM results WHERE query = ?1 AND first >= coalesce("
            "(SELECT max(first) FROM results WHERE query = ?1 AND first <= ?2), 0) AND behind > ?2 ORDER BY first"
        )
        with self._reading:
            for number, first, behind, body in self._reader.execute(statement, (query, after + 1)):
                found.append(ResultChunk(number, first, behind, zlib.decompress(body).decode()))
                count += behind - max(first, after + 1)
                if count >= limit:
                    break
        return found

    def bounds(self, query: int) -> tuple[int, int]:
        """(the first number of a query's feed that is kept, the one that the next will have); (1, 1) of an empty feed."""
        statement = (  # each by one look at the key: waiting clients ask five times a second
            "SELECT (SELECT min(first) FROM results WHERE query = ?1),"
            " (SELECT behind FROM results WHERE query = ?1 ORDER BY first DESC LIMIT 1)"
        )
        with self._reading:
            first, behind = self._reader.execute(statement, (query,)).fetchone()
        return (1, 1) if first is None else (first, behind)

    def kept_results(self, query: int) -> dict[str, int]:
        """How many numbers of a query's feed are kept, and the bytes that they take."""
        statement = "SELECT coalesce(sum(behind - first), 0), coalesce(sum(size), 0) FROM results WHERE query = ?"
        with self._reading:
            count, size = self._reader.execute(statement, (query,)).fetchone()
        return {"results_kept": count, "result_bytes": size}

    def number_before(self, query: int, at_ms: int) -> int:
        """The number of the last result that a query gave before a time; 0 where there is none."""
        low, high = self.bounds(query)  # the sought number is below one of these; times grow with numbers
        statement = (
            "SELECT first, behind, at_ms FROM results WHERE query = ? AND first <= ? ORDER BY first DESC LIMIT 1"
        )
        while low < high:
            middle = (low + high) // 2
            with self._reading:
                row = self._reader.execute(statement, (query, middle)).fetchone()
            if row is None or row[2] < at_ms:
                low = middle + 1 if row is None else row[1]
            else:
                high = row[0]
        return low - 1

    def trim(self, budget: Budget, now_ms: int) -> dict[str, int]:
        """Drop what is above a budget; how many results (by their numbers), events and commands went."""
        with self._db:
            dropped = trim(self._db, budget, now_ms)
        self.storage = measure(self._db)
        return dropped

    def command_of(self, key: str) -> tuple[str, str, int | None] | None:
        """(kind, argument, query) of the command that came with an idempotency key."""
        statement = "SELECT kind, argument, query FROM commands WHERE idempotency_key = ?"
        with self._reading:
            found: tuple[str, str, int | None] | None = self._reader.execute(statement, (key,)).fetchone()
        return found

    def events(
        self, after: int, limit: int, query: int | None = None, owner: str | None = None, kind: str | None = None
    ) -> list[tuple[int, int, str, str]]:
        """(number, time in ms, kind, JSON) of the events above a number, all or those about a query or of a kind.

        With `owner`, none about the queries of others.
        """
        statement = (
            "SELECT number, at_ms, kind, body FROM events WHERE number > ?1"
            " AND (?3 IS NULL OR json_extract(body, '$.query') = ?3) AND (?5 IS NULL OR kind = ?5)"
            " AND (?4 IS NULL OR json_extract(body, '$.query') IS NULL OR EXISTS"
            " (SELECT 1 FROM owners WHERE query = json_extract(body, '$.query') AND owner = ?4)) ORDER BY number LIMIT ?2"
        )
        with self._reading:
            return self._reader.execute(statement, (after, limit, query, owner, kind)).fetchall()

    def last_event(self) -> int:
        """The number of the newest event, 0 where there was none."""
        with self._reading:
            return int(self._reader.execute("SELECT max(number) FROM events").fetchone()[0] or 0)

    def queries(
        self, after: int, limit: int, state: str | None = None, owner: str | None = None, extent: str | None = None
    ) -> list[tuple[str, str | None]]:
        """(JSON, owner) of the queries with numbers above `after`, the oldest first: all, or those in a state, of an owner, over an extent."""
        of_state = "" if state is None else "state = :state AND"
        if extent is not None:
            of_state += " EXISTS (SELECT 1 FROM json_each(body, '$.extents') WHERE value = :extent) AND"
        if owner is None:
            found = f"queries LEFT JOIN owners ON query = number WHERE {of_state} number > :after ORDER BY number"
        else:  # by the owner's index: not one row of another is read
            found = f"owners CROSS JOIN queries ON number = query WHERE {of_state} owner = :owner AND query > :after ORDER BY query"
        given = {"state": state, "after": after, "limit": limit, "owner": owner, "extent": extent}
        with self._reading:
            return self._reader.execute(f"SELECT body, owner FROM {found} LIMIT :limit", given).fetchall()

    def owner(self, query: int) -> str | None:
        """The user who submitted a query, or None."""
        with self._reading:
            found = self._reader.execute("SELECT owner FROM owners WHERE query = ?", (query,)).fetchone()
        return None if found is None else str(found[0])

    def query(self, number: int) -> str | None:
        """The JSON of a query, or None."""
        with self._reading:
            found = self._reader.execute("SELECT body FROM queries WHERE number = ?", (number,)).fetchone()
        return None if found is None else str(found[0])

    def query_named(self, names: tuple[str, str], owner: str | None) -> int | None:
        """The number of the newest query of an owner that has one of two names, or None."""
        statement = (
            "SELECT max(number) FROM queries LEFT JOIN owners ON query = number WHERE name IN (?, ?) AND owner IS ?"
        )
        with self._reading:
            found = self._reader.execute(statement, (*names, owner)).fetchone()
        return None if found[0] is None else int(found[0])

    def queries_named(self, name: str, suffix: str) -> list[tuple[int, str | None]]:
        """(number, owner) of the newest query of each owner that has a name, or one that ends with a suffix."""
        statement = (
            "SELECT max(number), owner FROM queries LEFT JOIN owners ON query = number"
            " WHERE name = ?1 OR substr(name, -length(?2)) = ?2 GROUP BY owner"
        )
        with self._reading:
            return self._reader.execute(statement, (name, suffix)).fetchall()

    def query_numbers(self, owner: str | None = None) -> tuple[int, int] | None:
        """The numbers of the oldest and the newest query, of an owner or of all, or None."""
        statement = "SELECT (SELECT min(number) FROM queries), max(number) FROM queries"
        if owner is not None:
            statement = "SELECT min(query), max(query) FROM owners WHERE owner = ?"
        with self._reading:
            first, last = self._reader.execute(statement, () if owner is None else (owner,)).fetchone()
        return None if first is None else (first, last)

    def archive_files(self) -> list[ArchiveFile]:
        """The files that the archive should have, and those that are to leave it."""
        return read_files(self._db)

    def list_archive_anew(self, files: Iterable[ArchiveFile]) -> None:
        """Let the archive have these files and no other."""
        with self._db:
            list_anew(self._db, files)

    def forget_archive_files(self, names: Iterable[str]) -> None:
        """Strike files off the manifest that have left the archive."""
        with self._db:
            forget_files(self._db, names)

    def fact(self, name: str) -> str | None:
        """A fact about the station under its name."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def state_fact(self, name: str, value: str) -> None:
        """Keep a fact under its name."""
        with self._db:
            self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _number(self, statement: str) -> int:
        return int(self._db.execute(statement).fetchone()[0] or 0)


def _decode(kind: str, body: bytes) -> Entry:
    if kind == Steps.kind:
        return Steps.decode(body)
    return Upload.decode(kind, body) if kind in UPLOADS else Command.decode(kind, body)
