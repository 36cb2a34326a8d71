"""Tuples, tables and statements over REST: receipts, wrong rows, and refusals that say what would be accepted."""

import json

import pytest

from tests.rest.running_station import HEADERS, RunningStation
from tests.station.test_uploads import CATALOG, COUNT


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path, CATALOG) as running:
        yield running


def push(station, body, media="application/x-ndjson", path="/v1/extents/traffic/tuples", method="POST", **headers):
    return station.ask(method, path, content=body, headers=HEADERS | {"content-type": media} | headers)


def test_push_gives_a_receipt_and_an_answer(station):
    station.submit(COUNT)
    receipt = push(station, b'{"lane": 1, "kind": "car"}\n{"lane": "one"}\n{"lane": 2}\n')
    assert receipt.status_code == 200
    found = receipt.json()
    assert (found["extent"], found["accepted"], found["rejected"], found["repeated"]) == ("traffic", 2, 1, False)
    [wrong] = found["errors"]
    assert (wrong["row"], wrong["column"], wrong["code"]) == (2, "lane", "SN506")
    for count in range(1, 50):
        rows = [row for update in station.wait_for(1, count) for row in update.get("rows", ())]
        if rows:
            assert sorted(rows) == [[1, 1], [2, 1]]
            return
    raise AssertionError("the tuples are in no window")


def test_same_key_pushes_once(station):
    receipts = [push(station, b'{"lane": 1}', **{"idempotency-key": "k"}).json() for _ in range(2)]
    assert [receipt["repeated"] for receipt in receipts] == [False, True]
    other = push(station, b'{"lane": 2}', **{"idempotency-key": "k"})
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


@pytest.mark.parametrize(
    ("body", "media", "path", "method", "status", "code"),
    [
        (b'{"lane": 1}', "application/x-ndjson", "/v1/extents/trafic/tuples", "POST", 404, "no-such-extent"),
        (b'{"temp": 1}', "application/x-ndjson", "/v1/extents/field/tuples", "POST", 409, "not-pushed"),
        (b'{"lane": 1}', "application/x-ndjson", "/v1/extents/traffic/rows", "PUT", 409, "not-stored"),
        (b'{"lane": 1}', "image/png", "/v1/extents/traffic/tuples", "POST", 415, "unknown-format"),
        (b"lane,kid\n1,2\n", "text/csv", "/v1/extents/traffic/tuples", "POST", 422, "SN504"),
        (b"[", "application/json", "/v1/extents/traffic/tuples", "POST", 422, "SN502"),
        (b'[{"bn": "d/", "n": "kind", "vs": "\xff"}]', "application/senml+json", "/v1/extents/traffic/tuples", "POST", 422, "SN502"),
        (b'{"lane": "x"}', "application/json", "/v1/extents/traffic/tuples", "POST", 422, "rejected"),
        (b'{"lane": 1, "name": "a"}\n{"lane": "x"}', "application/x-ndjson", "/v1/extents/lanes/rows", "PUT", 422, "rejected"),
        (b'{"lane": 1, "_tick": 3}', "application/x-ndjson", "/v1/extents/lanes/rows", "PUT", 422, "rejected"),
        (b"SELECT lane FROM traffic", "text/plain", "/v1/statements", "POST", 422, "SN601"),
        (b"DELETE FROM traffic WHERE lan = 1", "text/plain", "/v1/statements", "POST", 422, "SN202"),
    ],
)  # fmt: skip
def test_wrong_upload_is_a_problem(station, body, media, path, method, status, code):
    refused = push(station, body, media, path, method)
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.status_code, refused.json()["code"]) == (status, code) and refused.json()["title"]


def test_table_gets_a_version_and_a_statement_a_receipt(station):
    rows = json.dumps([{"lane": 1, "name": "slow"}]).encode()
    receipt = push(station, rows, "application/json", "/v1/extents/lanes/rows", "PUT").json()
    assert (receipt["extent"], receipt["accepted"]) == ("lanes", 1)
    [table] = station.get("/v1/tables").json()["tables"]
    assert table["extent"] == "lanes" and [version["rows"] for version in table["versions"]] == [1]
    assert table["versions"][0]["time"] == receipt["time"][:19] + "Z"
    done = station.ask("POST", "/v1/statements", content="DELETE FROM traffic WHERE lane = 1").json()
    assert done["statements"] == [{"how": "delete", "extent": "traffic"}] and not done["repeated"]


def test_body_that_is_too_long_is_refused(station, monkeypatch):
    monkeypatch.setattr("basestation.rest.upload_routes.LARGEST_BODY", 10)
    refused = push(station, b'{"lane": 1}')
    assert (refused.status_code, refused.json()["code"]) == (413, "too-long")
