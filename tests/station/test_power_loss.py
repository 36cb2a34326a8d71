"""Power cuts: each state in which a disk may be after one is a state of the station at the commit before, or at this one.

SQLite writes the pages of a commit to the end of the log and syncs; now and then it copies them into the database and syncs. A
disk may keep any of the sectors written since the last sync:

    synced ──── commit writes ──── sync ──── copy writes ──── sync
           any sectors of station.db-wal     any sectors of station.db
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys

import pytest

from basestation.station.durable import DurableStation
from basestation.station.journal import Journal
from tests.conftest import ROOT, count_of
from tests.station.small_network import QUERIES, SmallNetwork

SECTORS = 512, 4_096
FILES = "station.db", "station.db-wal"
CUTS = int(os.environ.get("MOTELOOM_POWER_CUTS") or count_of(30, 300))
MOST_CUTS = 1_000
"""States of one run of a station; more are those of several runs."""
RUNS = -(-CUTS // MOST_CUTS)


def digest(journal):
    """The content of a journal that clients see: the last entry, and the numbers of each feed and event."""
    feeds = tuple(journal.bounds(number) for number in range(1, len(QUERIES) + 2))
    return journal.last, feeds, journal.last_event()


class RecordingJournal(Journal):
    """Keeps the bytes of its files after each transaction, with its content."""

    def __init__(self, folder):
        self.images = []
        super().__init__(folder)
        self._db.execute("PRAGMA wal_autocheckpoint = 40")  # pages, so that the log is copied often
        self.record()

    def record(self):
        folder = self.path.parent
        files = tuple((folder / name).read_bytes() if (folder / name).exists() else b"" for name in FILES)
        self.images.append((files, digest(self)))

    def commit(self, *given, **named):
        super().commit(*given, **named)
        self.record()

    def save_snapshot(self, *given):
        super().save_snapshot(*given)
        self.record()

    def state_fact(self, *given):
        super().state_fact(*given)
        if self.images:
            self.record()


class RecordedNetwork(SmallNetwork):
    """A network whose station records what it writes."""

    def start(self):
        self.journal = RecordingJournal(self.folder)
        self.durable = DurableStation(self.journal, self._begin, self.now_ms)
        self.durable.connect(self.wire)


def cut(before, after, rng):
    """The bytes of a file that was being written when the power went: some sectors are new, the others old or zero."""
    sector = rng.choice(SECTORS)
    places = range(0, max(len(before), len(after)), sector)
    changed = [at for at in places if before[at : at + sector] != after[at : at + sector]]
    kind = rng.choice(("prefix", "any", "zero"))
    kept = (
        changed[: rng.randint(0, len(changed))] if kind != "any" else rng.sample(changed, rng.randint(0, len(changed)))
    )
    size = len(after) if kind == "zero" else max([len(before), *(min(at + sector, len(after)) for at in kept)])
    found = bytearray(before[:size].ljust(size, b"\0"))
    for at in kept:
        piece = after[at : at + sector]
        found[at : at + len(piece)] = piece
    return bytes(found)


def write_state(folder, files):
    folder.mkdir()
    for name, content in zip(FILES, files, strict=True):
        if content:
            (folder / name).write_bytes(content)


@pytest.mark.promise("durable")
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("run", range(RUNS))
def test_power_cut_leaves_the_commit_before_or_this_one(run, tmp_path, rng):
    network = RecordedNetwork(tmp_path / "data")
    for text in QUERIES:
        network.submit(text)
    network.live(60)
    network.durable.snapshot(network.now_ms)
    network.live(60)
    images, lines = network.journal.images, {number: network.answers(number) for number in (1, 2, 3)}
    network.end()
    assert len(images) > 20 and sum(a[0][0] != b[0][0] for a, b in itertools.pairwise(images)) >= 3
    for case in range(CUTS // RUNS + (run < CUTS % RUNS)):
        at = rng.randrange(1, len(images))
        (old, was), (new, now) = images[at - 1], images[at]
        is_copied = old[0] != new[0] and rng.random() < 0.5
        files = (cut(old[0], new[0], rng), new[1]) if is_copied else (old[0], cut(old[1], new[1], rng))
        folder = tmp_path / f"state{case}"
        write_state(folder, files)
        journal = Journal(folder)
        assert digest(journal) in ((now,) if is_copied else (was, now)), (at, is_copied)
        durable = DurableStation(journal, network._begin, network.now_ms)
        for number, answered in lines.items():
            kept = "".join(chunk.lines for chunk in journal.results(number, 0, 10**9))
            assert answered.startswith(kept)
        durable.step(network.now_ms + 1_000)
        assert durable.failure is None
        journal.close()
        shutil.rmtree(folder)


CHILD = """
import sys
from pathlib import Path
from tests.station.small_network import QUERIES, SmallNetwork
network = SmallNetwork(Path(sys.argv[1]))
network.now_ms = max(network.now_ms, network.durable.last_ms)
for text in QUERIES[len(network.durable.station.world.queries):]:
    network.submit(text)
print("ready", flush=True)
while True:
    network.live(0.25)
    print(network.journal.last, *(network.journal.bounds(number)[1] for number in (1, 2, 3)), flush=True)
    if network.now_ms % 20_000 < 250:
        network.durable.begin_snapshot(network.now_ms)
"""


@pytest.mark.promise("durable")
def test_killed_process_keeps_what_it_showed(tmp_path, rng, counts):
    """A process of its own is killed at random moments: what it showed before is there, and its numbers have no gap."""
    shown = (0, 1, 1, 1)
    for _ in range(counts(2, 20)):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(tmp_path / "data")], cwd=ROOT, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert child.stdout.readline() == "ready\n"
        last = rng.randint(1, 400)
        for count, line in enumerate(child.stdout):
            if line.endswith("\n"):
                shown = max(shown, tuple(map(int, line.split())))
            if count >= last:
                break
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().rpartition("\n")[0].splitlines()  # it went on meanwhile
        shown = max([shown, *(tuple(map(int, line.split())) for line in rest)])
        assert child.wait() == -signal.SIGKILL
        journal = Journal(tmp_path / "data")
        kept = (journal.last, *(journal.bounds(number)[1] for number in (1, 2, 3)))
        assert all(there >= before for there, before in zip(kept, shown, strict=True))
        for number in (1, 2, 3):
            chunks = journal.results(number, 0, 10**9)
            assert [chunk.first for chunk in chunks[1:]] == [chunk.behind for chunk in chunks[:-1]]
        journal.close()
