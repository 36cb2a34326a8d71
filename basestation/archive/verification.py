"""Verification: compares the tree of an archive with its manifest, byte for byte."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from basestation.archive.layout import day_folder
from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import STAGING, digest_of, find_strangers


@dataclass(frozen=True, slots=True)
class FileFault:
    """A file that is not as it should be. `kind` is missing, damaged, unfinished or foreign."""

    kind: str
    path: Path
    message: str
    file: ArchiveFile | None = None


def verify_archive(root: Path, listed: Sequence[ArchiveFile]) -> Iterator[FileFault]:
    """Yield each file of the tree or of the manifest that is not as it should be, in the order of the manifest."""
    for file in listed:
        path = day_folder(root, file.extent, file.day) / file.name
        if file.is_removed:
            if path.exists():
                yield FileFault("unfinished", path, "is to leave the archive; the next start removes it", file)
        elif not path.exists():
            if (root / STAGING / file.name).exists():
                yield FileFault("unfinished", path, "is written; the next start of the station publishes it", file)
            else:
                yield FileFault("missing", path, f"is gone, and {file.rows:,} readings with it", file)
        elif (reason := _find_damage(path, file)) is not None:
            yield FileFault("damaged", path, reason, file)
    for path in find_strangers(root, listed):
        yield FileFault("foreign", path, "is no file of the archive, and tools that read the folder read it too")


def _find_damage(path: Path, file: ArchiveFile) -> str | None:
    try:
        size = path.stat().st_size
        if size != file.bytes:
            return f"expected {file.bytes:,} bytes, found {size:,}"
        return (
            None if digest_of(path) == file.digest else f"its bytes have changed; {file.rows:,} readings are affected"
        )
    except OSError as why:
        return f"cannot be read: {why.strerror}"
