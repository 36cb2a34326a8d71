"""The office of 54 motes as fast as it goes: queries come, go, are replaced and fail, motes die, reboot and return.

`make day HOURS=24` runs any time of it; `make test` runs some minutes, `make check` an hour.
"""

import itertools
import json
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from basestation.controller.query_lifecycle import QueryState
from basestation.station.archive_maintenance import ArchiveMaintenance
from basestation.station.archive_recovery import open_archive
from basestation.station.assembly import make_factory
from basestation.station.durable import DurableStation
from basestation.station.full_collections import collect_fully
from basestation.station.journal import Journal
from basestation.station.runner import Runner, ScaledClock
from basestation.testbed.live_motes import MoteScenario
from tests.conftest import ROOT, count_of
from tests.simulation.reading_accounts import balanced

HOURS = float(os.environ.get("MOTELOOM_HOURS") or count_of(0.1, 1))
BEGIN_MS, LOOK_MS, MINUTE_MS = 1_763_452_800_000, 250, 60_000
END_MS = int(HOURS * 60) * MINUTE_MS
EVER = "SELECT site, temp FROM lab [NOW]"
QUERIES = (
    "SELECT site, temp FROM lab WHERE temp > {bound}",
    "SELECT AVG(temp) AS mean, COUNT(*) AS n FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN]",
    "SELECT site, MAX(light) AS high FROM lab [FROM NOW-{width} SEC TO NOW SLIDE 1 MIN] WHERE humidity > {bound} GROUP BY site",
)
MOST_QUERIES, SETTLED_MS = 8, 2 * MINUTE_MS
FAULTS = range(3, END_MS // MINUTE_MS, 30)
"""The minutes at which motes reboot, lose their radio for three minutes, and at last one dies."""
LOST_MS, QUIET_MS = 8 * MINUTE_MS, 6 * MINUTE_MS
"""A fault explains losses for so long, of the mote and of those that it forwards for. So long after the last one all are back."""
MOST_GROWTH_MB, MOST_GROWTH_MB_PER_HOUR = 12, 2
"""The log of readings has a horizon of a day: 54 motes every 30 s fill it with some 0.5 MB an hour (docs/benchmarks-epochs.md)."""
REBOOTS, CUTS, DEAD = (7, 19, 33), (12, 44), 52


def write_scenario(folder: Path) -> Path:
    """The quiet day, with faults of motes."""
    calm = (ROOT / "examples/lab54/calm.scenario.toml").read_text()
    lines = [calm.partition("[queries")[0].replace('"deployment.toml"', f'"{ROOT}/examples/lab54/deployment.toml"')]
    for nth, minute in enumerate(FAULTS):
        for mote in REBOOTS:
            lines.append(f'[faults.reboot{nth}_{mote}]\nwhat = "reboots"\nmote = {mote}\nat = "{minute} min"\n')
        for mote in CUTS:
            lines.append(
                f'[faults.cut{nth}_{mote}]\nwhat = "cut"\nmote = {mote}\nat = "{minute} min"\nuntil = "{minute + 3} min"\n'
            )
    lines.append(f'[faults.dead]\nwhat = "dies"\nmote = {DEAD}\nat = "{FAULTS[-1]} min"\n')
    path = folder / "eventful.scenario.toml"
    path.write_text("\n".join(lines))
    return path


class Office:
    """A station, its motes and its users, in virtual time."""

    def __init__(self, folder: Path, rng) -> None:
        self.scenario, self.folder, self.rng = MoteScenario(str(write_scenario(folder))), folder / "data", rng
        self.make = make_factory(self.scenario.deployment, False)
        self.now_ms, self.done, self.wall = BEGIN_MS, Counter(), 0.0
        self.motes = self.scenario.start(BEGIN_MS, 1, 1)
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.folder)
        self.archive = open_archive(self.folder, self.make.catalog.tick_ms, self.journal)
        self.durable = DurableStation(self.journal, self.make, self.now_ms)
        self.durable.connect(self.motes.wire)
        maintenance = ArchiveMaintenance(self.durable, self.archive, roll_ms=10 * MINUTE_MS)
        clock = ScaledClock(lambda: self.wall, self.now_ms)
        self.runner = Runner(self.durable, clock, self.motes, archive=maintenance)

    def live(self, time_ms: int) -> None:
        end = self.now_ms + time_ms
        while self.now_ms < end:
            self.now_ms += LOOK_MS
            self.runner.look(self.now_ms)

    def submit(self, text=None) -> int:
        return self.durable.submit(text or self.text(), self.now_ms)

    def text(self) -> str:
        rng = self.rng
        return rng.choice(QUERIES).format(bound=rng.randint(15, 45), width=59 + 60 * rng.randrange(7))

    def disturb(self) -> None:
        """Do one of the things that users do."""
        queries = self.durable.station.world.queries.items()
        live = {number: query.state for number, query in queries if number > 1 and not query.has_ended}
        of = {
            "submit": [0] if len(live) < MOST_QUERIES else [],
            "resume": [n for n, state in live.items() if state in (QueryState.PAUSED, QueryState.FAILED)],
        }
        running = [n for n, state in live.items() if state in (QueryState.DEPLOYING, QueryState.RUNNING)]
        of |= dict.fromkeys(("stop", "drain", "pause", "exceed", "replace"), running)
        kind = self.rng.choice([kind for kind, numbers in of.items() if numbers])
        number = self.rng.choice(of[kind])
        if kind == "submit":
            self.submit()
        elif kind == "replace":
            self.durable.replace(number, self.text(), self.now_ms)
        else:
            self.durable.change(kind, number, self.now_ms, "it took too much" if kind == "exceed" else None)
        self.done[kind] += 1

    def memory_mb(self) -> float:
        collect_fully()  # as a running station does between looks
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.promise("durable")
@pytest.mark.timeout(86_400)
def test_eventful_day_of_the_office_keeps_its_accounts(tmp_path, rng, tally):
    office = Office(tmp_path, rng)
    office.submit(EVER)
    office.live(SETTLED_MS)
    assert office.durable.roll(office.now_ms, office.archive)  # with all libraries that it needs
    begun, settled = office.memory_mb(), office.now_ms
    while (
        office.now_ms < BEGIN_MS + END_MS // 2
    ):  # memory is that of one station: this process keeps room of earlier ones
        office.disturb()
        office.live(MINUTE_MS)
    grown, hours = office.memory_mb() - begun, (office.now_ms - settled) / 3_600_000
    while office.now_ms < BEGIN_MS + END_MS:
        office.disturb()
        office.live(MINUTE_MS)
        if rng.random() < 0.1:  # the process of the station ends without a word
            office.journal.close()
            office.start()
            office.done["restart"] += 1
    office.live(QUIET_MS)
    tally("an eventful office", {**office.done, f"MB grown in {hours:.2f} h": round(grown)})
    assert grown < MOST_GROWTH_MB + MOST_GROWTH_MB_PER_HOUR * hours

    station, journal = office.durable.station, office.journal
    while station.archive.rows:
        assert office.durable.roll(office.now_ms, office.archive)
    lab = office.make.catalog.extents["lab"]
    kept = office.archive.read(lab, 0, 2**60)
    sites, counts = np.unique(kept.site, return_counts=True)
    assert len(np.unique(np.stack([kept.tick, kept.site]), axis=1)[0]) == len(kept.tick)  # each reading once
    in_archive = dict(zip(sites.tolist(), counts.tolist(), strict=True))
    account = station.account()["lab"]
    assert len(account) == 54
    for mote, sums in account.items():
        balanced(sums)
        assert sums["delivered"] + sums["not due"] == in_archive[mote], (mote, sums)

    events = [(kind, json.loads(body)) for _, _, kind, body in journal.events(0, 100_000)]
    kinds = Counter(kind for kind, _ in events)
    assert kinds["query failed"] == office.done["exceed"] and kinds["query stopped"] >= office.done["stop"]
    assert not [kind for kind in kinds if "fails" in kind]
    of_motes = [
        (at, kind, json.loads(body)["mote"]) for _, at, kind, body in journal.events(0, 100_000) if "mote" in kind
    ]
    losses = [(at - BEGIN_MS, mote) for at, kind, mote in of_motes if kind == "mote lost"]
    faults = [minute * MINUTE_MS for minute in FAULTS]
    assert not [(at, mote) for at, mote in losses if not any(0 <= at - fault < LOST_MS for fault in faults)]
    newest_of = {mote: kind for _, kind, mote in of_motes if kind in ("mote lost", "mote back")}
    assert DEAD in newest_of
    assert {mote for mote, kind in newest_of.items() if kind == "mote lost"} == {DEAD}
    assert json.loads(journal.query(1))["state"] == "running"
    feed = [chunk for chunk in journal.results(1, 0, 10**9)]
    assert feed[0].first == 1 and all(a.behind == b.first for a, b in itertools.pairwise(feed))
    newest = {
        line["tick"]: line["coverage"]["lab"] for chunk in feed for line in map(json.loads, chunk.lines.splitlines())
    }
    assert sorted(newest) == list(range(min(newest), max(newest) + 1, 30))  # each window, none twice
