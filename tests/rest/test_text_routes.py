"""Routes that take a query text and change nothing: dry run, check, explain."""

import pytest

from basestation.controller.what_if import initial_world
from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.station.text_description import describe_dry_run
from innet.deployment.toml_reader import read_deployment
from tests.docs.pages import ROOT
from tests.rest.running_station import HEADERS, RunningStation
from tests.station.small_network import QUERIES


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path) as running:
        yield running


def test_dry_run_shows_the_plan_and_deploys_nothing(station):
    planned = station.ask("POST", "/v1/queries?dry_run=true", content=QUERIES[2])
    assert planned.status_code == 200
    found = planned.json()
    assert (found["dry_run"], found["plan"]["kind"], found["plan"]["query"]) == (True, "window", 1)
    assert [column["name"] for column in found["plan"]["columns"]] == ["mean", "n"]
    assert found["cost"] is None, "the motes of this station are not declared"
    assert station.get("/v1/queries").json()["queries"] == []
    assert station.submit(QUERIES[2]).json()["number"] == 1


def test_plan_of_a_query_is_that_of_its_dry_run(station):
    planned = station.ask("POST", "/v1/queries?dry_run=true", content=QUERIES[2]).json()["plan"]
    station.ask("POST", "/v1/queries?name=mean", content=QUERIES[2])
    assert station.get("/v1/queries/mean/plan").json() == planned
    text = station.get("/v1/queries/1/plan", headers=HEADERS | {"accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain") and "AVG(temp)" in text.text
    station.ask("POST", "/v1/queries/1/stop")
    assert station.get("/v1/queries/1/plan").json() == planned, "also of one that is over"
    assert station.get("/v1/queries/2/plan").json()["code"] == "no-such-query"


@pytest.mark.parametrize(
    ("text", "code"),
    [("SELECT tmep FROM field [NOW]", "SN202"), ("SELECT temp FROM field [NOW]; SELECT 1 FROM field [NOW]", "SN601"),
     ("SELECT temp FROM field [NOW] SINCE 10", "SN434"), ("REVISE field SET temp = 1 WHERE site = 3", "SN601")],
)  # fmt: skip
def test_dry_run_refuses_what_a_submission_refuses(station, text, code):
    dry = station.ask("POST", "/v1/queries?dry_run=true", content=text)
    wet = station.submit(text)
    assert (dry.status_code, dry.json()["code"]) == (422, code)
    places = [
        [(d["code"], d["line"], d["column"], d["length"]) for d in each.json()["diagnostics"]] for each in (dry, wet)
    ]
    assert places[0] == places[1]


def test_dry_run_refuses_a_name_that_is_taken(station):
    station.ask("POST", "/v1/queries", json={"text": QUERIES[0], "name": "mean"})
    refused = station.ask("POST", "/v1/queries?dry_run=true", json={"text": QUERIES[0], "name": "mean"})
    assert (refused.status_code, refused.json()["code"]) == (409, "not-in-this-state")


def test_dry_run_counts_what_a_query_adds_to_those_that_run():
    deployment = read_deployment(ROOT / "examples/roadbridge/deployment.toml")
    world = initial_world(deployment, read_deployed_catalog(deployment))
    text = "SELECT AVG(temp) FROM road [NOW]"
    found, planned = describe_dry_run(text, world, 0)
    assert found["cost"]["now"] == {"messages": 0.0, "bytes": 0.0, "joules": 0.0, "days": None}
    first = found["cost"]["with_query"]
    assert first["messages"] > 0 and first["days"] > 1 and found["changed_motes"] == sorted(deployment.motes)
    running = planned.target.with_query(planned.queries[1])
    again, _ = describe_dry_run(text, running, 0)
    assert again["cost"]["now"] == first and again["plan"]["query"] == 2
    assert again["cost"]["with_query"] == first, "the same aggregate is folded once"
    other, _ = describe_dry_run("SELECT temp FROM road [NOW]", running, 0)
    assert other["cost"]["with_query"]["joules"] > first["joules"]


def test_check_names_every_error_with_its_place(station):
    found = station.ask("POST", "/v1/check", content="SELECT tmep,\nvlot FROM field [NOW]").json()
    assert not found["ok"] and found["statements"] == []
    places = [(each["code"], each["line"], each["column"], each["length"]) for each in found["diagnostics"]]
    assert places == [("SN202", 1, 8, 4), ("SN202", 2, 1, 4)]
    assert "`temp`" in found["diagnostics"][0]["help"]


def test_check_describes_correct_statements(station):
    text = f"{QUERIES[0]}; REVISE field SET volt = 1 WHERE site = 3"
    found = station.ask("POST", "/v1/check", json={"text": text}).json()
    assert found["ok"] and found["diagnostics"] == []
    query, correction = found["statements"]
    assert (query["type"], query["kind"], query["columns"][0]["name"]) == ("query", "window", "temp")
    assert correction == {"type": "correction", "how": "revise", "extent": "field"}


def test_explain_gives_json_and_text(station):
    explained = station.ask("POST", "/v1/explain", content=QUERIES[2]).json()
    [statement] = explained["statements"]
    assert statement["type"] == "plan" and statement["physical"] and statement["refused"] is None
    text = station.ask("POST", "/v1/explain", content=QUERIES[2], headers=HEADERS | {"accept": "text/plain"})
    assert text.headers["content-type"].startswith("text/plain") and text.text.startswith("query 1: window query")
    refused = station.ask("POST", "/v1/explain", content="SELECT")
    assert (refused.status_code, refused.json()["code"]) == (422, "SN105")


def test_complete_gives_the_words_at_the_cursor(station):
    found = station.ask("POST", "/v1/complete", content="SELECT te FROM field [NOW]", params={"cursor": 9}).json()
    assert found["start"] == 7 and "temp" in [each["text"] for each in found["completions"]]
    at_end = station.ask("POST", "/v1/complete", json={"text": "SELECT temp FROM fi"}).json()
    assert [each["text"] for each in at_end["completions"] if each["kind"] == "extent"] == ["field"]
    long = station.ask("POST", "/v1/complete", content="x" * 10_001)
    assert (long.status_code, long.json()["code"]) == (413, "too-long")
