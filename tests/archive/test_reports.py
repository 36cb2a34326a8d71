"""Readings that motes filter have no values at the station; the archive says that they were measured."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from acquisition.batch import Batch
from basestation.archive.memory import MemoryArchive
from basestation.archive.parquet import ParquetArchive
from basestation.archive.reports import archived_extent
from basestation.archive.retention import find_surplus
from basestation.archive.verification import verify_archive
from basestation.station.archive_maintenance import days_of_files
from basestation.testbed.event_testbed import EventTestbed
from innet.deployment.archive_table import ArchiveSettings, KeepLimits
from simulator.scenario import read_scenario
from tests.archive.test_archives import EXTENT, MIDNIGHT, numbered
from tests.docs.pages import ROOT
from tests.simulation.scenario_judge import answers

SCENARIO = ROOT / "tests" / "simulation" / "filtering.toml"


@pytest.mark.promise("archived")
def test_readings_and_reports_have_the_live_coverage(tmp_path):
    """Of a filter that runs on motes, window by window, read from the files."""
    scenario = read_scenario(SCENARIO)
    [query] = [query for query in scenario.queries if query.name == "now"]
    bed = EventTestbed(replace(scenario, queries=(query,)), 1)
    bed.run_until(300_000)
    archive, held = ParquetArchive(tmp_path, bed.catalog.tick_ms), bed.archive.take_all()
    files = [
        file for name, batch in held.items() for file in archive.stage(1, archived_extent(bed.catalog, name), batch)
    ]
    archive.settle(files)
    assert list(verify_archive(tmp_path, files)) == [] and archive.adopt() == (sorted_files(files), [])
    keys = {name: keys_of(archive, archived_extent(bed.catalog, name)) for name in held}
    assert set(keys) == {"hall", "reports/hall"} and not keys["hall"] & keys["reports/hall"]
    known = Counter(tick for tick, _ in keys["hall"] | keys["reports/hall"])
    covered = {tick: coverage["hall"] for (tick, _), (coverage, _) in answers(bed, "now").items()}
    used = {tick: used for tick, (used, _) in covered.items() if used}
    assert len(used) >= 5 and sum(used.values()) > len(keys["hall"])
    assert {tick: known[tick] for tick in used} == used


def sorted_files(files):
    return sorted(files, key=lambda file: ("/" in file.extent, file.extent, file.day, file.name))


def keys_of(archive, extent):
    batch = archive.read(extent, 0, 2**60)
    assert (batch.weight == (0 if "/" in extent.name else 1)).all()
    return set(zip(batch.tick.tolist(), batch.site.tolist(), strict=True))


def reports(*ticks):
    tick = np.array(ticks) + MIDNIGHT
    return Batch(tick, np.full(len(tick), 3), tick + 2, np.zeros(len(tick), np.int64), {})


def test_reports_wait_beside_readings_and_are_not_read_as_such():
    held = MemoryArchive()
    held.append_reports(EXTENT, reports())
    assert held.rows == 0
    held.append_reports(EXTENT, reports(1, 2))
    assert held.rows == 2 and len(held.read(EXTENT, 0, 2**60)) == 0
    [(name, batch)] = held.take_all().items()
    assert name == "reports/field" and len(batch) == 2


def test_reports_have_a_folder_and_the_limits_of_their_extent(tmp_path):
    archive = ParquetArchive(tmp_path, 1_000)
    day = 86_400
    archive.append(EXTENT, numbered((MIDNIGHT, 3, 1, 1, 1.0, "a")))
    archive.append_reports(EXTENT, reports(0, day))
    folders = {str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")}
    assert folders == {
        "archive/extent=field/date=2025-11-19", "reports/extent=field/date=2025-11-19", "reports/extent=field/date=2025-11-20",
    }  # fmt: skip
    settings = ArchiveSettings(by_extent={"field": KeepLimits(days=1)})
    found = find_surplus(days_of_files(archive.adopt()[0]), settings, "2026-01-01", 0)
    assert [(day.extent, day.day) for day in found] == [("reports/field", "2025-11-19")]
