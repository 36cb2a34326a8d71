"""Extents that users declare: taken for good, queried like others, refused with the reason."""

import json
import sqlite3

import pytest

from basestation.planner.deployed_catalog import read_deployed_catalog
from basestation.rest.api import make_api
from basestation.station.assembly import make_factory
from basestation.station.declared_extents import find_declared, list_declared
from basestation.station.journal import Command, Journal
from basestation.station.journal_file import JournalError
from basestation.testbed.scenarios import read_scenario
from tests.docs.pages import ROOT
from tests.rest.running_station import HEADERS, RunningStation
from tests.station.small_network import SmallNetwork
from tests.station.test_uploads import CATALOG

LORRIES = "lorries: pushed (lane:integer, weight:integer {unit 'kg'}) wait 1 sec"


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path, CATALOG) as running:
        yield running


def declare(station, text=LORRIES, name="lorries", **headers):
    return station.ask("PUT", f"/v1/extents/{name}", content=text, headers=HEADERS | headers)


def test_declared_extent_takes_tuples_and_answers_queries(station):
    made = declare(station)
    assert (made.status_code, made.json()["name"], made.json()["repeated"]) == (201, "lorries", False)
    assert declare(station).status_code == 200 and declare(station).json()["repeated"]
    [listed] = [each for each in station.get("/v1/extents").json()["extents"] if each["name"] == "lorries"]
    assert listed["attributes"][1] == {"name": "weight", "type": "integer", "unit": "kg"}
    query = station.submit("SELECT lane, weight FROM lorries WHERE weight > 1000").json()["number"]
    receipt = station.ask(
        "POST", "/v1/extents/lorries/tuples", content='{"lane": 1, "weight": 9000}\n{"lane": 2, "weight": 1}'
    )
    assert receipt.json()["accepted"] == 2
    assert [each["row"] for each in station.wait_for(query, 1) if each["type"] == "tuple"] == [[1, 9000]]


def test_declared_table_takes_rows_and_joins(station):
    assert declare(station, "names: stored (lane:integer, name:string)", "names").status_code == 201
    rows = station.ask("PUT", "/v1/extents/names/rows", content='{"lane": 1, "name": "slow"}')
    assert rows.json()["accepted"] == 1
    tables = {each["extent"]: each["versions"] for each in station.get("/v1/tables").json()["tables"]}
    assert [version["rows"] for version in tables["names"]] == [1]


@pytest.mark.parametrize(
    ("text", "name", "status", "code"),
    [
        (LORRIES, "trucks", 422, "other-name"),
        ("traffic: pushed (lane:integer)", "traffic", 409, "already-declared"),
        ("bridge: sensed (site:integer, temp:integer) every 1 min at sites 1", "bridge", 409, "not-declarable"),
        ("names: stored (lane:integer) from '/etc/passwd'", "names", 409, "not-declarable"),
        ("a: pushed (x:integer)\nb: pushed (y:integer)", "a", 422, "not-one-extent"),
        ("lorries: pushed (lane:intger)", "lorries", 422, None),
        ("lorries pushed", "lorries", 422, None),
        ("", "lorries", 422, None),
    ],
)
def test_wrong_declaration_is_refused_and_changes_nothing(station, text, name, status, code):
    before = station.get("/v1/extents").json()
    refused = declare(station, text, name)
    assert refused.status_code == status, refused.text
    assert refused.json()["code"] == code or (code is None and refused.json()["diagnostics"])
    assert refused.json()["title"] and station.get("/v1/extents").json() == before


def test_declared_extent_is_there_after_a_crash(tmp_path):
    station = SmallNetwork(tmp_path, CATALOG)
    station.live(5)
    station.durable.take_data(Command("declare", station.now_ms, LORRIES), LORRIES)
    number = station.submit("SELECT lane FROM lorries")
    station.live(5)
    extents = dict(station.durable.station.world.catalog.extents)
    station.restart()
    assert station.durable.station.world.catalog.extents == extents and "lorries" in extents
    assert station.durable.station.engine.catalog.extents == extents
    assert number in station.durable.station.world.live and find_declared(station.journal) == {"lorries"}
    station.durable.snapshot(station.now_ms)
    station.restart()
    assert station.durable.station.world.catalog.extents == extents
    station.end()


def test_declaration_on_a_full_disk_is_refused_until_it_is_kept(station, monkeypatch):
    journal = station.network.journal
    commit = journal.commit

    def full_for_declarations(entries, *given, **named):
        if any(entry.kind == "declare" for entry in entries):
            full_disk()
        commit(entries, *given, **named)

    with monkeypatch.context() as broken:
        broken.setattr(journal, "commit", full_for_declarations)
        broken.setattr(journal, "state_fact", full_disk)
        for _ in range(2):
            refused = declare(station, **{"Idempotency-Key": "once"})
            assert refused.status_code == 503 and "disk is full" in refused.text
        assert not find_declared(journal)
    made = declare(station, **{"Idempotency-Key": "once"})
    assert made.status_code == 200 and made.json()["repeated"] and find_declared(journal) == {"lorries"}
    assert declare(station, "bikes: pushed (lane:integer)", "bikes").status_code == 201
    assert find_declared(journal) == {"bikes", "lorries"}


def full_disk(*_, **__):
    raise sqlite3.OperationalError("database or disk is full")


def test_start_takes_declared_extents_and_no_unknown_ones(tmp_path):
    deployment = read_scenario(ROOT / "examples" / "roadbridge" / "night.scenario.toml").deployment
    make, journal = make_factory(deployment, False), Journal(tmp_path)
    from gateway.transports.memory import connected_pair

    station = make(connected_pair()[0], 0)
    make.check(station, find_declared(journal))
    station.declare(LORRIES, 1_000)
    with pytest.raises(JournalError, match="another deployment"):
        make.check(station, find_declared(journal))
    journal.commit([], facts=list_declared(journal, ["lorries"]))
    make.check(station, find_declared(journal))
    assert read_deployed_catalog(deployment).extents.keys() | {"lorries"} == station.world.catalog.extents.keys()
    journal.close()


def test_key_of_a_pause_is_taken_once(station):
    number = station.submit("SELECT lane FROM traffic").json()["number"]
    key = {"idempotency-key": "night"}

    def change(kind, **headers):
        return station.ask("POST", f"/v1/queries/{number}/{kind}", headers=HEADERS | headers)

    assert change("pause", **key).json()["state"] == "paused"
    assert change("resume").status_code == 200
    again = change("pause", **key)
    assert again.status_code == 200 and again.json()["state"] != "paused", "it was carried out before"
    other = change("stop", **key)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert change("stop").json()["state"] == "stopped"


def test_own_limit_of_results_is_kept(station):
    from basestation.station.retention import Budget

    body = {"text": "SELECT temp FROM field [NOW]", "limits": {"results": 2}}
    assert station.ask("POST", "/v1/queries", json=body).status_code == 201
    station.submit("SELECT temp FROM field [NOW]")
    station.wait_for(1, 8), station.wait_for(2, 8)
    station.runner.call(lambda now_ms: station.network.journal.trim(Budget(), now_ms))
    kept = [station.get(f"/v1/queries/{number}/account").json()["results_kept"] for number in (1, 2)]
    assert kept[0] < 8 <= kept[1]


@pytest.mark.parametrize(
    "body",
    [
        {"limits": {"results": 0}},
        {"limits": {"results": True}},
        {"limits": {"days": 1}},
        {"limits": 7},
        {"owner": ""},
        {"owner": "anna.mean"},
        {"owner": "an\u001bna"},
        {"owner": "x" * 65},
        {"owner": 1},
    ],
)
def test_wrong_limits_and_owners_are_refused(station, body):
    refused = station.ask("POST", "/v1/queries", json={"text": "SELECT temp FROM field [NOW]"} | body)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad-request")
    assert (
        station.ask("POST", "/v1/queries", json={"text": "SELECT lane FROM traffic", "owner": "anna"}).json()["owner"]
        == "anna"
    )


def read_events(station, path, count, **headers):
    """The first events of a stream, as dictionaries of their fields; its application ends as soon as there are so many."""
    asked = [0]

    def is_ending():
        asked[0] += 1
        return asked[0] > count

    api, station.api = station.api, make_api(station.control, station.tokens, is_ending)
    try:
        text = station.get(path, headers=HEADERS | {"accept": "text/event-stream"} | headers).text
    finally:
        station.api = api
    blocks = [block for block in text.split("\n\n") if block and not block.startswith(":")]
    return [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


@pytest.mark.promise("resume")
def test_events_are_streamed_filtered_and_resumed(station):
    number = station.submit("SELECT temp FROM field [NOW]").json()["number"]
    station.wait_for(number, 1)
    epoch = station.network.journal.epoch
    found = read_events(station, "/v1/events", 3)
    assert [json.loads(each["data"])["event"] for each in found[:2]] == ["query deploying", "query running"]
    assert [each["id"] for each in found[:2]] == [f"{epoch}-1", f"{epoch}-2"]
    resumed = read_events(station, "/v1/events", 3, **{"last-event-id": found[0]["id"]})
    assert resumed[0]["id"] == f"{epoch}-2"
    filtered = read_events(station, "/v1/events?event=query%20running", 3)
    assert [json.loads(each["data"])["event"] for each in filtered] == ["query running"]
    page = station.get("/v1/events", params={"event": "query running"}).json()["events"]
    assert [each["number"] for each in page] == [2]


@pytest.mark.promise("resume")
@pytest.mark.parametrize("path", ["/v1/events", "/v1/queries/1/results"])
@pytest.mark.parametrize(
    ("last", "status", "code"),
    [
        ("999999", 422, "from-the-future"),
        ("00000000-1", 410, "results-gone"),
        ("soon", 422, "bad-request"),
        ("-1", 422, "bad-request"),
    ],
)
def test_last_event_id_that_is_none_is_refused(station, path, last, status, code):
    station.submit("SELECT temp FROM field [NOW]")
    refused = station.get(path, headers=HEADERS | {"accept": "text/event-stream", "last-event-id": last})
    assert (refused.status_code, refused.json()["code"]) == (status, code), refused.text


@pytest.mark.promise("resume")
@pytest.mark.parametrize("path", ["/v1/events", "/v1/queries/1/results"])
def test_stream_beyond_the_newest_number_is_refused(station, path):
    station.submit("SELECT temp FROM field [NOW]")
    refused = station.get(path, params={"after": 10**9}, headers=HEADERS | {"accept": "text/event-stream"})
    assert (refused.status_code, refused.json()["code"]) == (422, "from-the-future"), refused.text
    newest = int(refused.json()["detail"].rpartition("=")[2])
    assert newest < 10**9 and f"`after` is {10**9}" in refused.json()["title"]
    assert station.get(path, params={"after": 10**9}).status_code == 200, "a page waits for it"


@pytest.mark.promise("resume")
@pytest.mark.parametrize(("path", "last", "of"), [
    ("/v1/queries/1/results", "{}-2-1", "the results of query 2"),
    ("/v1/queries/1/results", "{}-1", "the events of the station"),
    ("/v1/events", "{}-1-1", "the results of query 1"),
])  # fmt: skip
def test_last_event_id_of_another_stream_is_refused(station, path, last, of):
    station.submit("SELECT temp FROM field [NOW]")
    last = last.format(station.network.journal.epoch)
    refused = station.get(path, headers=HEADERS | {"accept": "text/event-stream", "last-event-id": last})
    assert (refused.status_code, refused.json()["code"]) == (422, "other-stream") and of in refused.text
