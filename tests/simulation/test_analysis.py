"""explain --analyze: simulated motes beside the prediction, and the error of the prediction."""

import json
from dataclasses import replace

import pytest

from basestation.cli import explain as verb
from basestation.controller.what_if import plan_what_if
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from basestation.testbed.analysis import analyse, relative_error
from basestation.testbed.scenarios import deployment_of, make_mote_configs, scenario_around
from basestation.testbed.vector_testbed import VectorTestbed
from gateway.cli import parser_of
from innet.deployment.toml_reader import read_deployment
from innet.payload import decode_assignment
from simulator.radio_medium import Bursts
from simulator.scenario import ScenarioQuery
from tests.docs.pages import ROOT

OFFICE, DAY = (ROOT / "examples/lab54" / name for name in ("deployment.toml", "calm.scenario.toml"))
QUERIES = {
    "collect": "SELECT site, temp, light FROM lab",
    "filter rarely": "SELECT site, temp FROM lab WHERE temp > 20.7",
    "filter often": "SELECT site, temp FROM lab WHERE temp > 20.1",
    "aggregate": "SELECT AVG(temp), COUNT(*) FROM lab [NOW]",
    "aggregate some": "SELECT AVG(temp) FROM lab [FROM NOW-4 MIN TO NOW SLIDE 5 MIN] WHERE temp > 20.1 AND light > 13",
    "grouped": "SELECT MAX(temp) FROM (SELECT light / 10 AS band, temp FROM lab) [NOW] GROUP BY band",
    "by site": "SELECT site, AVG(temp) FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN] GROUP BY site",
    "late": "SELECT site, temp FROM lab WHERE light > 15 DELIVER WITHIN 5 MIN",
    "once in a while": "SELECT AVG(temp) FROM lab [FROM NOW TO NOW SLIDE 5 MIN]",
    "several": "SELECT temp FROM lab WHERE temp > 20.5; SELECT light FROM lab WHERE light > 20; SELECT AVG(temp) FROM lab [NOW]",
}


@pytest.fixture(scope="module")
def office():
    return read_deployment(OFFICE)


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize(
    ("ratio", "allowed"), [(1.0, 0.02), (0.8, 0.06), (None, 0.08)], ids=["calm", "a fifth lost", "office"]
)
def test_informed_prediction_matches_each_mote(office, ratio, allowed, text):
    """The promise is 10 % without loss and 20 % at a fifth of loss. Of the office's own links, some lose nearly all."""
    links = office.links if ratio is None else dict.fromkeys(office.links, ratio)
    deployment = replace(office, links=links)
    catalog = read_deployed_catalog(deployment)
    asked = bind_text(text, catalog)
    told = analyse(asked, scenario_around(deployment, str(DAY)), catalog, 3, None, lambda share: None)
    worst = max(abs(relative_error(each["joules"], "informed")) for each in told["motes"])
    assert len(told["motes"]) == 54 and worst <= allowed
    for figure in ("messages", "bytes"):
        whole = {name: sum(each[figure][name] for each in told["levels"]) for name in ("informed", "measured")}
        assert (
            abs(relative_error(whole, "informed")) <= 0.1
        )  # readings that pass come in runs, and are taken to be scattered
    [covered] = told["covered"]
    assert covered["measured"] == pytest.approx(covered["predicted"], abs=0.02)
    assert told["delivered_ms"]["measured"] <= told["delivered_ms"]["predicted"]


@pytest.mark.promise("predicted-energy")
@pytest.mark.parametrize("text", ["collect", "aggregate", "late"])
@pytest.mark.parametrize(
    ("ratio", "delivery", "bursts"),
    [(1.0, 1.0, Bursts(0.1, 0.5, 0.0)), (0.8, 1.0, Bursts(0.1, 0.3, 0.1)), (None, 0.9, Bursts(0.3, 0.3, 0.3))],
    ids=["calm but for bursts", "a fifth lost", "office"],
)
def test_the_weather_of_a_scenario_is_predicted_mote_by_mote(office, ratio, delivery, bursts, text):
    """Of a day, since bad times of a link are few and long; who does not know of them is off by far more."""
    links = office.links if ratio is None else dict.fromkeys(office.links, ratio)
    deployment = replace(office, links=links)
    catalog = read_deployed_catalog(deployment)
    around = replace(scenario_around(deployment, str(DAY)), delivery=delivery, bursts=bursts)
    asked = bind_text(QUERIES[text], catalog)
    told = analyse(asked, around, catalog, 3, 86_400_000, lambda share: None)
    unaware = plan_what_if(asked, deployment_of(around), catalog).prediction
    hours = unaware.epoch_ms / 3_600_000
    for each in told["motes"]:
        each["joules"]["unaware"] = unaware.motes[each["mote"]].total / hours
    aware, unaware = (
        max(abs(relative_error(each["joules"], by)) for each in told["motes"]) for by in ("informed", "unaware")
    )
    assert aware <= 0.05 and aware * 2 < unaware
    messages = {name: sum(each["messages"][name] for each in told["levels"]) for name in ("informed", "measured")}
    # Late: rounds of many epochs, with few, long slots.
    assert abs(relative_error(messages, "informed")) <= (0.12 if text == "late" else 0.03)
    [covered] = told["covered"]
    assert covered["measured"] == pytest.approx(covered["predicted"], abs=0.06 if text == "late" else 0.02)


def call(capsys, *arguments):
    code = verb.run(parser_of("explain", verb).parse_args([*map(str, arguments)]))
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.mark.promise("predicted-energy")
def test_analysis_is_last_line_and_repeats_with_seed(capsys):
    arguments = "-c", OFFICE, "-o", "json", "--analyze", "--for", "10min", "--seed"
    query = f"{QUERIES['grouped']}; {QUERIES['filter often']}"
    code, out, err = call(capsys, *arguments, 4, query)
    told = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "") and [each["type"] for each in told] == ["plan", "plan", "together", "analysis"]
    assert (told[-1]["seed"], told[-1]["rounds"]) == (4, 20)
    assert told[-1]["world"]["light"] == {"mean": 2047.5, "noise": 682.5}
    assert call(capsys, *arguments, 4, query)[1] == out != call(capsys, *arguments, 5, query)[1]
    alone = {each["mote"]: each["joules"] for each in told[-2]["motes"]["energy"]}
    assert {each["mote"]: each["joules"]["predicted"] for each in told[-1]["motes"]} == alone


@pytest.mark.promise("predicted-energy")
def test_analysis_names_first_empty_battery_by_each_account(office, capsys):
    code, out, _ = call(capsys, "-c", OFFICE, "-o", "json", "--analyze", "--for", "10min", QUERIES["collect"])
    told = json.loads(out.splitlines()[-1])
    assert code == 0
    for name, first in told["worst"].items():
        days = {each["mote"]: office.motes[each["mote"]].battery / each["joules"][name] / 24 for each in told["motes"]}
        assert first["mote"] == min(days, key=days.get)
        assert first["days"] == pytest.approx(days[first["mote"]])
    assert set(told["worst"]) == {"predicted", "informed", "measured"}


@pytest.mark.parametrize("minutes", [5, 10, 30])
def test_a_fold_is_weighed_for_the_rounds_it_then_has(office, minutes):
    """The energy that decides is the predicted energy of all motes."""
    catalog = read_deployed_catalog(office)
    text = f"SELECT AVG(temp) FROM lab [FROM NOW TO NOW SLIDE 5 MIN] ACQUIRE EVERY 5 MIN DELIVER WITHIN {minutes} MIN"
    placed = plan_what_if(bind_text(text, catalog), office, catalog)
    [weighed], used = placed.decisions, placed.prediction
    assert weighed.messages[not weighed.runs] == pytest.approx(used.total.attempts / used.epoch_ms * 3_600_000)


@pytest.mark.promise("explain")
def test_analyze_without_motes_or_work_is_an_error(capsys, tmp_path):
    code, out, err = call(capsys, "--schema", ROOT / "examples/lab54/schema.sneeql", "--analyze", QUERIES["collect"])
    assert (code, out) == (2, "") and "--analyze needs the motes of a deployment (-c) or recorded --readings" in err
    code, out, err = call(capsys, "-c", OFFICE, "--seed", 4, QUERIES["collect"])
    assert (code, out) == (2, "") and "--world, --seed and --for need a simulation (-c and --analyze)" in err
    code, _, err = call(capsys, "-c", OFFICE, "--analyze", "--world", tmp_path / "none.toml", QUERIES["collect"])
    assert (code, err) == (3, f"SN501: {tmp_path / 'none.toml'}: cannot be read: No such file or directory\n")
    code, out, err = call(capsys, "-c", OFFICE, "--analyze", "SELECT room FROM rooms [SCAN 1 DAY]")
    assert code == 2 and err == "SN514: there is nothing to simulate: motes do nothing for this\n"
    code, out, err = call(capsys, "-c", OFFICE, "-o", "json", "--analyze", "SELECT room FROM rooms [SCAN 1 DAY]")
    told = json.loads(out.splitlines()[-1])
    assert (code, err, told["type"], told["code"]) == (2, "", "error", "SN514")
    hasty = f"{QUERIES['collect']} DELIVER WITHIN 1 SEC"
    code, out, err = call(capsys, "-c", OFFICE, "--analyze", hasty)
    assert code == 2 and "simulated on the motes of lab54\n  cannot be run there: a sample arrives after" in out


@pytest.mark.promise("explain")
@pytest.mark.parametrize(
    "text", [*QUERIES.values(), f"{QUERIES['grouped']}; {QUERIES['aggregate']}; {QUERIES['several']}"]
)
@pytest.mark.parametrize("moves", PushdownPolicy)
def test_explained_configs_equal_those_of_a_station(office, moves, text):
    """Programs, parents and agendas, mote by mote, after the queries were submitted in that order."""
    queries = [ScenarioQuery(str(number), query, 0, None) for number, query in enumerate(text.split("; "))]
    bed = VectorTestbed(replace(scenario_around(office, None), queries=tuple(queries)), 1, traced=False, pushdown=moves)
    desired = bed.station.world.desired
    catalog = read_deployed_catalog(office)
    explained = make_mote_configs(plan_what_if(bind_text(text, catalog), office, catalog, pushdown=moves))
    assert desired.keys() == explained.keys() and not bed.refused
    for mote, each in explained.items():
        orders = decode_assignment(desired[mote].program, mote)
        assert [program.code for program in orders.programs] == [program.code for program in each.orders.programs]
        assert (orders.parent, orders.radio_schedule) == (each.orders.parent, each.orders.radio_schedule)
