"""The tree of an archive is brought to what its manifest lists, and a reader never sees a day twice or not at all."""

import os
import threading

import pyarrow.parquet as pq
import pytest

from basestation.archive.manifest import ArchiveFile
from basestation.archive.parquet import ParquetArchive, describe_file
from basestation.archive.sync import exchange_folders
from tests.archive.test_archives import EXTENT, MIDNIGHT, numbered, rows_of

DAY = "2025-11-19"
FOLDER = f"archive/extent=field/date={DAY}"


class PowerCutError(BaseException):
    """The process ends here."""


def row(tick, site=3):
    return MIDNIGHT + tick, site, 1, 1, 1.0, "a"


def stage(archive, *ticks):
    [file] = archive.stage(1, EXTENT, numbered(*map(row, ticks)))
    return file


def removed(file):
    return ArchiveFile(**{**{name: getattr(file, name) for name in file.__slots__}, "is_removed": True})


def ticks(archive):
    return [tick - MIDNIGHT for tick, *_ in rows_of(archive.read(EXTENT, 0, 2**40))]


@pytest.fixture
def archive(tmp_path):
    return ParquetArchive(tmp_path, 1000, grace_ms=0)


def test_only_listed_files_enter_the_tree(archive):
    listed, unlisted = stage(archive, 1, 2), stage(archive, 3)
    assert ticks(archive) == []
    assert archive.settle([listed]) == []
    assert ticks(archive) == [1, 2]
    assert not (archive.staging / unlisted.name).exists()


@pytest.mark.promise("archived")
def test_staged_file_that_cannot_be_deleted_never_enters(archive, monkeypatch):
    """Both faults together: `discard` fails, and the process dies after the next commit."""
    given_up = stage(archive, 1)

    def refuse(*_, **__):
        raise OSError("Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("basestation.archive.parquet.Path.unlink", refuse)
        archive.discard([given_up])
    assert (archive.staging / given_up.name).exists()
    again = stage(archive, 1)
    restarted = ParquetArchive(archive.root, 1000)
    restarted.settle([again])
    assert ticks(restarted) == [1]


def test_listed_file_holds_what_its_row_says(archive):
    file = stage(archive, 5, 1)
    archive.settle([file])
    assert (file.day, file.rows, file.first, file.last) == (DAY, 2, MIDNIGHT + 1, MIDNIGHT + 5)
    assert describe_file(archive.root / FOLDER / file.name) == file
    assert archive.adopt() == ([file], [])


def test_foreign_and_damaged_files_are_not_adopted(archive):
    file = stage(archive, 5)
    archive.settle([file])
    strangers = ["notes.txt", "part-000000000009-00000000.zstd.parquet", "other.parquet"]
    for name in strangers:
        (archive.root / FOLDER / name).write_text("x")
    found, foreign = archive.adopt()
    assert found == [file] and sorted(path.name for path in foreign) == sorted(strangers)


def test_removed_file_leaves_and_others_stay(archive):
    """So does a file that is not of the archive."""
    first, second = stage(archive, 1), stage(archive, 2)
    archive.settle([first, second])
    (archive.root / FOLDER / "notes.txt").write_text("x")
    assert archive.settle([removed(first), second]) == [first.name]
    assert ticks(archive) == [2]
    assert (archive.root / FOLDER / "notes.txt").read_text() == "x"
    (archive.root / FOLDER / "notes.txt").unlink()
    assert archive.settle([removed(second)]) == [second.name]
    assert not (archive.root / FOLDER).exists() and not list(archive.staging.iterdir())


@pytest.mark.promise("archived")
@pytest.mark.parametrize("point", ["os.link", "sync_path", "exchange_folders", "shutil.rmtree", "Path.unlink"])
def test_crash_during_a_replacement_shows_old_or_new_day(archive, monkeypatch, point):
    """Before and after the process dies at a point: the day has its two tuples, each once."""
    first, second, late = stage(archive, 1), stage(archive, 2), stage(archive, 3)
    archive.settle([first, second, late])
    merged = stage(archive, 1, 2)
    listed = [removed(first), removed(second), late, merged]

    def cut(*_, **__):
        raise PowerCutError

    with monkeypatch.context() as patch:
        patch.setattr(f"basestation.archive.parquet.{point}", cut)
        with pytest.raises(PowerCutError):
            archive.settle(listed)
    assert ticks(archive) == [1, 2, 3]
    restarted = ParquetArchive(archive.root, 1000, grace_ms=0)
    assert restarted.settle(listed) == [first.name, second.name]
    assert ticks(restarted) == [1, 2, 3]
    assert {path.name for path in restarted.files(EXTENT)} == {late.name, merged.name}
    assert not list(restarted.staging.iterdir())


def test_folder_that_was_replaced_stays_listable_for_a_minute(tmp_path):
    """A reader that opened it before the swap finds all its files, and retention does not miss their bytes."""
    now = [1_000.0]
    archive = ParquetArchive(tmp_path, 1000, clock=lambda: now[0])
    parts = [stage(archive, 1), stage(archive, 2)]
    archive.settle(parts)
    opened = os.open(tmp_path / FOLDER, os.O_RDONLY)
    listed = [*map(removed, parts), stage(archive, 1, 2)]
    archive.settle(listed)
    assert sorted(os.listdir(opened)) == sorted(file.name for file in parts)
    assert archive.leaving_bytes() == sum(file.bytes for file in parts)
    now[0] += 59
    archive.sweep()
    assert len(os.listdir(opened)) == 2
    now[0] += 2
    archive.sweep()
    assert os.listdir(opened) == [] and archive.leaving_bytes() == 0
    os.close(opened)
    assert ticks(archive) == [1, 2]


def test_reader_beside_replacements_sees_each_day_once(tmp_path, counts):
    """A reader lists the folder and opens all of it; a file that has left is an error."""
    archive = ParquetArchive(tmp_path, 1000)
    current = [stage(archive, 1), stage(archive, 2)]
    archive.settle(current)
    is_over, seen = threading.Event(), []

    def read():
        while not is_over.is_set():
            try:
                paths = sorted((archive.root / FOLDER).iterdir())
                seen.append(
                    sorted(t - MIDNIGHT for p in paths for t in pq.ParquetFile(p).read(["_tick"])["_tick"].to_pylist())
                )
            except FileNotFoundError:
                continue

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for turn in range(counts(30, 300)):
            fresh = [stage(archive, 1, 2)] if turn % 2 else [stage(archive, 1), stage(archive, 2)]
            archive.settle([*map(removed, current), *fresh])
            current = fresh
    finally:
        is_over.set()
        reader.join()
    assert seen and all(found == [1, 2] for found in seen)


def test_folders_that_cannot_be_exchanged_are_named(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="two folders cannot be exchanged here") as caught:
        exchange_folders(tmp_path / "a", tmp_path / "nothing")
    assert caught.value.filename == str(tmp_path / "nothing")
