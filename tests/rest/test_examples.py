"""The example files for Grafana and Node-RED: their requests get answers of the form that they expect from a real station."""

import csv
import io
import json
import re
from datetime import UTC, datetime

import httpx
import pytest

from basestation.station.rest_server import RestServer
from tests.docs.pages import ROOT
from tests.rest.running_station import HEADERS, RunningStation

STATION = "http://127.0.0.1:8137"
"""The address in the files: the one at which `moteloom run` listens."""
MEAN = "SELECT AVG(temp) AS mean FROM field [NOW]"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station")) as station:
        station.ask("POST", "/v1/queries", json={"text": MEAN, "name": "road-mean"})
        station.wait_for(1, 3)
        with RestServer(station.control, station.tokens) as server:
            yield server.url


def test_grafana_panel_reads_times_and_numbers(url):
    dashboard = json.loads((ROOT / "examples" / "grafana" / "road.dashboard.json").read_text())
    [target] = [target for panel in dashboard["panels"] for target in panel["targets"]]
    values = {"${__from:date:iso}": "2020-01-01T00:00:00.000Z"}
    parameters = {each["key"]: values.get(each["value"], each["value"]) for each in target["url_options"]["params"]}
    assert target["url"].startswith(STATION) and target["type"] == "csv"
    answer = httpx.get(target["url"].replace(STATION, url), params=parameters, headers=HEADERS, timeout=60)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(rows) >= 3 and {each["selector"] for each in target["columns"]} <= rows[0].keys()
    shown = [row for row in rows if float(row["_weight"]) > 0]
    assert target["filterExpression"] == "_weight > 0" and shown
    assert all(datetime.fromisoformat(row["_time"]) > datetime(2020, 1, 1, tzinfo=UTC) for row in shown)
    means = [float(row["mean"]) for row in shown if row["mean"]]  # it is empty where no reading came
    assert means and all(0 < mean < 40 for mean in means)


def test_node_red_flow_goes_on_behind_each_page(url):
    nodes = {each["id"]: each for each in json.loads((ROOT / "examples" / "node-red" / "road.flow.json").read_text())}
    assert {to for node in nodes.values() for wires in node.get("wires", ()) for to in wires} <= nodes.keys()
    [asking] = [node for node in nodes.values() if node["type"] == "http request"]
    [begin] = [node for node in nodes.values() if node["type"] == "inject"]
    [split], [switch] = ([node for node in nodes.values() if node["type"] == kind] for kind in ("split", "switch"))
    [change] = [node for node in nodes.values() if node["type"] == "change"]
    assert asking["authType"] == "bearer" and asking["url"].startswith(STATION)
    message, numbers = {each["p"]: each["v"] for each in begin["props"]}, []
    for _ in range(3):
        asked = re.sub(r"\{\{\{(\w+)\}\}\}", lambda name: message[name[1]], asking["url"]).replace(STATION, url)
        answer = httpx.request(asking["method"], asked, headers=HEADERS, timeout=60)
        assert answer.status_code == 200
        parts = answer.text.split("\n")  # as the node `split` does, which leaves an empty one at the end
        assert parts[-1] == "" and switch["rules"] == [{"t": "nempty"}] and split["wires"] == [[switch["id"]]]
        numbers += [json.loads(part)["number"] for part in parts if part]
        [rule] = change["rules"]
        message[rule["p"]] = answer.headers[re.fullmatch(r'headers\["([a-z-]+)"\]', rule["to"])[1]]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 3
