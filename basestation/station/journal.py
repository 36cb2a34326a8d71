"""Journal: the durable file of a station, `station.db`, and the lock of its data directory.

It holds what came in (frames and commands with their times), what was answered, and snapshots of the whole station. A
station is a function of what came in, so the newest snapshot and the entries behind it are the station (docs/decisions/0150).
SQLite in WAL mode with synchronous=FULL: a commit that returned survives a power cut. One thread writes; any may read
results, their bounds and events, and sees what is committed.
"""

import fcntl
import os
import sqlite3
import struct
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from gateway.errors import MoteloomError

APPLICATION = 0x4D4F5445  # "MOTE"
VERSION = 1
NAME = "station.db"
LOCK = "lock"
_STEP = struct.Struct(">qI")
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE results (
  query INTEGER NOT NULL, first INTEGER NOT NULL, behind INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (query, first)
) STRICT, WITHOUT ROWID;
CREATE TABLE snapshots (entry INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE commands (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, argument TEXT NOT NULL,
  idempotency_key TEXT UNIQUE, query INTEGER
) STRICT;
CREATE TABLE events (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL
) STRICT;
"""


class JournalError(MoteloomError):
    """The data directory cannot be used; `help` says what to do."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


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
    """A command of a user at a time in ms: `submit` with its text, `stop` with a number."""

    kind: str
    now_ms: int
    argument: str

    def encode(self) -> bytes:
        return self.now_ms.to_bytes(8, "big", signed=True) + self.argument.encode()

    @classmethod
    def decode(cls, kind: str, body: bytes) -> "Command":
        return cls(kind, int.from_bytes(body[:8], "big", signed=True), body[8:].decode())


Entry = Steps | Command


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """A command that was carried out, for the history of queries; `query` is None where it was refused."""

    command: Command
    key: str | None
    query: int | None


@dataclass(frozen=True, slots=True)
class ResultChunk:
    """JSON lines of one query's feed, numbered from `first` to before `behind`."""

    query: int
    first: int
    behind: int
    lines: str


class Journal:
    """One station's file. One process may hold a data directory at a time; the lock dies with it."""

    def __init__(self, folder: Path) -> None:
        """Open the data directory, or make it. JournalError where it cannot be used."""
        self.path = folder / NAME
        self._lock = _lock(folder)
        try:
            self._db = _open(self.path)
        except BaseException:
            _unlock(self._lock)
            raise
        self._reading = threading.Lock()
        self._reader = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self.last = self._number("SELECT max(number) FROM entries")

    def close(self) -> None:
        """Give the directory back."""
        with self._reading:
            self._reader.close()
        self._db.close()
        _unlock(self._lock)

    def commit(self, entries: Iterable[Entry], results: Iterable[ResultChunk] = (),
               events: Iterable[tuple[int, str, str]] = (), commands: Iterable[CommandRecord] = ()) -> None:  # fmt: skip
        """Keep all of it for good or, with sqlite3.Error, nothing. An event is (time in ms, kind, JSON)."""
        number = self.last
        with self._db:
            for entry in entries:
                number += 1
                self._db.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, entry.kind, entry.encode()))
            self._db.executemany(
                "INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?)",
                ((r.query, r.first, r.behind, zlib.compress(r.lines.encode(), 1)) for r in results),
            )
            self._db.executemany("INSERT INTO events (at_ms, kind, body) VALUES (?, ?, ?)", events)
            self._db.executemany(
                "INSERT INTO commands (at_ms, kind, argument, idempotency_key, query) VALUES (?, ?, ?, ?, ?)",
                ((c.command.now_ms, c.command.kind, c.command.argument, c.key, c.query) for c in commands),
            )
        self.last = number

    def entries(self, after: int) -> Iterator[tuple[int, Entry]]:
        """The entries above a number, with theirs, in their order."""
        rows = self._db.execute("SELECT number, kind, body FROM entries WHERE number > ? ORDER BY number", (after,))
        for number, kind, body in rows:
            try:
                entry: Entry = Steps.decode(body) if kind == Steps.kind else Command.decode(kind, body)
            except (zlib.error, struct.error, UnicodeDecodeError) as why:
                raise JournalError(
                    f"{self.path} is damaged: entry {number}: {why}", "restore a backup: moteloom restore FILE"
                ) from why
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

    def drop_results(self, keep: int) -> int:
        """Drop the oldest results of each query above `keep` numbers; how many chunks went."""
        dropped = 0
        query: int | None = -1
        with self._db:
            while query is not None and (query := self._next_query(query)) is not None:
                newest = "SELECT behind FROM results WHERE query = ? ORDER BY first DESC LIMIT 1"
                last = self._db.execute(newest, (query,)).fetchone()[0] - keep
                statement = "DELETE FROM results WHERE query = ? AND first < ? AND behind <= ?"
                dropped += self._db.execute(statement, (query, last, last)).rowcount
        return dropped

    def _next_query(self, query: int) -> int | None:
        """The number of the next query above this one that has results."""
        found: tuple[int | None] = self._db.execute(
            "SELECT min(query) FROM results WHERE query > ?", (query,)
        ).fetchone()
        return found[0]

    def drop_events(self, keep: int) -> int:
        """Drop the oldest events above `keep`; how many went."""
        with self._db:
            statement = "DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?"
            return self._db.execute(statement, (keep,)).rowcount

    def command_of(self, key: str) -> tuple[str, str, int | None] | None:
        """(kind, argument, query) of the command that came with an idempotency key."""
        statement = "SELECT kind, argument, query FROM commands WHERE idempotency_key = ?"
        with self._reading:
            found: tuple[str, str, int | None] | None = self._reader.execute(statement, (key,)).fetchone()
        return found

    def events(self, after: int, limit: int) -> list[tuple[int, int, str, str]]:
        """(number, time in ms, kind, JSON) of the events above a number."""
        statement = "SELECT number, at_ms, kind, body FROM events WHERE number > ? ORDER BY number LIMIT ?"
        with self._reading:
            return self._reader.execute(statement, (after, limit)).fetchall()

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


def check(path: Path) -> None:
    """JournalError where a file is not a whole database of a station that this program reads."""
    if not path.is_file():
        raise JournalError(f"there is no file {path}", "name a file that `moteloom backup` wrote")
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        _check(database, path)
    finally:
        database.close()


def backup(folder: Path, path: Path) -> None:
    """Copy a station's file as it is now, also while the station goes on; the copy takes the place of `path` when it is whole."""
    if path.absolute().parent.resolve() == folder.resolve():
        raise JournalError(f"{path} is in the data directory itself", "name a file in another folder")
    check(folder / NAME)
    _copy(folder / NAME, staged := path.with_name(path.name + ".part"))
    try:
        os.replace(staged, path)
    except OSError as why:
        staged.unlink()
        raise JournalError(f"{path} cannot be replaced: {why.strerror}", "name a file") from why
    _sync(path.absolute().parent)


def restore(source: Path, folder: Path) -> None:
    """Put a backup in the place of a station's file, after checking it; the file of before is kept beside it."""
    check(source)
    if source.absolute().parent.resolve() == folder.resolve() and source.name == NAME:
        raise JournalError(f"{source} is the station's own file", "name a file that `moteloom backup` wrote")
    lock = _lock(folder)
    try:
        target, staged, before = folder / NAME, folder / (NAME + ".part"), folder / (NAME + ".before-restore")
        _copy(source, staged)
        for suffix in ("-shm", "-wal", ""):  # commits after the last checkpoint are in the -wal, so it moves along
            (found, kept) = (folder / f"{each.name}{suffix}" for each in (target, before))
            if found.exists():
                os.replace(found, kept)
            else:
                kept.unlink(missing_ok=True)
        os.replace(staged, target)
        _sync(folder)
    finally:
        _unlock(lock)


def _copy(source: Path, target: Path) -> None:
    """Copy a whole database, with what its -wal holds, into one new file. JournalError where that is not possible."""
    origin = copy = None
    try:
        target.unlink(missing_ok=True)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        origin = sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)
        copy = sqlite3.connect(target)
        origin.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.close()
        _sync(target)
    except (OSError, sqlite3.Error) as why:
        with suppress(OSError):
            target.unlink(missing_ok=True)
        raise JournalError(f"{source} cannot be copied to {target}: {why}", "choose a folder with room") from why
    finally:
        for each in (origin, copy):
            if each is not None:
                each.close()


def _lock(folder: Path) -> IO[str]:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = open(folder / LOCK, "w", encoding="utf-8")  # held as long as the station runs
    except OSError as why:
        raise JournalError(
            f"the data directory {folder} cannot be used: {why.strerror}", "choose another with --data"
        ) from why
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise JournalError(
            f"another station uses the data directory {folder}", "stop that one, or choose another with --data"
        ) from None
    return file


def _unlock(file: IO[str]) -> None:
    """Give the lock back at once: a copy of this process that has not closed its files yet would keep it otherwise."""
    fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


def _open(path: Path) -> sqlite3.Connection:
    is_new = not path.exists() or path.stat().st_size == 0
    if is_new:  # its -wal gets the same mode: the results are the owner's
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    database = sqlite3.connect(path, isolation_level="IMMEDIATE", check_same_thread=False)
    try:
        if not is_new:
            _check(database, path)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if is_new:
            database.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
    except sqlite3.DatabaseError as why:
        database.close()
        raise JournalError(f"{path} cannot be used: {why}", "restore a backup: moteloom restore FILE") from why
    except JournalError:
        database.close()
        raise
    return database


def _check(database: sqlite3.Connection, path: Path) -> None:
    try:
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION and database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            raise JournalError(f"{path} is empty", "remove it; a station that starts makes a new one")
        if application != APPLICATION:
            raise JournalError(f"{path} is not the file of a station", "choose another directory with --data")
        if version > VERSION:
            raise JournalError(
                f"{path} has format {version}, this program reads {VERSION}", "run the newer program that wrote it"
            )
        found = database.execute("PRAGMA quick_check").fetchone()[0]
    except sqlite3.DatabaseError as why:
        raise JournalError(f"{path} is damaged: {why}", "restore a backup: moteloom restore FILE") from why
    if found != "ok":
        raise JournalError(f"{path} is damaged: {found}", "restore a backup: moteloom restore FILE")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
