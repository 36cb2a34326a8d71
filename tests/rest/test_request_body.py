"""Bodies and heads of requests: bytes that are open at a time, and connections that are too slow."""

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest

from basestation.rest.access import TokenScope
from basestation.rest.api import make_api
from basestation.rest.limits import BodyBudget, RequestLimits
from basestation.rest.request_body import RequestBody
from basestation.station.rest_server import RestServer
from tests.rest.running_station import HEADERS, TOKEN, RunningStation
from tests.rest.test_access import bearer


@pytest.fixture(scope="module")
def station(tmp_path_factory):
    with RunningStation(tmp_path_factory.mktemp("station")) as running:
        yield running


def test_budget_is_of_each_key_and_of_all():
    budget = BodyBudget(of_token=10, of_all=15)
    assert [budget.take("a", 8), budget.take("a", 3), budget.take("b", 8), budget.take("b", 7)] == [None, 2, 7, None]
    assert budget.take("c", 1) == 0
    budget.give_back("a", 8)
    assert budget.take("c", 8) is None


@pytest.mark.promise("access")
@pytest.mark.parametrize("is_declared", [True, False])
def test_bodies_of_open_requests_have_one_budget(station, is_declared):
    """Each of four bodies waits in the middle until all have been begun."""
    before, station.api = (
        station.api,
        make_api(station.control, station.tokens, limits=RequestLimits(token_bytes_open=2_500)),
    )
    go_on = asyncio.Event()

    async def body():
        yield b" " * 500
        await go_on.wait()
        yield b" " * 500

    async def send():
        transport = httpx.ASGITransport(station.api)
        headers = HEADERS | ({"content-length": "1000"} if is_declared else {})
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
            sent = [asyncio.create_task(client.post("/v1/check", headers=headers, content=body())) for _ in range(4)]
            await asyncio.sleep(0.2)
            go_on.set()
            done = await asyncio.gather(*sent)
            return done, await client.post("/v1/check", headers=HEADERS, content=b" " * 2_000)

    try:
        done, later = asyncio.run(send())
    finally:
        station.api = before
    refused = [each for each in done if each.status_code == 429]
    assert len(refused) == 2 if is_declared else 1 <= len(refused) <= 3
    assert {each.status_code for each in done} == {200, 429}
    assert refused[0].json()["code"] == "too-many-bytes" and refused[0].headers["retry-after"] == "1"
    assert "bytes have room now" in refused[0].json()["title"]
    assert later.status_code == 200, "the bytes were given back"


@pytest.mark.promise("access")
def test_token_above_its_bytes_leaves_room_for_others(station):
    before = station.api
    station.api = make_api(
        station.control, station.tokens, limits=RequestLimits(token_bytes_open=100, all_bytes_open=1_000)
    )
    other = bearer(station.tokens.create("other", [TokenScope.READ]))
    try:
        assert station.ask("POST", "/v1/check", content=b" " * 101).status_code == 429
        assert station.ask("POST", "/v1/check", content=b" " * 99, headers=other).status_code == 200
    finally:
        station.api = before


def test_body_that_keeps_coming_has_more_time():
    """
    limit      50 ms, and 10 s more for each 10 bytes
    messages   at once, then every 30 ms: the last one after 150 ms
    """
    scope = {"method": "POST", "route": SimpleNamespace(path="/v1/check"), "headers": []}
    limits = RequestLimits(body_seconds=0.05, body_bytes_per_second=1)
    left = iter(range(5, -1, -1))

    async def receive():
        more = next(left)
        await asyncio.sleep(0.03 if more < 5 else 0)
        return {"type": "http.request", "body": b" " * 10, "more_body": more > 0}

    async def read():
        body = RequestBody(scope, receive, limits, BodyBudget(of_token=100, of_all=100), "a")
        return [len((await body.receive())["body"]) for _ in range(6)]

    assert asyncio.run(read()) == [10] * 6


@pytest.fixture
def slow_server(station):
    limits = RequestLimits(body_seconds=0.3, body_bytes_per_second=1_000_000)
    with RestServer(station.control, station.tokens, limits=limits, head_seconds=0.3) as server:
        yield server


def talk(server, *parts, pause=0.0):
    """The answer of the server on one connection until it closes it, when it gets these parts with pauses between them."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:

        def send():
            for part in parts:
                try:
                    connection.sendall(part)
                except OSError:
                    return
                time.sleep(pause)

        thread = threading.Thread(target=send)
        thread.start()
        found = b""
        try:
            while piece := connection.recv(65_536):
                found += piece
        except ConnectionResetError:
            pass
        thread.join()
    return found.decode()


HEAD = f"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()


@pytest.mark.promise("access")
@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"GET /v1/",),
        (HEAD, b"X: 1\r\n", b"Y: 2\r\n"),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /v1"),
    ],
)
def test_connection_without_a_whole_head_is_closed(slow_server, parts):
    begun = time.monotonic()
    found = talk(slow_server, *parts)
    assert time.monotonic() - begun < 20 and found.count("HTTP/1.1") == (1 if b"\r\n\r\n" in parts[0] else 0)


@pytest.mark.promise("access")
def test_body_that_comes_too_slowly_is_refused(slow_server):
    found = talk(slow_server, HEAD + b"Content-Length: 100\r\n\r\n", *[b"S"] * 20, pause=0.05)
    assert found.startswith("HTTP/1.1 408") and '"code":"too-slow"' in found


def test_body_and_answer_outlast_the_limit_of_a_head(station):
    """
    limit     2 s for the head, which a loaded machine sends in time
    body      its end after 2.2 s
    answer    after 2.5 s
    """
    head_seconds = 2.0
    whole = HEAD + b"Content-Length: 4\r\nConnection: close\r\n\r\n"
    number = station.submit("SELECT temp FROM field [NOW]").json()["number"]
    with (
        RestServer(station.control, station.tokens, head_seconds=head_seconds) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        body = pool.submit(talk, server, whole, b"SE", b"LE", pause=1.1)
        url = f"{server.url}/v1/queries/{number}/results"
        slow = httpx.get(url, params={"after": 10**9, "wait": 2.5}, headers=HEADERS, timeout=30)
        assert slow.status_code == 200 and slow.elapsed.total_seconds() > head_seconds
        assert body.result(30).startswith("HTTP/1.1 200")
