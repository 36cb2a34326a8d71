"""Swept networks: the hall, the office of the examples, and a real one; answers are those of a replay of what arrived."""

import tarfile
from dataclasses import replace

import numpy as np
import pytest

from basestation.testbed import SweptBed, cannot_sweep
from gateway.source import Source
from innet.deployment import Deployment, SensorSpec, Site
from simulator.radio import Bursts
from simulator.scenario import Asked, Quantity, Scenario, Wire, read_scenario
from tests.docs.pages import ROOT
from tests.simulation.judging import FOLDER, delivered, judge, run_scenario


def produced(bed):
    return {(e.mote, e["tick"]) for e in bed.trace.of("produced")}


@pytest.mark.parametrize("delivery, bursts", [(1.0, None), (0.7, Bursts(begin=0.05, end=0.3, left=0.2))])
def test_a_hall_that_is_swept_answers_what_a_replay_does(delivery, bursts):
    scenario = replace(read_scenario(FOLDER / "calm.toml"), delivery=delivery, bursts=bursts)
    bed = run_scenario(scenario, 1_200, kind=SweptBed)
    assert judge(bed, "now") >= 115
    assert judge(bed, "minute") >= 18
    assert bed.station.engine.ledger()["hall"]["received"] == len(delivered(bed))
    lost = 1 - len(delivered(bed)) / len(produced(bed))
    assert (0.01 < lost < 0.5) if bursts else lost < 0.02
    # Motes that sleep but for their slots: no radio of them is on for a hundredth of the time.
    assert max(bed.spent().values()) < 0.1 * 1_200 * 3.0 * 0.0215


def test_batteries_end_in_a_swept_hall_and_windows_say_what_they_lack():
    deployment = read_scenario(FOLDER / "calm.toml").deployment
    weak = {n: replace(site, battery=0.4) for n, site in deployment.motes.items()}
    scenario = replace(read_scenario(FOLDER / "calm.toml"), deployment=replace(deployment, motes=weak))
    bed = run_scenario(scenario, 7_200, kind=SweptBed)
    judge(bed, "now")
    died = bed.tally.died
    assert died and {why for _, why in died.values()} == {"battery"}
    assert [e.mote for e in bed.trace.of("died")] == list(died)
    for mote, (time, _) in died.items():
        assert 0.4 <= bed.spent()[mote] < 0.41
        assert max(tick for site, tick in produced(bed) if site == mote) == time // 1_000_000 - 10
    # Who sends for others is empty before them.
    parent = bed.station.world.tree.parent
    assert all(died[parent[mote]][0] <= died[mote][0] for mote in died if parent[mote] in died)


def test_an_hour_of_the_office(counts):
    scenario = replace(read_scenario(ROOT / "examples/lab54/day.scenario.toml"), begin_ms=0)  # as a replay begins
    bed = run_scenario(scenario, counts(3_600, 86_400), kind=SweptBed)
    assert judge(bed, "mean") >= 11
    assert len(delivered(bed)) > 0.95 * len(produced(bed))


INTEL = """
lab: sensed (site:integer, time:integer, temp:float {unit 'Cel', scale 2, sensor 'temperature'}) every 30 sec at sites SITES
     wait 30 sec
"""


@pytest.fixture
def intel(shared_data, tmp_path):
    """The motes of a real office with their measured links and their readings; links to the sink are taken both ways."""
    with tarfile.open(shared_data / "intel_topology.tar.gz") as tar:
        lines = {
            name: tar.extractfile(name).read().decode().splitlines() for name in ("mote_locs.txt", "connectivity.txt")
        }
    places = {int(n): (float(x), float(y), 0.0) for n, x, y in (line.split() for line in lines["mote_locs.txt"])}
    rows = [line.split() for line in lines["connectivity.txt"]]
    links = {(int(a), int(b)): float(p) for a, b, p in (row for row in rows if len(row) == 3) if float(p) > 0}
    links |= {(b, a): ratio for (a, b), ratio in links.items() if b == 0}
    links = {pair: ratio for pair, ratio in links.items() if 5 not in pair and pair[0] != pair[1]}
    sensors = {"temperature": SensorSpec(-32_768, 32_767, 2, "Cel", 10.0, 0.5)}
    motes = {n: Site(n, at, "telosb", sensors, 31_320.0) for n, at in places.items()}
    known = {end for pair in links for end in pair}
    motes = {n: site for n, site in motes.items() if n in known or n == 5}
    extents = Source(INTEL.replace("SITES", ", ".join(map(str, sorted(motes)))), str(tmp_path / "intel.sneeql"))
    return Deployment("intel", 1_000, {0: (0.0, 0.0, 0.0)}, motes, links, extents)


def test_a_real_office_with_its_real_readings(intel, shared_data, tmp_path, counts):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(shared_data / "intel_fixture.parquet")
    epochs = np.arange(len(table))
    columns = [name for name in table.column_names if name.startswith("m")]
    recorded = tmp_path / "readings.csv"
    with recorded.open("w") as file:
        file.write("_tick,_site,temp\n")
        for name in columns:
            values = table[name].to_numpy(zero_copy_only=False)
            lines = zip(epochs.tolist(), values.tolist(), strict=True)
            file.writelines(f"{epoch * 30},{name[1:]},{value / 100}\n" for epoch, value in lines)
    asked = Asked("mean", "SELECT AVG(temp) AS mean, COUNT(*) AS n, MAX(temp) AS most FROM lab [NOW]", 0, None)
    scenario = Scenario(
        "intel", Source(""), intel, 0, 1, {"temperature": Quantity(file=recorded, column="temp", hold_ms=30_000)}, 1.0, None,
        Wire(), 0, (), (asked,),
    )  # fmt: skip
    bed = run_scenario(scenario, counts(1_800, 86_400), kind=SweptBed)
    assert judge(bed, "mean") >= 50
    assert bed.station.world.tree.unreached(intel.motes) == (5,)
    assert 5 not in {site for site, _ in delivered(bed)}
    # Each reading is the one that was recorded.
    for (site, tick), (_, values) in delivered(bed).items():
        if f"m{site}" in columns:
            assert values["temp"] == table[f"m{site}"][tick // 30].as_py()


@pytest.mark.parametrize("name", ["parent_dies_mid_epoch", "duplicates_and_reordering"])
def test_what_cannot_be_swept_is_refused_with_the_reason(name):
    with pytest.raises(cannot_sweep(), match=r"goes wrong|on the wire"):
        SweptBed(read_scenario(FOLDER / f"{name}.toml"), 1)


def test_what_was_filtered_is_told_though_it_waited_from_one_sweep_to_the_next():
    scenario = replace(read_scenario(FOLDER / "calm.toml"), delivery=1.0, queries=(Asked("rare", RARELY, 0, None),))
    bed = run_scenario(scenario, 4_000, kind=SweptBed)
    told = sum(event["count"] for event in bed.trace.of("posted"))
    ledger = bed.station.engine.ledger()["hall"]
    assert ledger["received"] == told and not bed.trace.of("given_up")
    assert told > ledger["filtered"] > 1_000


RARELY = "SELECT site, temp FROM hall WHERE temp > 22.1"
