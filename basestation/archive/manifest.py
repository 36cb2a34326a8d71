"""Manifest: the files of an archive, in the journal's database, so that they change in the same transaction as it.

A file is listed before it appears in the tree, and stays listed, as removed, until it has left the tree. So the tree can
always be brought to what the manifest says, however a process ended.
"""

import sqlite3
from collections.abc import Iterable
from dataclasses import astuple, dataclass

SCHEMA = """
CREATE TABLE IF NOT EXISTS archive_files (
  name TEXT PRIMARY KEY, extent TEXT NOT NULL, day TEXT NOT NULL, rows INTEGER NOT NULL, bytes INTEGER NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, digest TEXT NOT NULL, is_removed INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file of the archive: UTC `day` as `2026-11-19`, `first` and `last` tick, `digest` the SHA-256 of its bytes."""

    name: str
    extent: str
    day: str
    rows: int
    bytes: int
    first: int
    last: int
    digest: str
    is_removed: bool = False


@dataclass(frozen=True, slots=True)
class FileChange:
    """Files that enter an archive and names of files that leave it, at once. `dropped` counts readings that leave for good."""

    added: tuple[ArchiveFile, ...] = ()
    removed: tuple[str, ...] = ()
    dropped: int = 0


NO_CHANGE = FileChange()


def apply_change(database: sqlite3.Connection, change: FileChange) -> None:
    """List what enters and mark what leaves, within the transaction of the caller."""
    database.executemany("INSERT INTO archive_files VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", map(astuple, change.added))
    database.executemany("UPDATE archive_files SET is_removed = 1 WHERE name = ?", ((name,) for name in change.removed))


def read_files(database: sqlite3.Connection) -> list[ArchiveFile]:
    """All listed files, by extent, day and name."""
    rows = database.execute("SELECT * FROM archive_files ORDER BY extent, day, name")
    return [
        ArchiveFile(name, extent, day, count, size, first, last, digest, bool(is_removed))
        for name, extent, day, count, size, first, last, digest, is_removed in rows
    ]


def list_anew(database: sqlite3.Connection, files: Iterable[ArchiveFile]) -> None:
    """List these files and no other, within the transaction of the caller."""
    database.execute("DELETE FROM archive_files")
    apply_change(database, FileChange(tuple(files)))


def forget_files(database: sqlite3.Connection, names: Iterable[str]) -> None:
    """Strike files off that have left the tree, within the transaction of the caller."""
    database.executemany("DELETE FROM archive_files WHERE name = ? AND is_removed = 1", ((name,) for name in names))
