"""Power cuts at every step of an archive's life: what was committed is in the tree after the next start, each reading once.

The model is a journaling file system. Names change in their order, and a sync of any folder keeps all changes of names
before it; a cut keeps some prefix of those after it. The bytes of a file survive from its own sync on; before, the
file may be empty, torn or zero-filled. A commit of the journal's database survives from its return on.
"""

import os
import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from basestation.archive import parquet, sync
from basestation.archive.compaction import days_of_files, merge_day
from basestation.archive.parquet import ParquetArchive
from basestation.archive.verification import verify_archive
from tests.archive.test_archives import EXTENT, MIDNIGHT, numbered, rows_of
from tests.archive.test_settling import removed

WRITES = ("link", "rename", "mkdir", "unlink", "rmdir")


@dataclass
class Disk:
    """Copies the tree before each change of a name, and remembers what was synced when."""

    root: Path
    copies: Path
    states: list[Path] = field(default_factory=list)  # the tree after so many changes of names
    synced: int = 0  # changes that survive
    whole: set[int] = field(default_factory=set)  # inodes whose bytes survive
    is_copying: bool = False
    listed: list = field(default_factory=list)
    cuts: list = field(default_factory=list)  # (first surviving state, last, whole inodes, manifest)

    def changed(self):
        copy, self.is_copying = self.copies / str(len(self.states)), True
        shutil.copytree(self.root, copy, copy_function=os.link)
        self.states.append(copy)
        self.is_copying = False
        self.cut()

    def cut(self):
        """The power may fail here."""
        self.cuts.append((self.synced, len(self.states) - 1, frozenset(self.whole), tuple(self.listed)))

    def sync(self, descriptor):
        about = os.fstat(descriptor)
        if stat.S_ISDIR(about.st_mode):
            self.synced = len(self.states) - 1
        else:
            self.changed()  # its name is there already
            self.whole.add(about.st_ino)
        self.cut()

    def commit(self, added=(), gone=()):
        names = {file.name for file in gone}
        self.listed = [removed(file) if file.name in names else file for file in self.listed] + list(added)
        self.cut()

    def forget(self, names):
        self.listed = [file for file in self.listed if file.name not in names]
        self.cut()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """Every call that changes a name is followed by a copy of the tree; every fsync is recorded."""
    disk = Disk(tmp_path / "data", tmp_path / "copies")
    disk.root.mkdir()
    disk.changed()

    def watched(call):
        def run(*given, **named):
            found = call(*given, **named)
            is_ours = named.get("dir_fd") is not None or any(str(disk.root) in str(each) for each in given)
            if is_ours and not disk.is_copying:
                disk.changed()
            return found

        return run

    for name in WRITES:
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    monkeypatch.setattr(parquet, "exchange_folders", watched(sync.exchange_folders))
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (real(descriptor), disk.sync(descriptor))[0])
    yield disk
    monkeypatch.undo()


def row(tick, site):
    return MIDNIGHT + tick, site, 1, 1, 1.0, "a"


def live(disk):
    """Three rolls over two days, a merge beside a roll, and the end of a day's time."""
    archive = ParquetArchive(disk.root, 1_000, grace_ms=0)

    def settle():
        disk.forget(archive.settle(disk.listed))

    for roll in range(3):
        staged = archive.stage(roll, EXTENT, numbered(row(roll, 3), row(roll, 4), row(-1 - roll, 3)))
        disk.commit(staged)
        settle()
    old = next(day for day in days_of_files(disk.listed) if day.rows == 6)
    merged = merge_day(disk.root, old)
    archive.reserved.add(merged.name)
    late = archive.stage(3, EXTENT, numbered(row(9, 4)))
    disk.commit(late)
    settle()
    archive.reserved.clear()
    disk.commit([merged], old.files)
    settle()
    given_up = archive.stage(4, EXTENT, numbered(row(10, 4)))
    archive.discard(given_up)
    first = min(days_of_files(disk.listed), key=lambda day: day.day)
    disk.commit(gone=first.files)
    settle()


def build(state, whole, target, damage):
    """The tree of a state after a cut; bytes that were not synced are damaged."""
    for path in sorted(state.rglob("*")):
        copy = target / path.relative_to(state)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        body = path.read_bytes()
        copy.write_bytes(body if path.stat().st_ino in whole else damage(body))


DAMAGES = (lambda body: b"", lambda body: body[: len(body) // 2 // 512 * 512], lambda body: bytes(len(body)))


@pytest.mark.promise("archived")
def test_power_cut_at_any_step_keeps_what_was_committed(disk, tmp_path, rng, counts, monkeypatch):
    live(disk)
    monkeypatch.undo()
    cuts = [
        (state, whole, listed, damage)
        for first, last, whole, listed in disk.cuts
        for state in disk.states[first : last + 1]
        for damage in DAMAGES
    ]
    assert len(cuts) > 500
    for number, (state, whole, listed, damage) in enumerate(rng.sample(cuts, min(len(cuts), counts(120, 1_000)))):
        root = tmp_path / "cut" / str(number)
        root.mkdir(parents=True)
        build(state, whole, root, damage)
        archive = ParquetArchive(root, 1_000, grace_ms=0)
        left = archive.settle(listed)
        kept = [file for file in listed if file.name not in left]
        assert list(verify_archive(root, kept)) == []
        found = rows_of(archive.read(EXTENT, 0, 2**40))
        assert len(found) == len(set(found)) == sum(file.rows for file in kept)
        assert not list(archive.staging.iterdir())
        shutil.rmtree(root)
