"""Streams of results: one reading and one encoding for all clients, bounded buffers, and each update once, also for slow clients."""

import asyncio
import json
import re
import socket
import ssl
import threading
import time
from collections import Counter
from contextlib import contextmanager

import pytest
import uvicorn

from basestation.rest import result_streams
from basestation.rest.api import make_api
from basestation.rest.control import ResultPage
from basestation.rest.encoded_pages import EncodedPages
from basestation.rest.result_streams import PIECE_BYTES, TAIL_BYTES, ResultStreams, encode_events
from basestation.rest.wire import HttpProblemError
from basestation.results.feed import UpdatesExpiredError
from basestation.station.certificate import Certificate
from basestation.station.timed_protocol import make_timed_protocol
from tests.station.certificates import make_certificate

SCHEMA = {"kind": "window", "columns": []}


class GrowingResults:
    """The results of one query, of which `first` is the oldest that is kept; `reads` counts who reads them."""

    def __init__(self):
        self.lines, self.first, self.reads, self.is_over = [], 1, 0, False

    def grow(self, count, size=100):
        self.lines += [f'{{"number": {len(self.lines) + n}, "x": "{"x" * size}"}}' for n in range(1, count + 1)]

    def results(self, query, after, limit):
        self.reads += 1
        if after + 1 < self.first:
            raise UpdatesExpiredError(self.first)
        lines = tuple(self.lines[after : after + limit])
        return ResultPage(7, SCHEMA, lines, after + len(lines), "abcdef01")

    def number_before(self, query, at_ms):
        return len(self.lines)

    def on_results(self, wake):
        self.wake = wake

    async def read(self, after, limit):
        """As a route reads."""
        try:
            return self.results("7", after, limit)
        except UpdatesExpiredError as gone:
            raise HttpProblemError(410, "results-gone", str(gone)) from None


@pytest.fixture
def results():
    return GrowingResults()


@pytest.fixture
def encoded(monkeypatch):
    """How often each update was encoded."""
    counts = Counter()

    def count(page):
        counts.update(range(page.next - len(page.lines) + 1, page.next + 1))
        return encode_events(page)

    monkeypatch.setattr(result_streams, "encode_events", count)
    monkeypatch.setattr(result_streams, "LOOK_SECONDS", 0.02)
    return counts


def make_streams(results):
    return ResultStreams(results, lambda: results.is_over)


async def follow(streams, results, count, after=0, check=lambda: None, pause=0.0):
    """The numbers of a client that reads so many updates."""
    text = b""
    async for part in streams.follow(7, after, results.read, check):
        text += part
        if text.count(b"\n\n") - text.count(b": nothing") >= count:
            break
        await asyncio.sleep(pause)
    return [int(number) for number in re.findall(rb"^id: abcdef01-7-(\d+)$", text, re.MULTILINE)]


def test_commit_wakes_the_clients_of_a_stream(results, monkeypatch):
    """They looked every 0.2 s."""
    monkeypatch.setattr(result_streams, "LOOK_SECONDS", 3_600.0)
    monkeypatch.setattr(result_streams, "WAKE_SECONDS", 3_600.0)

    async def run():
        streams, found = make_streams(results), []
        client = asyncio.create_task(follow(streams, results, 3))
        for number in range(1, 4):
            while not streams._tails or streams._tails[7].last < number - 1:
                await asyncio.sleep(0.01)
            results.grow(1)
            threading.Thread(target=results.wake).start()
        async with asyncio.timeout(30):
            found = await client
        return found

    assert asyncio.run(run()) == [1, 2, 3]


@pytest.mark.promise("resume")
def test_update_is_encoded_once_for_a_thousand_clients(results, encoded):
    async def run():
        streams = make_streams(results)
        clients = [asyncio.create_task(follow(streams, results, 50)) for _ in range(1_000)]
        while not streams._tails or streams._tails[7].clients < 1_000:
            await asyncio.sleep(0.01)
        begun = results.reads
        for _ in range(5):
            results.grow(10)
            await asyncio.sleep(0.05)
        found = await asyncio.gather(*clients)
        return found, results.reads - begun, streams._tails

    found, reads, tails = asyncio.run(run())
    assert found == [list(range(1, 51))] * 1_000 and not tails
    assert encoded == Counter(range(1, 51)), "each update once"
    assert reads < 500, "the tail is read for all"


@pytest.mark.promise("resume")
def test_clients_that_resume_together_share_what_is_encoded(results, encoded):
    async def run():
        streams = make_streams(results)
        return await asyncio.gather(*(follow(streams, results, 2_400, after=100) for _ in range(100)))

    results.grow(2_500)
    assert asyncio.run(run()) == [list(range(101, 2_501))] * 100
    assert encoded == Counter(range(101, 2_501))


@pytest.mark.promise("resume", "bounded-memory")
def test_slow_client_has_each_update_and_the_tail_is_bounded(results, encoded):
    count, sizes = 3_000, []

    async def grow(streams):
        while len(results.lines) < count:
            results.grow(100, size=1_000)
            await asyncio.sleep(0.01)
            sizes.extend(tail.size for tail in streams._tails.values())

    async def run():
        streams = make_streams(results)
        slow = follow(streams, results, count, pause=0.05)
        fast = follow(streams, results, count)
        return (await asyncio.gather(slow, fast, grow(streams)))[:2]

    assert asyncio.run(run()) == [list(range(1, count + 1))] * 2
    assert sizes and max(sizes) <= TAIL_BYTES + 100 * 1_100, "the newest events and one reading"


def test_pieces_are_bounded_and_have_each_update_once(results):
    results.grow(500, size=1_000)
    results.lines[250] = f'"{"x" * 3 * PIECE_BYTES}"'
    pieces = encode_events(results.results("7", 10, 1_000))
    assert [piece.after for piece in pieces[1:]] == [piece.last for piece in pieces[:-1]]
    assert (pieces[0].after, pieces[-1].last) == (10, 500)
    assert sum(len(piece.body) > PIECE_BYTES for piece in pieces) == 1, "the one update that is larger"
    assert b"".join(piece.body for piece in pieces).count(b"\n\n") == 490


@pytest.mark.promise("resume")
def test_client_behind_what_is_kept_gets_the_reason(results, encoded):
    async def run():
        streams, found = make_streams(results), []
        stream = streams.follow(7, 0, results.read, lambda: None)
        try:
            async for part in stream:
                found.append(part)
                results.grow(5_000)
                results.first = 4_000
        except HttpProblemError as gone:
            return found, gone.status

    results.grow(10)
    found, status = asyncio.run(run())
    assert status == 410 and b"".join(found).count(b"\n\n") >= 10


def test_client_beyond_the_newest_update_leaves_others_alone(results, encoded):
    async def run():
        streams = make_streams(results)
        beyond = asyncio.create_task(follow(streams, results, 1, after=70))
        while not streams._tails:
            await asyncio.sleep(0.01)
        others = [asyncio.create_task(follow(streams, results, 23, after=after)) for after in (50, 40)]
        await asyncio.sleep(0.1)
        before = results.reads
        await asyncio.sleep(0.3)
        reads = results.reads - before
        results.grow(23)
        return reads, await asyncio.wait_for(asyncio.gather(beyond, *others), 20)

    results.grow(50)
    reads, found = asyncio.run(run())
    assert found == [[71, 72, 73], list(range(51, 74)), list(range(41, 74))]
    assert reads <= 20, "one reading in 20 ms, for all"


def test_client_whose_rights_end_gets_no_more(results, encoded, monkeypatch):
    monkeypatch.setattr(result_streams, "WAKE_SECONDS", 0.05)
    ended = []

    def check():
        if ended:
            raise HttpProblemError(401, "no-token", "it has ended")

    async def run():
        streams = make_streams(results)
        client = asyncio.create_task(follow(streams, results, 10**9, check=check))
        await asyncio.sleep(0.2)
        ended.append(True)
        with pytest.raises(HttpProblemError, match="it has ended"):
            await asyncio.wait_for(client, 10)

    asyncio.run(run())


def test_failed_reading_of_the_tail_reaches_each_client(results, encoded):
    async def run():
        streams = make_streams(results)
        clients = [asyncio.create_task(follow(streams, results, 10**9)) for _ in range(3)]
        await asyncio.sleep(0.1)
        results.results = None  # every call fails
        return await asyncio.wait_for(asyncio.gather(*clients, return_exceptions=True), 10)

    assert [type(why) for why in asyncio.run(run())] == [TypeError] * 3


@pytest.mark.promise("resume")
def test_page_is_encoded_once_for_a_thousand_requests():
    page = ResultPage(7, SCHEMA, ("{}",) * 3, 3, "abcdef01")
    calls = []

    def encode(page):
        calls.append(page)
        time.sleep(0.05)
        return b"bytes"

    async def run():
        pages = EncodedPages()
        first = await asyncio.gather(*(pages.encode("csv", page, encode) for _ in range(1_000)))
        later = [await pages.encode("csv", page, encode) for _ in range(10)]
        return {*first, *later}

    assert asyncio.run(run()) == {b"bytes"} and len(calls) == 1


@pytest.mark.promise("resume", "bounded-memory")
@pytest.mark.parametrize("is_tls", [False, True])
def test_connection_that_reads_nothing_is_cut(is_tls, tmp_path, need):
    server = client_side = None
    if is_tls:
        need("openssl")
        server = Certificate(*make_certificate(tmp_path, "own", "ec")).context
        client_side = ssl.create_default_context()
        client_side.check_hostname, client_side.verify_mode = False, ssl.CERT_NONE
    sent, ended = [], threading.Event()

    async def endless(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await receive()
        disconnect = asyncio.create_task(receive())
        while not disconnect.done():
            await send({"type": "http.response.body", "body": bytes(PIECE_BYTES), "more_body": True})
            sent.append(PIECE_BYTES)
            await asyncio.sleep(0)
        ended.set()

    with serve(endless, read_seconds=0.3, context=server) as address, socket.socket() as client:
        connection = connect(client, address, client_side)
        assert ended.wait(30), "the connection stays open"
        connection.close()
    assert sum(sent) < 500_000, "what the connection and the kernel buffer"


@pytest.mark.promise("resume")
def test_client_that_reads_slowly_has_the_whole_answer():
    """
    limit    1 s without a byte
    client   a piece every 30 ms: the buffer is full for more than 1.5 s
    """
    body, found = bytes(60 * PIECE_BYTES), 0

    async def answer(scope, receive, send):
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    begun = time.monotonic()
    with serve(answer, read_seconds=1.0) as address, socket.socket() as client:
        connect(client, address)
        while piece := client.recv(PIECE_BYTES, socket.MSG_WAITALL):
            found += len(piece)
            time.sleep(0.03)
    assert found > len(body) and time.monotonic() - begun > 1.5


@pytest.mark.promise("resume")
def test_large_answer_is_sent_in_pieces():
    """TLS has 30 s for what is left of an answer once the server has all of it."""
    sent = []
    scope = {
        "type": "http", "method": "GET", "path": "/v1/openapi.json", "raw_path": b"/v1/openapi.json", "query_string": b"", "headers": [(b"host", b"localhost")],
        "scheme": "http", "server": ("localhost", 80), "client": ("127.0.0.1", 1), "root_path": "", "http_version": "1.1", "state": {},
    }  # fmt: skip

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    asyncio.run(make_api(None, None)(scope, receive, send))
    start, *parts = sent
    assert start["status"] == 200 and len(parts) > 1
    assert max(len(part["body"]) for part in parts) <= PIECE_BYTES
    assert [part["more_body"] for part in parts] == [True] * (len(parts) - 1) + [False]
    whole = b"".join(part["body"] for part in parts)
    assert json.loads(whole)["openapi"] and dict(start["headers"])[b"content-length"] == str(len(whole)).encode()


@contextmanager
def serve(application, read_seconds, context=None):
    """The address of a server whose kernel buffers little."""
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
    protocol = make_timed_protocol(read_seconds=read_seconds)
    config = uvicorn.Config(application, http=protocol, lifespan="off", log_level="error")
    config.load()
    config.ssl = context
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        thread.join(10)


def connect(client, address, context=None):
    """The connection of a request from a socket whose kernel buffers little."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
    client.connect(address)
    connection = client if context is None else context.wrap_socket(client)
    connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return connection
