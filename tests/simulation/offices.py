"""Two offices with 54 motes: the one of the examples, with a made-up day, and a real one, with its links and its readings."""

import tarfile
from dataclasses import replace

import numpy as np

from gateway.source import Source
from innet.deployment import Deployment, SensorSpec, Site
from simulator.scenario import Quantity, RecordedValues, Scenario, ScenarioQuery, WireFaults, read_scenario
from tests.docs.pages import ROOT

INTEL = """
lab: sensed (site:integer, time:integer, temp:float {unit 'Cel', scale 2, sensor 'temperature'}) every 30 sec at sites SITES
     wait 30 sec
"""


def lab54():
    """The day of the office, from tick 0 on as a replay has it; nothing is asked."""
    return replace(read_scenario(ROOT / "examples/lab54/day.scenario.toml"), begin_ms=0, queries=())


def asking(scenario, text):
    """The scenario with one query from the beginning."""
    return replace(scenario, queries=(ScenarioQuery("asked", text, 0, None),))


def intel(data, readings, folder):
    """A real office: what its links delivered was measured, and `readings` is the table of what its motes did.

    Links to the sink are taken both ways. No mote received mote 5.
    """
    with tarfile.open(data / "intel_topology.tar.gz") as tar:
        lines = {
            name: tar.extractfile(name).read().decode().splitlines() for name in ("mote_locs.txt", "connectivity.txt")
        }
    places = {int(n): (float(x), float(y), 0.0) for n, x, y in (line.split() for line in lines["mote_locs.txt"])}
    rows = [line.split() for line in lines["connectivity.txt"]]
    links = {(int(a), int(b)): float(p) for a, b, p in (row for row in rows if len(row) == 3) if float(p) > 0}
    links |= {(b, a): ratio for (a, b), ratio in links.items() if b == 0}
    links = {pair: ratio for pair, ratio in links.items() if 5 not in pair and pair[0] != pair[1]}
    sensors = {"temperature": SensorSpec(-32_768, 32_767, 2, "Cel", 10.0, 0.5)}
    known = {5, *(end for pair in links for end in pair)}
    motes = {n: Site(n, at, "telosb", sensors, 31_320.0) for n, at in places.items() if n in known}
    extents = Source(INTEL.replace("SITES", ", ".join(map(str, sorted(motes)))), str(folder / "intel.sneeql"))
    deployment = Deployment("intel", 1_000, {0: (0.0, 0.0, 0.0)}, motes, links, extents)
    world = {"temperature": Quantity(recording=RecordedValues(_recorded(readings, folder), 30_000), column="temp")}
    return Scenario("intel", Source(""), deployment, 0, 1, world, 1.0, None, WireFaults(), 0, (), ())


def _recorded(readings, folder):
    """The table as CSV, one reading of one mote a line, from tick 0 on."""
    path, epochs = folder / "readings.csv", np.arange(len(readings)).tolist()
    with path.open("w") as file:
        file.write("_tick,_site,temp\n")
        for name in readings.column_names:
            if name.startswith("m"):
                values = readings[name].to_numpy(zero_copy_only=False).tolist()
                lines = zip(epochs, values, strict=True)
                file.writelines(f"{epoch * 30},{name[1:]},{value / 100}\n" for epoch, value in lines)
    return path
