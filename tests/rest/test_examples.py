"""The example file for Node-RED: its requests get answers of the form that it expects from a real station."""

import json
import re

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
