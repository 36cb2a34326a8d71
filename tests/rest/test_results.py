"""The routes of results: pages, resumption, and problems in one form."""

import asyncio

import httpx
import pytest

from basestation.rest.api import make_api
from basestation.results.feed import Feed
from basestation.results.schema import ResultSchema
from basestation.updates.update import EpochMark, QueryFailure
from tests.results.single_update import as_columns
from tests.results.test_feed import SHAPE
from tests.results.test_view import tuples, window

TOKEN = "open sesame"
COLUMNS = [{"name": "v", "type": "float"}, {"name": "w", "type": "integer"}, {"name": "s", "type": "string"}]
HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def feed():
    feed = Feed(limit=4)
    feed.open(SHAPE)
    for tick in range(6):
        feed.publish([as_columns(window([(tick + 0.5, None, "a")], tick=tick))])
    return feed


class Client:
    """Asks the application itself, without a socket; the walking skeleton uses a real one."""

    def __init__(self, api, headers=None):
        self.api, self.headers = api, headers or {}

    def get(self, path, params=None, headers=None):
        async def ask():
            transport = httpx.ASGITransport(self.api)
            async with httpx.AsyncClient(transport=transport, base_url="http://station") as client:
                return await client.get(path, params=params, headers=headers or self.headers)

        return asyncio.run(ask())


@pytest.fixture
def client(feed):
    return Client(make_api(feed, 1000, TOKEN), HEADERS)


def test_pages_follow_each_other(client):
    first = client.get("/v1/queries/1/results", params={"after": 2, "limit": 3}).json()
    assert [u["number"] for u in first["updates"]] == [3, 4, 5]
    second = client.get("/v1/queries/1/results", params={"after": first["next"]}).json()
    assert [u["number"] for u in second["updates"]] == [6]
    assert client.get("/v1/queries/1/results", params={"after": second["next"]}).json() == {
        "query": 1, "kind": "window", "columns": COLUMNS, "updates": [], "next": 6}  # fmt: skip


def test_update_has_all_fields(client):
    [found] = client.get("/v1/queries/1/results", params={"after": 5}).json()["updates"]
    assert found == {
        "number": 6, "type": "window", "query": 1, "tick": 5, "time": "1970-01-01T00:00:05Z", "n": 1, "revision": 0,
        "coverage": {"field": [0, 9]}, "rows": [[5.5, None, "a"]],
    }  # fmt: skip


def test_revision_lists_removed_rows(client, feed):
    feed.publish([as_columns(window([(7.5, 1, "b")], [(5.5, None, "a")], 1, tick=5))])
    [found] = client.get("/v1/queries/1/results", params={"after": 6}).json()["updates"]
    assert (found["revision"], found["removed"], found["added"]) == (1, [[5.5, None, "a"]], [[7.5, 1, "b"]])
    assert "rows" not in found


def test_stream_result_lists_tuples(client, feed):
    feed.open(ResultSchema(2, "stream", SHAPE.columns))
    given = tuples((3, 1, 1, (0.5, None, "a")), (4, 2, 1, (1.5, 7, "b")), (3, 1, -1, (0.5, None, "a")), query=2)
    feed.publish([given, as_columns(EpochMark(2, 4, {"field": (1, 2), "hits": None}))])
    first = client.get("/v1/queries/2/results", params={"limit": 2}).json()
    assert (first["kind"], first["next"]) == ("stream", 2)
    assert first["updates"][0] == {
        "number": 1, "type": "tuple", "query": 2, "tick": 3, "time": "1970-01-01T00:00:03Z", "index": 1, "weight": 1,
        "row": [0.5, None, "a"],
    }  # fmt: skip
    taken_back, mark = client.get("/v1/queries/2/results", params={"after": 2}).json()["updates"]
    assert (taken_back["number"], taken_back["index"], taken_back["weight"]) == (3, 1, -1)
    assert mark == {
        "number": 4, "type": "epoch", "query": 2, "tick": 4, "time": "1970-01-01T00:00:04Z",
        "coverage": {"field": [1, 2], "hits": None},
    }  # fmt: skip


def test_failed_query_has_ended_line(client, feed):
    feed.publish([QueryFailure(1, "SN511", "the loop does not move", 7)])
    assert client.get("/v1/queries/1/results", params={"after": 6}).json()["updates"] == [
        {"number": 7, "type": "ended", "query": 1, "tick": 7, "time": "1970-01-01T00:00:07Z", "code": "SN511",
         "message": "the loop does not move"}]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/queries/9/results", 404, "no-such-query"),
        ("/v1/queries/1/results", 410, "results-gone"),
        ("/v1/queries/one/results", 422, "bad-request"),
        ("/v1/queries/1/results?after=-1", 422, "bad-request"),
        ("/v1/queries/1/results?limit=0", 422, "bad-request"),
        ("/v2", 404, "no-such-route"),
    ],
)
def test_errors_are_problem_details(client, path, status, code):
    response = client.get(path)
    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, response.json()["status"], response.json()["code"]) == (status, status, code)
    assert response.json()["title"]


@pytest.mark.promise("resume")
def test_expired_updates_return_first_number(client):
    problem = client.get("/v1/queries/1/results").json()
    assert problem["detail"] == "begin with after=2"
    assert client.get("/v1/queries/1/results", params={"after": 2}).status_code == 200


@pytest.mark.promise("resume")
@pytest.mark.parametrize("header", [None, "Bearer wrong", "open sesame", "Bearer é"])
def test_request_without_token_is_unauthorized(feed, header):
    client = Client(make_api(feed, 1000, TOKEN))
    headers = {} if header is None else {"authorization": header.encode()}
    response = client.get("/v1/queries/1/results", headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, "no-token")
    assert response.headers["www-authenticate"] == "Bearer"


def test_station_without_token_is_open(feed):
    client = Client(make_api(feed, 1000, None))
    assert client.get("/v1/queries/1/results", params={"after": 2}).status_code == 200
