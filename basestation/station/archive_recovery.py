"""Archive recovery: the archive of a data directory, as its journal lists it."""

import sqlite3
from pathlib import Path

from basestation.archive.manifest import ArchiveFile, read_files
from basestation.archive.parquet import ParquetArchive
from basestation.station.journal import Journal
from basestation.station.journal_file import NAME, JournalError
from gateway.log import get_log

log = get_log(__name__)
_EPOCH = "archive of epoch"


def open_archive(root: Path, tick_ms: int, journal: Journal) -> ParquetArchive:
    """The archive at `root` with each file that the journal lists, and no other that a roll or compaction began.

    A journal that is new, restored or of before the manifest lists other files than there are; it gets those of the tree.
    """
    archive = ParquetArchive(root, tick_ms)
    if journal.fact(_EPOCH) != journal.epoch:
        found, foreign = archive.adopt()
        journal.list_archive_anew(found)
        journal.state_fact(_EPOCH, journal.epoch)
        for path in foreign:
            log.warning("not a file of the archive", path=str(path))
    journal.forget_archive_files(archive.settle(journal.archive_files()))
    return archive


def read_manifest(root: Path) -> list[ArchiveFile]:
    """The files that the archive of a data directory lists, also while its station runs. JournalError where there is none."""
    path = root / NAME
    if not path.is_file():
        raise JournalError(f"{root} is not the data directory of a station", "name one with --data")
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        return read_files(database)
    except sqlite3.Error as why:
        raise JournalError(f"the list of files in {path} cannot be read: {why}", "start the station once") from why
    finally:
        database.close()
