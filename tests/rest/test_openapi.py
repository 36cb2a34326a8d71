"""The OpenAPI document: checked in, complete, and kept by every answer, whatever a request has in it."""

import importlib.util
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from basestation.rest.openapi import EXAMPLES
from tests.conftest import current_seed
from tests.docs.pages import ROOT
from tests.rest.running_station import HEADERS, RunningStation
from tests.station.small_network import QUERIES
from tests.station.test_uploads import CATALOG

_SPEC = importlib.util.spec_from_file_location("openapi_tool", ROOT / "tools" / "openapi.py")
tool = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tool)


BATCH = 500
BODILESS = "/v1/tickets", "/v1/session"
"""Routes that change something and take no body, but for those of queries."""


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path, CATALOG) as running:
        yield running


def test_checked_in_document_is_that_of_the_routes():
    assert tool.FILE.read_text(encoding="utf-8") == tool.text(), "it is stale: python tools/openapi.py"


def test_every_operation_says_what_it_takes_and_answers(station):
    document = station.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1") and len(document["paths"]) >= 25
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"] and "scope `" in operation["description"], path
            assert {"401", "403", "422", "429", "503"} <= set(operation["responses"]), path
            assert all(answer["description"] for answer in operation["responses"].values())
            assert method == "get" or "requestBody" in operation or "{" in path or path in BODILESS, path


def test_examples_have_the_keys_of_real_answers(station):
    station.ask("POST", "/v1/queries", json={"text": QUERIES[2], "name": "mean"})
    station.wait_for(1, 1)
    rows = b'{"lane": 1, "name": "slow"}'
    real = {
        ("put", "/v1/extents/{name}/rows"): station.ask("PUT", "/v1/extents/lanes/rows", content=rows),
        ("get", "/v1/queries/{query}"): station.get("/v1/queries/mean"),
        ("get", "/v1/queries"): station.get("/v1/queries"),
        ("get", "/v1/queries/{query}/results"): station.get("/v1/queries/1/results"),
        ("get", "/v1/queries/{query}/current"): station.get("/v1/queries/1/current"),
        ("post", "/v1/check"): station.ask("POST", "/v1/check", content=QUERIES[2]),
        ("post", "/v1/complete"): station.ask("POST", "/v1/complete", content="SELECT temp FROM fi"),
        ("get", "/v1/tables"): station.get("/v1/tables"),
        ("post", "/v1/statements"): station.ask("POST", "/v1/statements", content="DELETE FROM traffic WHERE lane = 1"),
        ("post", "/v1/extents/{name}/tuples"): station.ask(
            "POST", "/v1/extents/traffic/tuples", content=b'{"lane": 1}\n{"lane": "x"}'
        ),
        ("get", "/v1/ready"): station.get("/v1/ready"),
    }
    for route, answer in real.items():
        assert keys(EXAMPLES[route]) == keys(answer.json()), route


def keys(value):
    """The keys of an answer, and of the first object in each list of it."""
    if isinstance(value, dict):
        return {key: keys(each) for key, each in value.items() if key not in ("coverage", "columns")}
    return [keys(value[0])] if isinstance(value, list) and value and isinstance(value[0], dict) else None


@pytest.mark.promise("documented")
@pytest.mark.timeout(600)
def test_generated_requests_get_documented_answers(tmp_path, counts, tally):
    schemathesis = pytest.importorskip("schemathesis")
    with RunningStation(tmp_path, CATALOG) as station:
        station.submit(QUERIES[0])
        operations = [found.ok() for found in schemathesis.openapi.from_dict(station.document).get_all_operations()]
        assert len(operations) >= 25
        cases = st.one_of([operation.as_strategy() for operation in operations])

        queries, extents = st.sampled_from(["1", "mean", None]), st.sampled_from(["traffic", "lanes", "field", None])

        def send(case, query, extent):
            given = {"query": query, "name": extent, "job": query if query == "1" else None}
            path = {name: given.get(name) or value for name, value in (case.path_parameters or {}).items()}
            case.path_parameters = path
            if case.query and "wait" in case.query:
                case.query = {**case.query, "wait": 0}
            request = case.as_transport_kwargs(base_url="http://localhost", headers=HEADERS)
            body = {"content": request["data"]} if request.get("data") is not None else {"json": request.get("json")}
            response = station.ask(
                request["method"], request["url"], request["headers"], params=request.get("params"), **body
            )
            statuses[response.status_code] += 1
            assert response.status_code < 500 or response.status_code == 503, (request, response.text)

        total, statuses = counts(100, 1_500, 50_000), Counter()
        for begin in range(0, total, BATCH):  # Hypothesis gets slower with the examples that it remembers
            of_batch = settings(
                max_examples=min(BATCH, total - begin),
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            )
            seed(f"{current_seed()}:{begin}")(of_batch(given(cases, queries, extents)(send)))()
        tally("statuses of generated requests", statuses)
        assert {"200", "404", "422"} <= {status for *_, status in station.documented}
        assert len({route for _, route, _ in station.documented}) >= 20
