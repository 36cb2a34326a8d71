"""examples/web/follow.mjs: server-sent events in JavaScript, resumed over cut connections."""

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
