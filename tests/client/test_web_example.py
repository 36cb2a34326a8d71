"""examples/web: server-sent events in JavaScript, by fetch and by EventSource, resumed over cut connections."""

import json
import os
import subprocess

import httpx
import pytest

from tests.client.cutting_proxy import CuttingProxy
from tests.docs.pages import ROOT


def follow(need, url, token, *arguments):
    [node] = need("node")
    return subprocess.run(
        [node, ROOT / "examples/web/follow.mjs", url, *map(str, arguments)], capture_output=True, text=True, timeout=100,
        env={**os.environ, "MOTELOOM_TOKEN": token},
    )  # fmt: skip


@pytest.mark.promise("resume")
def test_events_are_each_there_once_over_cut_connections(running, station, need, rng):
    query = station.submit("SELECT site, temp FROM field [NOW]")
    with CuttingProxy(httpx.URL(running.url).netloc.decode().split(":"), rng.random()) as proxy:
        done = follow(need, proxy.url, running.token, query.number, 40)
    query.stop()
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["number"] for line in done.stdout.splitlines()] == list(range(1, 41)) and proxy.cuts > 0


@pytest.mark.parametrize(
    ("token", "query", "reason"), [("wrong", 1, "token"), (None, 99_999, "there is no query 99999")]
)
def test_refusals_end_the_example_with_the_reason(running, need, token, query, reason):
    done = follow(need, running.url, token or running.token, query, 1)
    assert done.returncode == 1 and reason in done.stderr and done.stdout == ""


def follow_in_page(need, url, cookie, query, count):
    [node] = need("node")
    example, path = ROOT / "examples/web/events.mjs", f"{url}/v1/queries/{query}/results"
    return subprocess.run(
        [node, "--experimental-eventsource", ROOT / "tests/client/event_source.mjs", example, path, cookie, str(count)],
        capture_output=True, text=True, timeout=100,
    )  # fmt: skip


def log_in(running, station):
    """The cookie of a session."""
    ticket = station.post("/v1/tickets")["ticket"]
    session = httpx.post(f"{running.url}/v1/session", content=ticket, headers={"origin": running.url})
    return session.headers["set-cookie"].partition(";")[0]


@pytest.mark.promise("resume")
def test_event_source_with_a_cookie_has_each_update_once(running, station, need, rng):
    cookie = log_in(running, station)
    query = station.submit("SELECT site, temp FROM field [NOW]")
    # The EventSource of Node.js gives up where the head of an answer is cut; that of a browser asks again.
    with CuttingProxy(httpx.URL(running.url).netloc.decode().split(":"), rng.random(), least=1_200) as proxy:
        done = follow_in_page(need, proxy.url, cookie, query.number, 20)
    refused = follow_in_page(need, running.url, "moteloom_session=none", query.number, 1)
    query.stop()
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["number"] for each in found] == list(range(1, 21)) and proxy.cuts > 0
    assert found[-1]["id"].endswith(f"-{query.number}-20")
    assert refused.returncode == 1 and "token" in refused.stderr


@pytest.mark.promise("resume")
def test_event_source_goes_on_behind_a_proxy_without_a_station(running, station, need, rng):
    cookie, target = log_in(running, station), httpx.URL(running.url).netloc.decode().split(":")
    query = station.submit("SELECT site, temp FROM field [NOW]")
    with CuttingProxy(target, rng.random(), least=2_000, bad_gateways=(0, 1, 3, 4)) as proxy:
        done = follow_in_page(need, proxy.url, cookie, query.number, 15)
        missing = follow_in_page(need, proxy.url, cookie, 99_999, 1)
    query.stop()
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["number"] for line in done.stdout.splitlines()] == list(range(1, 16))
    assert proxy.connections > 5
    assert missing.returncode == 1 and "there is no query 99999" in missing.stderr
