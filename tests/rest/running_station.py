"""A station with two simulated motes that lives as fast as it can on a thread of its own, and its application."""

import asyncio
import re
import threading
import time
from functools import cached_property

import httpx

from basestation.cli.run import JOB_MODULES
from basestation.jobs.table import JobTable
from basestation.rest.access import TokenScope
from basestation.rest.api import make_api
from basestation.rest.openapi import make_document
from basestation.station.access_file import AccessFile
from basestation.station.live_control import LiveControl
from basestation.station.runner import Runner, ScaledClock
from tests.station.small_network import CATALOG, SmallNetwork

TOKEN = "open sesame"
KEPT_S = 4
"""For which a process of history waits for another job."""
HEADERS = {"authorization": f"Bearer {TOKEN}"}


class RunningStation:
    """Runs between `with` and its end, 200 times as fast as the clock on the wall."""

    def __init__(self, folder, catalog=CATALOG):
        self.network = SmallNetwork(folder, catalog)
        clock = ScaledClock(time.monotonic, self.network.now_ms, speed=200)
        self.runner = Runner(self.network.durable, clock, beside=self)
        self.jobs = JobTable(folder / "jobs", JOB_MODULES, kept_s={"history": KEPT_S})
        self.control = LiveControl(self.runner, self.jobs)
        self.tokens = AccessFile(folder, create=True)
        self.tokens.create("admin", [TokenScope.ADMIN], token=TOKEN)
        self.api = make_api(self.control, self.tokens)
        self.documented = set()
        self._thread = threading.Thread(target=self.runner.run)

    def advance(self, now_ms):
        self.network.network.run_until(now_ms)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.jobs.close()
        self.runner.stop()
        self._thread.join(timeout=30)
        self.network.end()
        self.tokens.close()

    def ask(self, method, path, headers=HEADERS, raises=True, **more):
        """One request to the application itself, without a socket."""

        async def request():
            transport = httpx.ASGITransport(self.api, raise_app_exceptions=raises)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=60) as client:
                return await client.request(method, path, headers=headers, **more)

        response = asyncio.run(request())
        self.check_documented(response)
        return response

    def check_documented(self, response):
        """Every answer of a route has a status and a media type of the OpenAPI document."""
        given = response.request
        for template, methods in self.document["paths"].items():
            operation = methods.get(given.method.lower())
            if operation and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), given.url.path):
                status, media = str(response.status_code), response.headers.get("content-type", "").partition(";")[0]
                if status != "500":
                    assert status in operation["responses"], (given, status, response.text)
                    content = operation["responses"][status].get("content", {"": None})  # 204 has none
                    assert media in content, (given, status, media)
                self.documented.add((given.method, template, status))

    @cached_property
    def document(self):
        return make_document(self.api)

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def submit(self, text, **headers):
        return self.ask("POST", "/v1/queries", content=text, headers=HEADERS | headers)

    def wait_for(self, query, count):
        """The first updates of a query, once there are so many."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            page = self.get(f"/v1/queries/{query}/results", params={"after": count - 1, "wait": 1}).json()
            if page["updates"]:
                return self.get(f"/v1/queries/{query}/results").json()["updates"]
        raise AssertionError(f"query {query} gave no {count} updates")

    def wait_for_full_coverage(self, query):
        """The first window whose first answer has all readings; on a busy machine early ones may lack some."""
        for count in range(1, 100):
            for update in self.wait_for(query, count):
                used, due = update["coverage"]["field"]
                if update["revision"] == 0 and used == due > 0:
                    return update
        raise AssertionError(f"query {query} gave no complete window")
