"""Parameters and paths that are wrong: the refusal says what is right."""

import pytest

from tests.rest.running_station import HEADERS, RunningStation
from tests.station.small_network import QUERIES
from tests.station.test_uploads import CATALOG, COUNT


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station"), CATALOG) as running:
        running.submit(QUERIES[0])
        running.submit(COUNT)
        yield running


@pytest.mark.parametrize(("method", "path", "help"), [
    ("POST", "/v1/queries?dryrun=true", "did you mean `dry_run`?"),
    ("GET", "/v1/queries/1/results?limt=1", "did you mean `limit`?"),
    ("GET", "/v1/queries?limit=1&color=red", "parameters are after, limit, state, owner, extent"),
    ("GET", "/v1/motes?all=1", "it takes none"),
])  # fmt: skip
def test_unknown_parameter_is_refused_with_those_that_there_are(station, method, path, help):
    before = len(station.get("/v1/queries").json()["queries"])
    refused = station.ask(method, path, content=QUERIES[0] if method == "POST" else None)
    assert (refused.status_code, refused.json()["code"], refused.json()["detail"]) == (422, "unknown-parameter", help)
    assert len(station.get("/v1/queries").json()["queries"]) == before


@pytest.mark.parametrize(("path", "headers", "detail"), [
    ("/v1/queries/1/results?wait=-1", {}, "seconds to wait for an update where there is none yet"),
    ("/v1/queries/1/results", {"last-event-id": "soon"}, "the id of the last event that you have of this stream, or only its number"),
])  # fmt: skip
def test_wrong_value_is_refused_with_what_its_parameter_is(station, path, headers, detail):
    refused = station.get(path, headers=HEADERS | headers | {"accept": "text/event-stream"})
    assert (refused.status_code, refused.json()["detail"]) == (422, detail)


def test_wrong_path_and_method_say_where_to_look(station):
    assert station.get("/v1/nothing").json()["detail"] == "/v1/openapi.json lists all"
    refused = station.ask("DELETE", "/v1/queries/1")
    assert (refused.status_code, refused.headers["allow"], refused.json()["detail"]) == (405, "GET", "it takes GET")


def test_queries_are_listed_by_the_extents_that_they_read(station):
    for extent, numbers in (("field", [1]), ("traffic", [2]), ("lanes", []), ("' OR 1", [])):
        found = station.get("/v1/queries", params={"extent": extent}).json()["queries"]
        assert [each["number"] for each in found] == numbers
    assert station.get("/v1/queries/2").json()["extents"] == ["traffic"]
    both = station.get("/v1/queries", params={"extent": "field", "state": "stopped"}).json()
    assert both == {"queries": [], "next": 0}
