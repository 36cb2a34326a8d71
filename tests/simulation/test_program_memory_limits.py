"""Motes with little room: no program is sent that is too large for its mote, whatever runs already and however the tree changes."""

from dataclasses import replace

import pytest

from basestation.testbed.event_testbed import EventTestbed
from innet.costs.hardware import load_hardware
from innet.deployment.toml_reader import read_deployment
from innet.payload import decode_assignment
from innet.program.footprint import measure_footprint
from simulator.scenario import InjectedFault, ScenarioQuery, default_scenario
from tests.simulation.scenario_judge import answers, judge, remembering

LARGE, SMALL = 1, 2
"""Two ways to the gateway, the better of which is through the one with much room."""
COLUMNS = range(8)
GROUPED = tuple(
    ScenarioQuery(f"{seconds}", f"SELECT c0, c1, COUNT(*) AS n, VARIANCE(c0) AS a, VARIANCE(c1) AS b, MIN(c2) AS c FROM hall "
                        f"[FROM NOW-{seconds - 10} TO NOW SLIDE {seconds} SEC] GROUP BY c0, c1", 0, None)
    for seconds in (60, 70, 80)
)  # fmt: skip
EVERYTHING = f"SELECT site, {', '.join(f'c{n}' for n in COLUMNS)} FROM hall"


@pytest.fixture
def hall(tmp_path):
    """Three motes that sense, and who passes on what they send; by the name of their hardware."""

    def made(kind):
        far = "\n".join(f'{mote} = {{ at = [20, {mote}], board = "probe" }}' for mote in (3, 4, 5))
        links = {(0, LARGE): 1.0, (0, SMALL): 0.9, **{(up, m): q for m in (3, 4, 5) for up, q in ((1, 1.0), (2, 0.9))}}
        pairs = ", ".join(f"[{a}, {b}, {q}], [{b}, {a}, {q}]" for (a, b), q in links.items())
        columns = ", ".join(f"c{n}:integer {{sensor 's{n}'}}" for n in COLUMNS)
        path = tmp_path / "hall.toml"
        path.write_text(f"""name = "hall"
[gateways]
0 = {{ at = [0, 0] }}
[boards.probe]
hardware = "{kind}"
{chr(10).join(f"sensors.s{n} = {{ raw = [0, 4095] }}" for n in COLUMNS)}
[motes]
{LARGE} = {{ at = [10, 0], hardware = "esp32" }}
{SMALL} = {{ at = [10, 5], hardware = "mica2" }}
{far}
[links]
table = [{pairs}]
[extents]
text = "hall: sensed (site:integer, {columns}) every 10 sec at sites 3, 4, 5 wait 10 sec late revise by 1 hour"
""")
        return default_scenario(read_deployment(path))

    return made


def too_large(bed):
    """The motes that are to have programs for which they have no room."""
    motes, found = bed.scenario.deployment.motes, []
    for site, desired in bed.station.world.desired.items():
        if desired.program is not None:
            kept = measure_footprint(decode_assignment(desired.program, site).programs)
            found += [] if kept.fits(load_hardware(motes[site].hardware).processor) else [(site, kept)]
    return found


@pytest.mark.promise("reconciled")
@pytest.mark.parametrize("agenda", [False, True], ids=["awake", "by agenda"])
def test_mote_without_room_forwards_partials_unmerged(hall, agenda):
    dies = InjectedFault("dies", "dies", 200_000, None, (LARGE,))
    scenario = replace(hall("esp32"), queries=GROUPED, faults=(dies,))
    bed = EventTestbed(scenario, 1, agenda=agenda, pushdown="everything")
    look = remembering(bed)
    for second in range(5, 505, 5):
        bed.run_until(second * 1_000, look)
        assert too_large(bed) == []
    assert bed.station.world.tree.parent == {SMALL: 0, 3: SMALL, 4: SMALL, 5: SMALL}
    assert [placed.merging for placed in bed.station.world.running.values()] == [(LARGE,)] * len(GROUPED)
    for asked in GROUPED:
        assert judge(bed, asked.name) >= 6
        last = list(answers(bed, asked.name).items())[-3:]
        assert all(coverage["hall"][0] == coverage["hall"][1] for _, (coverage, _) in last)


@pytest.mark.promise("reconciled")
@pytest.mark.parametrize("terms", [21, 22, 24, 25])
def test_query_without_room_beside_folds_is_refused(hall, terms):
    """A fold that just fits goes on; one that has no room itself is collected."""
    where = " AND ".join(f"c{n % 8} <> {100_000 + n}" for n in range(terms))
    fold = ScenarioQuery("fold", f"SELECT AVG(c0) AS mean FROM hall [NOW] WHERE {where}", 0, None)
    scenario = replace(hall("mica2"), queries=(fold, ScenarioQuery("all", EVERYTHING, 30_000, None)))
    bed = EventTestbed(scenario, 1, pushdown="everything")
    bed.run_until(100_000, remembering(bed))
    assert too_large(bed) == []
    assert bool(bed.station.world.queries[1].partial_sources) == (terms < 25)
    assert list(bed.refused) == (["all"] if 22 <= terms < 25 else [])
    for refused in bed.refused.values():
        assert refused.diagnostics[0].code == "SN601"
        assert "programs and their next version need" in refused.diagnostics[0].message
    assert all(judge(bed, name) >= 6 for name in bed.numbers)
