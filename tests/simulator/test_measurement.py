"""Both engines measure the same for motes with a fixed configuration."""

from dataclasses import replace

import numpy as np
import pytest

from basestation.controller.what_if import plan_what_if
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.scenarios import make_mote_configs, scenario_around
from innet.deployment.toml_reader import read_deployment
from simulator.measurement import measure, measure_by_events, measure_vectorised
from simulator.radio_medium import Bursts
from simulator.scenario import Quantity
from tests.conftest import count_of
from tests.docs.pages import ROOT

QUERIES = {
    "collected": "SELECT site, temp, light FROM lab",
    "filtered": "SELECT site, temp FROM lab WHERE temp > 24 AND light > 300",
    "folded": "SELECT AVG(temp) FROM lab [FROM NOW-2 MIN TO NOW SLIDE 3 MIN] WHERE light > 300",
    "grouped": "SELECT MAX(temp) FROM (SELECT light / 300 AS band, temp FROM lab) [NOW] GROUP BY band",
    "both": "SELECT light FROM lab WHERE light > 700; SELECT site, AVG(temp) FROM lab [NOW] GROUP BY site",
}
WORLD = {"temperature": Quantity(22.0, 2.0), "light": Quantity(400.0, 200.0)}


@pytest.fixture(scope="module")
def office():
    return read_deployment(ROOT / "examples/lab54/deployment.toml")


def placed(deployment, text, moves=PushdownPolicy.PLANNED):
    catalog = read_deployed_catalog(deployment)
    asked = bind_text(text, catalog)
    return plan_what_if(asked, deployment, catalog, pushdown=moves)


def sorted_rows(made):
    order = np.lexsort((made.tick, made.site))
    lanes = [
        part[order] for name in sorted(made.values) for part in (made.values[name].values, made.values[name].valid)
    ]
    return [column.tolist() for column in (made.site[order], made.tick[order], *lanes)]


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
def test_both_engines_measure_the_same(office, text):
    outlook = placed(office, text)
    configs, runs = make_mote_configs(outlook), outlook.placement.placed
    around = replace(scenario_around(office, None), world=WORLD, begin_ms=3_600_000, bursts=Bursts(0.05, 0.4, 0.3))
    at = range(120, count_of(155, 185))
    one, many = (
        way(configs, runs, around, 5, at, lambda over: None) for way in (measure_by_events, measure_vectorised)
    )
    assert many.joules == pytest.approx(one.joules, rel=1e-9) and len(one.joules) == 54
    assert (many.rounds, many.round_ms, many.covered) == (one.rounds, one.round_ms, one.covered)
    assert (many.tally.attempts, many.tally.bytes, many.tally.lost) == (
        one.tally.attempts,
        one.tally.bytes,
        one.tally.lost,
    )
    assert many.latest_ms == one.latest_ms > 0 and 0.5 < many.covered["lab"] < 1
    assert sorted_rows(many.sampled["lab"]) == sorted_rows(one.sampled["lab"])


def test_without_loss_all_readings_are_covered(office):
    calm = replace(office, links=dict.fromkeys(office.links, 1.0))
    around = replace(scenario_around(calm, None), world=WORLD)
    outlook = placed(calm, QUERIES["filtered"])
    found = measure(make_mote_configs(outlook), outlook.placement.placed, around, 1, 40)
    assert found.covered == {"lab": 1.0} and not found.tally.lost.total()


def test_measurement_falls_back_to_event_engine(office):
    """A table with more groups than it has room for: what goes early is for the motes themselves to tell."""
    text = "SELECT site, light, COUNT(*) FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN] GROUP BY site, light"
    outlook = placed(office, text, PushdownPolicy.EVERYTHING)
    configs, runs = make_mote_configs(outlook), outlook.placement.placed
    around = replace(scenario_around(office, None), world=WORLD)
    over = []
    found = measure(configs, runs, around, 1, 40, over.append)
    assert over == list(range(1, 41)) and found.tally.delivered["PARTIAL"] > 0 and found.covered["lab"] > 0.9
