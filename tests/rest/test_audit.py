"""The audit: an entry for each change and each refusal, kept before the change, never altered."""

import json
import sqlite3
import time

import pytest

from basestation.rest.access import Principal, RequestRecord, TokenScope
from basestation.station import access_file
from basestation.station.access_file import AccessFile
from gateway.cli import main
from tests.rest.running_station import HEADERS, RunningStation
from tests.rest.test_access import bearer
from tests.station.small_network import QUERIES


@pytest.fixture
def station(tmp_path):
    with RunningStation(tmp_path) as running:
        yield running


@pytest.fixture
def access(tmp_path):
    with AccessFile(tmp_path, create=True) as opened:
        yield opened


def entries(station, **parameters):
    return station.get("/v1/audit", params=parameters).json()["entries"]


@pytest.mark.promise("access")
def test_changes_and_refusals_are_entries(station):
    anna = station.tokens.create("anna", [TokenScope.SUBMIT])
    begun = len(entries(station))
    station.ask("POST", "/v1/queries?name=mean", content=QUERIES[2], headers=bearer(anna))
    station.ask("POST", "/v1/queries", content="SELECT tmep FROM field [NOW]", headers=bearer(anna))
    station.ask("POST", "/v1/queries/mean/stop")
    station.ask("POST", "/v1/queries/9/stop", headers=bearer(anna))
    station.get("/v1/queries", headers=bearer(anna))  # reads are no entries
    station.ask("POST", "/v1/check", content=QUERIES[0], headers=bearer(anna))
    station.get("/v1/audit", headers=bearer(anna))
    station.get("/v1/queries?token=hidden", headers=bearer("wrong"))
    found = [
        (each["user"], each["token"], each["address"], each["action"], each["status"], each["code"], each["query"])
        for each in entries(station)[begun:]
    ]
    assert found == [
        ("anna", 2, "127.0.0.1", "POST /v1/queries", 201, None, 1),
        ("anna", 2, "127.0.0.1", "POST /v1/queries", 422, "SN202", None),
        ("admin", 1, "127.0.0.1", "POST /v1/queries/mean/stop", 200, None, 1),
        ("anna", 2, "127.0.0.1", "POST /v1/queries/9/stop", 404, "no-such-query", None),
        ("anna", 2, "127.0.0.1", "GET /v1/audit", 403, "lesser-scope", None),
        ("", None, "127.0.0.1", "GET /v1/queries", 401, "no-token", None),
    ]
    assert [each["user"] for each in entries(station, user="anna")] == ["anna"] * 4
    last = entries(station)[-1]["number"]
    assert [each["number"] for each in entries(station, after=last - 2, limit=1)] == [last - 1]


@pytest.mark.promise("access")
def test_nothing_is_done_that_the_audit_cannot_keep(station, monkeypatch):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(station.tokens, "begin_action", full)
    refused = station.submit(QUERIES[0])
    assert (refused.status_code, refused.json()["code"]) == (503, "not-now")
    assert "disk is full" in refused.json()["title"] and "nothing was done" in refused.json()["detail"]
    assert station.get("/v1/queries").json()["queries"] == []


@pytest.mark.promise("access")
def test_action_without_a_result_stays_visible(station, monkeypatch):
    begun = len(entries(station))
    with monkeypatch.context() as patch:
        patch.setattr(station.tokens, "end_action", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("full")))
        assert station.submit(QUERIES[0]).status_code == 201
    assert [(each["action"], each["status"]) for each in entries(station)[begun:]] == [("POST /v1/queries", None)]


@pytest.mark.promise("access")
@pytest.mark.parametrize("table", ["actions", "outcomes"])
def test_entries_are_neither_changed_nor_deleted(access, tmp_path, table):
    access.create("anna", [TokenScope.READ])
    other = sqlite3.connect(tmp_path / access_file.NAME)
    for statement in (f"UPDATE {table} SET at_ms = 0", f"DELETE FROM {table}", f"DELETE FROM {table} WHERE number = 1"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            other.execute(statement)
    other.close()
    assert len(access.audit(0, 10)) == 1


def test_flood_of_refusals_is_counted_and_not_kept(access, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(access._refusals, "_monotonic", lambda: now[0])
    record = RequestRecord(Principal("", frozenset()), "192.0.2.1", "GET /v1/queries")
    for _ in range(1_000):
        access.refuse_action(record, 401, "no-token")
    assert len(access.audit(0, 2_000)) == access_file.REFUSALS_AT_ONCE
    now[0] = 1.0
    access.refuse_action(record, 401, "no-token")
    assert access.audit(0, 2_000)[-1].action == "GET /v1/queries (and 900 more were refused before)"


def test_oldest_entries_go_above_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(access_file, "_SCHEMA", access_file._SCHEMA.replace("1000000", "5"))
    monkeypatch.setattr(access_file, "MOST_ENTRIES", 5)
    with AccessFile(tmp_path, create=True) as access:
        for number in range(8):
            access.create(f"user{number}", [TokenScope.READ])
        assert access.trim_audit() == 3
        assert [each.number for each in access.audit(0, 10)] == [4, 5, 6, 7, 8]


def test_oldest_entries_go_while_the_station_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(access_file, "_SCHEMA", access_file._SCHEMA.replace("1000000", "5"))
    monkeypatch.setattr(access_file, "MOST_ENTRIES", 5)
    monkeypatch.setattr(access_file, "TRIM_EVERY", 4)
    with AccessFile(tmp_path, create=True) as access:
        for number in range(8):
            access.create(f"user{number}", [TokenScope.READ])
        assert [each.number for each in access.audit(0, 10)] == [4, 5, 6, 7, 8]


def test_audit_command_shows_users_and_results(station, tmp_path, capsys):
    station.submit(QUERIES[0])
    station.get("/v1/queries", headers=bearer("wrong"))
    wait_for_result(station)
    assert main(["audit", "--data", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].endswith("admin (token 1) from 127.0.0.1: POST /v1/queries: 201, query 1")
    assert lines[-1].endswith("- from 127.0.0.1: GET /v1/queries: 401 no-token")
    assert main(["audit", "--data", str(tmp_path), "--refused", "-o", "json"]) == 0
    assert [json.loads(line)["status"] for line in capsys.readouterr().out.splitlines()] == [401]
    assert main(["audit", "--data", str(tmp_path), "--last", "1", "--user", "admin"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert main(["audit", "--data", "/nowhere"]) == 1
    assert "is not the data directory of a station" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["audit", "--last", "-1"])
    assert "no whole number" in capsys.readouterr().err


def wait_for_result(station):
    """The result of an action is kept after its answer has gone."""
    end = time.monotonic() + 30
    while time.monotonic() < end and any(each["status"] is None for each in entries(station)):
        time.sleep(0.02)


def test_audit_of_a_station_without_tokens_is_empty(station):
    from basestation.rest.api import make_api

    station.api = make_api(station.control, None)
    assert station.get("/v1/audit", headers={}).json() == {"entries": [], "next": 0}
    assert station.get("/v1/audit?limit=0", headers=HEADERS).status_code == 422
