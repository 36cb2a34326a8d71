"""Limits of a request and of a token: bodies too large, too deep or not UTF-8, on each route; rate; open requests."""

import asyncio

import httpx
import pytest

from basestation.rest.access import TokenScope, needed_scope
from basestation.rest.api import make_api
from basestation.rest.limits import RateLimiter, RequestLimits
from tests.rest.running_station import HEADERS, RunningStation
from tests.rest.test_access import bearer, fill, find_routes, state_of
from tests.station.small_network import QUERIES

SMALL = RequestLimits(requests_per_second=0.001, burst=5, open_requests=2, body_bytes=1_000)


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station")) as running:
        running.submit(QUERIES[0])
        yield running


@pytest.fixture
def limited(station):
    """A function that gives the station an application with limits until the end of the test."""
    before = station.api

    def limit(**changed):
        station.api = make_api(station.control, station.tokens, limits=RequestLimits(**changed))
        return station

    yield limit
    station.api = before


BODIES = {
    "too large": (b"x" * 1_000_001, "text/plain"),
    "too large JSON": (b'{"text": "' + b"x" * 1_000_001 + b'"}', "application/json"),
    "too deep": (b'{"text": ' * 100_000 + b"1" + b"}" * 100_000, "application/json"),
    "too long number": (b'{"text": ' + b"1" * 5_000 + b"}", "application/json"),
    "too deep list": (b"[" * 100_000, "application/json"),
    "too deep text": (b"SELECT " + b"(" * 50_000 + b"temp" + b")" * 50_000 + b" FROM field [NOW]", "text/plain"),
    "not UTF-8": (b"SELECT temp \xff\xfe FROM field [NOW]", "text/plain"),
    "not UTF-8 JSON": (b'{"text": "\xff\xfe"}', "application/json"),
}


@pytest.mark.promise("access")
@pytest.mark.parametrize("body", BODIES)
def test_each_route_refuses_or_ignores_a_bad_body(station, body):
    content, kind = BODIES[body]
    before = state_of(station)
    for method, path in find_routes(station.api):
        has_body = method != "GET" and path not in SIMPLE
        response = station.ask(method, fill(path), headers=HEADERS | {"content-type": kind}, content=content)
        if body.startswith("too large") and needed_scope(method, path) is not TokenScope.TAG:
            assert (response.status_code, response.json()["code"]) == (413, "too-long"), (method, path)
        elif has_body:
            assert response.status_code in (400, 404, 409, 413, 415, 422), (method, path, response.text[:200])
            assert response.headers["content-type"] == "application/problem+json"
        else:
            assert response.status_code < 500, (method, path)
    assert state_of(station)[1] == before[1], "no query was made"


SIMPLE = (
    "/v1/queries/{query}/stop", "/v1/queries/{query}/pause", "/v1/queries/{query}/resume", "/v1/tickets", "/v1/session",
)  # fmt: skip
"""Routes that take no body: they do not read it."""


@pytest.mark.promise("access")
def test_body_in_pieces_is_cut_off_at_the_limit(limited):
    station, read = limited(body_bytes=1_000), []

    async def pieces():
        for _ in range(1_000):
            read.append(100)
            yield b"x" * 100

    async def send():
        transport = httpx.ASGITransport(station.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.post("/v1/queries", headers=HEADERS, content=pieces())

    response = asyncio.run(send())
    assert (response.status_code, response.json()["code"]) == (413, "too-long")
    assert len(read) <= 12


@pytest.mark.promise("access")
def test_upload_has_a_limit_of_its_own(limited):
    station = limited(body_bytes=100, upload_bytes=1_000)
    for size, status in ((999, 404), (1_001, 413)):
        refused = station.ask("POST", "/v1/extents/none/tuples", headers=HEADERS, content=b"\n" * size)
        assert refused.status_code == status, refused.text


@pytest.mark.promise("access")
@pytest.mark.parametrize("length", ["1001", "99999999999999999999999"])
def test_declared_length_is_refused_before_the_body(limited, length):
    response = limited(body_bytes=1_000).ask(
        "POST", "/v1/queries", headers=HEADERS | {"content-length": length}, content=b"SELECT"
    )
    assert response.status_code == 413


@pytest.mark.promise("access")
def test_token_above_its_rate_is_refused_and_others_are_not(limited):
    station = limited(requests_per_second=0.001, burst=5)
    other = station.tokens.create("other", [TokenScope.READ])
    answers = [station.get("/v1/extents") for _ in range(7)]
    assert [each.status_code for each in answers] == [200] * 5 + [429] * 2
    refused = answers[-1]
    assert refused.json()["code"] == "too-many-requests" and "0.001 requests a second" in refused.json()["title"]
    assert int(refused.headers["retry-after"]) > 900
    assert station.get("/v1/extents", headers=bearer(other)).status_code == 200
    assert station.get("/v1/extents", headers={}).status_code == 401


@pytest.mark.promise("access")
def test_token_has_so_many_requests_open(limited):
    station = limited(open_requests=2)

    async def ask():
        transport = httpx.ASGITransport(station.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            slow = {"wait": 1, "after": 10**9}
            waiting = [client.get("/v1/queries/1/results", headers=HEADERS, params=slow) for _ in range(4)]
            done = await asyncio.gather(*waiting)
            return [each.status_code for each in done], (await client.get("/v1/extents", headers=HEADERS)).status_code

    first, later = asyncio.run(ask())
    assert sorted(first) == [200, 200, 429, 429] and later == 200


def test_rate_limiter_gains_with_time_and_forgets_old_keys():
    now = [0.0]
    rates = RateLimiter(2.0, 3, lambda: now[0])
    assert [rates.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    now[0] = 0.5
    assert [rates.take("a"), rates.take("a")] == [0.0, 0.5]
    now[0] = 100.0
    assert [rates.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    for key in range(RateLimiter.MOST_KEYS):
        rates.take(key)
    assert len(rates._filled) == RateLimiter.MOST_KEYS and rates.take("a") == 0.0
