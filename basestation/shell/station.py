"""StationSource: a shell on a running station, over its REST interface."""

import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type
from basestation.client.http import ENDED_STATES, StationClient
from basestation.explain import render_statement
from basestation.shell.answer_source import Line

WAIT_SECONDS = 20


class StationSource:
    """Answers from the queries of a station. `notify` prints a line beside the answers."""

    def __init__(self, client: StationClient, name: str, notify: Callable[[str], None]) -> None:
        self._client, self._notify = client, notify
        self.name = name
        self._catalog = self._read_catalog()

    def catalog(self) -> Catalog:
        return self._catalog

    def _read_catalog(self) -> Catalog:
        extents = (_extent_of(each) for each in self._client.get("/v1/extents")["extents"])
        return Catalog({extent.name: extent for extent in extents})

    def answers(self, text: str) -> Iterator[Line]:
        number = int(self._client.post("/v1/queries", text)["number"])
        self._notify(f"query {number} runs; Ctrl-C stops it")
        try:
            yield from self.watch(str(number))
        finally:
            if self._client.get(f"/v1/queries/{number}")["state"] not in ENDED_STATES:
                self._client.post(f"/v1/queries/{number}/stop")
                self._notify(f"query {number} is stopped")

    def watch(self, query: str) -> Iterator[Line]:
        found = self._client.get(_path(query))
        yield {"type": "schema", "query": found["number"], "kind": found["kind"], "columns": found["columns"]}
        for updates in self._client.updates(found["number"], 0, WAIT_SECONDS):
            yield from updates

    def explain(self, text: str) -> str:
        return "\n".join(map(render_statement, self._client.post("/v1/explain", text)["statements"]))

    def manage(self, command: str, argument: str) -> Iterator[str]:
        if command == "submit":
            yield f"query {self._client.post('/v1/queries', argument)['number']} runs"
        elif command == "l":
            after = 0
            while page := self._client.get("/v1/queries", after=after)["queries"]:
                yield from map(_describe, page)
                after = page[-1]["number"]
        else:
            yield _describe(self._client.post(f"{_path(argument)}/{command}"))


def _path(query: str) -> str:
    return f"/v1/queries/{urllib.parse.quote(query, safe='')}"


def _describe(query: dict[str, Any]) -> str:
    name = f"{query['name']}: " if query["name"] else ""
    return f"{query['number']:>4}  {query['state']:<10} {name}{' '.join(query['text'].split())}"


def _extent_of(found: dict[str, Any]) -> Extent:
    attributes = [Attribute(each["name"], Type(each["type"]), each.get("unit")) for each in found["attributes"]]
    return Extent(found["name"], ExtentKind(found["kind"]), Schema(tuple(attributes)), found.get("every_ticks"))
