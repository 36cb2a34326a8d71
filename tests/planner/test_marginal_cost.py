"""The costs of several queries on the same motes: they add up, shared work costs nothing, and memory is counted."""

import json

import pytest

from basestation.cli import explain as verb
from basestation.controller.what_if import plan_what_if
from basestation.explain import explain_workload, render_workload
from basestation.explain.marginal_cost import HourlyCost, predict_workload
from basestation.planner.binder import bind_text
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.planner.pushdown_policy import PushdownPolicy
from gateway.cli import parser_of
from innet.costs.hardware import load_hardware
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import ROOT

OFFICE = ROOT / "examples/lab54/deployment.toml"
BRIDGE = ROOT / "examples/roadbridge/deployment.toml"
MEAN = "SELECT AVG(temp) FROM lab [FROM NOW-9 MIN TO NOW SLIDE 10 MIN]"
ALL = "SELECT site, temp, light FROM lab"
ODD = "SELECT site, temp FROM lab WHERE temp > 22"


@pytest.fixture(scope="module")
def office():
    deployment = read_deployment(OFFICE)
    return deployment, read_deployed_catalog(deployment)


def asked(texts, catalog):
    return dict(enumerate((plan for text in texts for plan in bind_text(text, catalog)), 1))


@pytest.mark.promise("explain")
def test_shared_work_has_no_marginal_cost(office):
    deployment, catalog = office
    found = predict_workload(asked([ALL, ODD, ODD], catalog), deployment, catalog)
    nothing = HourlyCost(0.0, 0.0, 0.0, 0.0)
    assert found.each[2].added == found.each[3].added == nothing and found.each[2].alone.messages > 1_000
    added = found.each[1].added
    assert added.messages > 0 and added.joules > 0 and added.days < 0
    assert HourlyCost.of(found.placed.prediction).messages == pytest.approx(found.each[1].alone.messages)


@pytest.mark.promise("explain")
@pytest.mark.parametrize("texts", [[MEAN, ODD], [ALL, MEAN, "SELECT light FROM lab WHERE light > 5"]])
def test_marginal_cost_is_total_less_others(office, texts):
    """The last query leaves the plans of the others unchanged."""
    deployment, catalog = office
    queries = asked(texts, catalog)

    def joules(*plans):
        prediction = plan_what_if(plans, deployment, catalog).prediction
        return sum(use.total for use in prediction.motes.values()) * 3_600_000 / prediction.epoch_ms

    found = predict_workload(queries, deployment, catalog)
    assert HourlyCost.of(found.placed.prediction).joules == pytest.approx(joules(*queries.values()))
    for number, each in found.each.items():
        others = [query for n, query in queries.items() if n != number]
        assert each.added.joules == pytest.approx(joules(*others, queries[number]) - joules(*others))
        assert each.alone == HourlyCost.of(plan_what_if([queries[number]], deployment, catalog).prediction)


@pytest.mark.promise("explain")
def test_running_fold_serves_equal_aggregation(office):
    """A running mean serves the next query too; a later variance cannot widen it."""
    deployment, catalog = office
    mean, same, wider = (
        bind_text(MEAN.replace("AVG(temp)", what), catalog)[0] for what in ("AVG(temp)", "SUM(temp)", "VARIANCE(temp)")
    )
    states = [p.operator.states for p in plan_what_if([mean, same], deployment, catalog).placement.folds]
    assert [[kind for kind, _ in each] for each in states] == [["SUM"]]
    states = [p.operator.states for p in plan_what_if([mean, wider], deployment, catalog).placement.folds]
    assert [[kind for kind, _ in each] for each in states] == [["SUM"], ["VARIANCE"]]
    states = [p.operator.states for p in plan_what_if([wider, mean], deployment, catalog).placement.folds]
    assert [[kind for kind, _ in each] for each in states] == [["VARIANCE"]]


def test_single_query_has_no_workload(office):
    deployment, catalog = office
    assert predict_workload(asked([MEAN], catalog), deployment, catalog) is None
    assert explain_workload(bind_text(MEAN, catalog), deployment, catalog) is None


def test_infeasible_query_gives_reason_others_have_costs(office):
    deployment, catalog = office
    hasty = f"{ALL} DELIVER WITHIN 1 SEC"
    explained = explain_workload(bind_text(f"{MEAN} DELIVER WITHIN 5 MIN; {hasty}", catalog), deployment, catalog)
    assert explained["all"].startswith("a sample arrives after ") and explained["motes"] is None
    assert explained["queries"][1]["alone"].startswith("a sample arrives after ")
    assert explained["queries"][0]["alone"]["messages"] > 0 and explained["queries"][0]["added"] == explained["all"]
    assert render_workload(explained).startswith(
        "together on the motes\n  these motes cannot run them: a sample arrives"
    )


@pytest.mark.promise("explain")
def test_memory_counts_programs_tables_and_queues(office):
    deployment, catalog = office
    placed = plan_what_if(
        list(asked([MEAN, ODD], catalog).values()), deployment, catalog, pushdown=PushdownPolicy.EVERYTHING
    )
    assert placed.placement.folds
    kind = load_hardware("telosb")
    below = {mote: 1 for mote in placed.placement.tree.parent}
    for mote in placed.placement.tree.leaves_first:
        if (parent := placed.placement.tree.parent[mote]) in below:
            below[parent] += below[mote]
    kept = placed.footprints
    sizes = {mote: each.queue / below[mote] for mote, each in kept.items()}
    assert len(set(sizes.values())) == 1  # each of those below has one frame of the same length at most
    for mote, each in kept.items():
        codes = [program.code for program in placed.programs if program.site == mote]
        assert each.programs == 2 * sum(map(len, codes)) and each.fits(kind.processor)
    tables = {table.number: table for program in placed.programs for table in program.tables}
    rooms = [table.room * table.shape.group_bytes for table in tables.values()]
    assert {each.tables for each in kept.values()} == {sum(rooms)}


@pytest.mark.promise("explain")
def test_no_mote_filters_if_one_lacks_memory_for_conditions(capsys):
    terms = " AND ".join("temp <> {0}.{1} AND light <> {0}{1}".format("{0}", n) for n in range(5))
    query = "; ".join(f"SELECT site, temp FROM lab WHERE {terms.format(n)}" for n in range(20, 30))
    code = verb.run(parser_of("explain", verb).parse_args(["-c", str(OFFICE), query]))
    out = capsys.readouterr().out
    each, together_ = out.split("together on the motes of lab54")
    assert code == 0 and "no mote evaluates conditions: some mote has no room for those of all queries" in together_
    assert "no mote asks" not in each and "select " in each and "select " not in together_


def test_recorded_readings_give_selectivities(capsys):
    """A recording in which no reading passes, and one in which most do."""
    bridge = ["-c", str(BRIDGE), "-o", "json", "--readings", f"road={ROOT / 'examples/roadbridge/recording/road.csv'}"]
    messages = {}
    for limit in (-1, 20, 100_000):
        query = f"SELECT site, temp FROM road WHERE vibration > {limit}"
        assert verb.run(parser_of("explain", verb).parse_args([*bridge, query])) == 0
        motes = json.loads(capsys.readouterr().out)["motes"]
        assert motes["statistics"] == "counted in 5,703 readings"
        messages[limit] = sum(level["messages"] for level in motes["levels"])
    assert messages[100_000] <= messages[20] < messages[-1]
    # No reading passes, so there is a report in each eighth epoch: a frame has room for eight readings.
    assert messages[100_000] == pytest.approx(messages[-1] / 8)


def test_readings_of_pushed_extent_are_bad_input(capsys):
    arguments = ["-c", str(BRIDGE), "--readings", "raod=road.csv", "SELECT site FROM road"]
    assert verb.run(parser_of("explain", verb).parse_args(arguments)) == 3
    assert capsys.readouterr().err == "SN510: road.csv: there is no sensed extent `raod`\n"
