"""Journal file: the file `station.db` of a data directory and the lock on it: open, check, back up, restore.

SQLite in WAL mode with synchronous=FULL: a commit that returned survives a power cut.
"""

import fcntl
import os
import secrets
import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import IO

from basestation.archive.manifest import SCHEMA as MANIFEST
from basestation.archive.sync import sync_path
from basestation.station.schema_migration import OLDEST, migrate
from basestation.station.state_migration import find_format, find_renewals, read_head
from gateway.errors import MoteloomError
from gateway.log import get_log

log = get_log(__name__)

APPLICATION = 0x4D4F5445  # "MOTE"
VERSION = 4
NAME = "station.db"
BOOT = "boot"
"""The fact that has the boot under which frames to motes are numbered."""
FIRST_BOOT_MS, BOOT_MS, LARGEST_BOOT = 1_735_689_600_000, 14_400_000, 60_000
"""A boot for each four hours since 2025: that is enough until 2052, and a link takes the next one after 65,536 frames."""
PROGRAM = "program"
"""The fact that names the program version that ran last on a file."""
LOCK = "lock"
COPIES = 3
"""A migration needs room for so many times the file: the copy, the rewritten tables, and the log of the transaction."""
RESTORE = "restore a backup: moteloom restore FILE"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE entries (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE results (
  query INTEGER NOT NULL, first INTEGER NOT NULL, behind INTEGER NOT NULL, at_ms INTEGER NOT NULL, size INTEGER NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (query, first)
) STRICT, WITHOUT ROWID;
CREATE INDEX results_by_age ON results (at_ms, size);
CREATE TABLE dropped (what TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT;
CREATE TABLE snapshots (entry INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, body BLOB NOT NULL) STRICT;
CREATE TABLE commands (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, argument TEXT NOT NULL,
  idempotency_key TEXT UNIQUE, query INTEGER
) STRICT;
CREATE TABLE events (
  number INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE TABLE queries (number INTEGER PRIMARY KEY, name TEXT, state TEXT NOT NULL, body TEXT NOT NULL) STRICT;
CREATE INDEX queries_by_name ON queries (name, number) WHERE name IS NOT NULL;
CREATE INDEX queries_by_state ON queries (state, number);
"""
_OWNERS = """
CREATE TABLE IF NOT EXISTS owners (query INTEGER PRIMARY KEY, owner TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS limits (query INTEGER PRIMARY KEY, numbers INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS owners_by_name ON owners (owner, query);
"""
"""Added to files of before tokens had names; the program of before does not mind."""


class JournalError(MoteloomError):
    """The data directory cannot be used; `help` says what to do."""

    def __init__(self, message: str, help: str) -> None:
        super().__init__(message)
        self.help = help


class KeyReusedError(JournalError):
    """An idempotency key came with another text than before."""


def check(path: Path, is_whole: bool = True) -> None:
    """JournalError where a file is no sound database of a station that this program reads.

    Without `is_whole` the results are left out: they are nearly the whole file, and a start does not read them.
    """
    if not path.is_file():
        raise JournalError(f"there is no file {path}", "name a file that `moteloom backup` wrote")
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        _check_format(database, path)
        _refuse_damage(database, path, is_whole)
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
    sync_path(path.absolute().parent)


def restore(source: Path, folder: Path) -> None:
    """Put a backup in the place of a station's file, after checking it; the file of before is kept beside it."""
    check(source)
    if source.absolute().parent.resolve() == folder.resolve() and source.name == NAME:
        raise JournalError(f"{source} is the station's own file", "name a file that `moteloom backup` wrote")
    held = lock(folder)
    try:
        target, staged, before = folder / NAME, folder / (NAME + ".part"), folder / (NAME + ".before-restore")
        _copy(source, staged)
        _begin_epoch(staged, _read_boot(target))
        for suffix in ("-shm", "-wal", ""):  # commits after the last checkpoint are in the -wal, so it moves along
            (found, kept) = (folder / f"{each.name}{suffix}" for each in (target, before))
            if found.exists():
                os.replace(found, kept)
            else:
                kept.unlink(missing_ok=True)
        os.replace(staged, target)
        sync_path(folder)
    finally:
        unlock(held)


def next_boot(known: int, now_ms: int) -> int:
    """The boot behind the last known one. Motes take the image with the greater number for the newer one.

    A lost file is not known, so the time is a lower bound.
    """
    return min(max(known + 1, (now_ms - FIRST_BOOT_MS) // BOOT_MS), LARGEST_BOOT)


def new_epoch() -> str:
    """A name for a run of numbers that no other has, as far as chance allows."""
    return secrets.token_hex(4)


def _read_boot(path: Path) -> int:
    """The boot under which a station numbered its last frames; 0 where its file cannot be read."""
    try:
        database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            row = database.execute("SELECT value FROM facts WHERE name = ?", (BOOT,)).fetchone()
        finally:
            database.close()
    except sqlite3.Error:  # damaged or missing: that is why it is replaced
        return 0
    return 0 if row is None else int(row[0])


def _begin_epoch(path: Path, boot: int) -> None:
    """Mark a restored file: what came after the backup had numbers that will be used again, under boots up to `boot`."""
    boot = max(boot, _read_boot(path))
    database = sqlite3.connect(path)
    try:
        with database:
            facts = [("epoch", new_epoch()), (BOOT, str(boot))]
            database.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts)
    finally:
        database.close()
    sync_path(path)


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
        sync_path(target)
    except (OSError, sqlite3.Error) as why:
        with suppress(OSError):
            target.unlink(missing_ok=True)
        raise JournalError(f"{source} cannot be copied to {target}: {why}", "choose a folder with room") from why
    finally:
        for each in (origin, copy):
            if each is not None:
                each.close()


def lock(folder: Path) -> IO[str]:
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


def unlock(file: IO[str]) -> None:
    """Give the lock back at once: a copy of this process that has not closed its files yet would keep it otherwise."""
    fcntl.flock(file, fcntl.LOCK_UN)
    file.close()


def open_database(path: Path) -> tuple[sqlite3.Connection, bool]:
    """Open a file, or make it; also return whether an older one was copied and migrated. JournalError where it cannot be used."""
    is_new = not path.exists() or path.stat().st_size == 0
    if is_new:  # its -wal gets the same mode: the results are the owner's
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    database, is_older = sqlite3.connect(path, isolation_level="IMMEDIATE", check_same_thread=False), False
    try:
        if not is_new:
            version = _check_format(database, path)
            _refuse_damage(database, path, is_whole=version != VERSION)
            is_older = version != VERSION
            if is_older:
                _refuse_state(database, path)
                _migrate(database, path, version)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        if is_new:
            database.executescript(
                f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; COMMIT;"
            )
        database.execute(MANIFEST)
        database.executescript(_OWNERS)
    except sqlite3.DatabaseError as why:
        database.close()
        raise JournalError(f"{path} cannot be used: {why}", RESTORE) from why
    except JournalError:
        database.close()
        raise
    return database, is_older


def find_damage(database: sqlite3.Connection, is_whole: bool = True) -> str | None:
    """The first damage that SQLite finds in a database, or in all its tables but the results; None where it is sound."""
    try:
        if is_whole:
            checks = ["PRAGMA quick_check"]
        else:  # the first statement also reads the schema, which each later one relies on
            named = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'results'"
            checks = [f"PRAGMA quick_check('{name}')" for (name,) in database.execute(named).fetchall()]
        for statement in checks:
            if (found := str(database.execute(statement).fetchone()[0])) != "ok":
                return found
    except sqlite3.OperationalError:  # a check that was ended, or a disk that cannot be read: no damage
        raise
    except sqlite3.DatabaseError as why:
        return str(why)
    return None


def _refuse_damage(database: sqlite3.Connection, path: Path, is_whole: bool) -> None:
    try:
        found = find_damage(database, is_whole)
    except sqlite3.OperationalError as why:
        raise JournalError(f"{path} cannot be read: {why}", RESTORE) from why
    if found is not None:
        raise JournalError(f"{path} is damaged: {found}", RESTORE)


def _check_format(database: sqlite3.Connection, path: Path) -> int:
    """The version of a file. JournalError where it is another program's, or of a version that this one cannot bring up to date."""
    try:
        application = database.execute("PRAGMA application_id").fetchone()[0]
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION and database.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
            raise JournalError(f"{path} is empty", "remove it; a station that starts makes a new one")
    except sqlite3.DatabaseError as why:
        raise JournalError(f"{path} is damaged: {why}", RESTORE) from why
    if application != APPLICATION:
        raise JournalError(f"{path} is not the file of a station", "choose another directory with --data")
    if version > VERSION:
        raise JournalError(
            f"{path} has format {version}, this program reads {VERSION}", "run the newer program that wrote it"
        )
    if version < OLDEST:
        raise JournalError(
            f"{path} has format {version}, this program reads {OLDEST} to {VERSION}",
            "run the program that wrote it, or begin anew in another directory with --data",
        )
    return int(version)


def _refuse_state(database: sqlite3.Connection, path: Path) -> None:
    """JournalError, before anything changes, where a part of the log is only in a state that this program cannot go on from."""
    newest = database.execute("SELECT entry, substr(body, 1, 80) FROM snapshots ORDER BY entry DESC LIMIT 1").fetchone()
    first, last = database.execute("SELECT min(number), max(number) FROM entries").fetchone()
    if newest is None or first == 1:
        return
    entry, head = newest
    if find_renewals(find_format(head)) is None:
        why = f"another version wrote the state in {path}, as `{read_head(head)}`"
    elif last is not None and entry < last:
        why = f"the older station of {path} was not stopped: its log goes on behind its last state"
    else:
        return
    row = database.execute("SELECT value FROM facts WHERE name = ?", (PROGRAM,)).fetchone()
    raise JournalError(f"{why}; nothing has changed", name_program(row and row[0]))


def name_program(program: str | None) -> str:
    """Return what to do where only the program that wrote a state can go on from it."""
    version = f"moteloom {program}" if program else "the program version that wrote it"
    return f"start with {version}, and stop that with SIGTERM before a newer one starts; or restore a backup"


def copy_whole(path: Path, suffix: str, why: str) -> Path:
    """Copy a file to one beside it, before it changes. JournalError where there is no room for the copy and the change."""
    copy = path.with_name(f"{path.name}.{suffix}")
    files = (path, *(path.with_name(path.name + ending) for ending in ("-wal", "-shm")))
    free, size = shutil.disk_usage(path.parent).free, sum(each.stat().st_size for each in files if each.exists())
    if free < COPIES * size:
        raise JournalError(
            f"{path} must be copied before {why}: that takes {COPIES * size / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free",
            "free space on the disk, or run the older program",
        )
    _copy(path, staged := copy.with_name(copy.name + ".part"))
    os.replace(staged, copy)
    sync_path(path.parent)
    return copy


def _migrate(database: sqlite3.Connection, path: Path, version: int) -> None:
    """Bring an older file to this version, after a copy of it. JournalError where there is no room for both."""
    copy = copy_whole(path, f"v{version}", f"its format {version} becomes {VERSION}")
    try:
        with database:
            database.execute("BEGIN IMMEDIATE")
            migrate(database, version, VERSION)
            database.execute(f"PRAGMA user_version = {VERSION}")
    except sqlite3.OperationalError as why:
        raise JournalError(
            f"{path} has format {version} and cannot become {VERSION}: {why}",
            "free space on the disk; nothing has changed",
        ) from why
    log.info("the file of an older version was migrated", path=str(path), version=version, now=VERSION, copy=str(copy))
