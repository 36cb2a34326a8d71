"""StationSource: a shell on a running station, over its REST interface."""

from collections.abc import Callable, Collection, Iterator
from typing import Any

from acquisition.extent import Catalog, Extent, ExtentKind
from acquisition.schema import Attribute, Schema, Type
from acquisition.units import milliseconds_of
from basestation.explain import render_statement
from basestation.language.parser import parse
from basestation.language.syntax import Delete, Insert, Revise
from basestation.shell.answer_source import Line
from gateway.source import Source
from moteloom.client import Query, StationClient
from moteloom.client.jobs import ENDED_JOBS
from moteloom.client.requests import ENDED_STATES, path_of

TRIAL_SPAN = "1h"
"""How long `\\try` simulates where no span is given."""


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
        if _is_correction(text):
            for each in self._client.post("/v1/statements", text)["statements"]:
                yield {
                    "type": "note",
                    "message": f"{each['how']} on {each['extent']} is carried out; answers are revised",
                }
            return
        query = self._client.submit(text)
        self._notify(f"query {query.number} runs; Ctrl-C stops it")
        try:
            yield from _lines(query)
        finally:
            if query.state not in ENDED_STATES:
                query.stop()
                self._notify(f"query {query.number} is stopped")

    def watch(self, query: str) -> Iterator[Line]:
        yield from _lines(self._client.query(query))

    def try_out(self, text: str) -> Iterator[Line]:
        span, _, query = text.partition(" ")
        if milliseconds_of(span) is None:
            span, query = TRIAL_SPAN, text
        job = self._client.start_trial(query, span)
        self._notify(f"job {job.number} simulates {span}; Ctrl-C cancels it")
        try:
            yield from job.lines()
        finally:
            if job.state not in ENDED_JOBS:
                job.cancel()
                self._notify(f"job {job.number} is cancelled")

    def explain(self, text: str) -> str:
        return "\n".join(map(render_statement, self._client.post("/v1/explain", text)["statements"]))

    def manage(self, command: str, argument: str) -> Iterator[str]:
        if command == "submit":
            yield f"query {self._client.submit(argument).number} runs"
        elif command == "l":
            found = [query.description for query in self._client.queries()]
            is_of_several = len({query["owner"] for query in found}) > 1
            owned = {query["name"] for query in found if query["owner"] is not None}
            yield from (_describe(query, is_of_several, owned) for query in found)
        else:
            yield _describe(self._client.post(f"{path_of(argument)}/{command}"), "." in argument)


def _is_correction(text: str) -> bool:
    """Whether a text corrects tuples; the station says what is wrong with one that cannot be read."""
    statements = parse(Source(text)).statements
    return bool(statements) and isinstance(statements[0], Revise | Delete | Insert)


def _lines(query: Query) -> Iterator[Line]:
    found = query.description
    yield {"type": "schema", "query": found["number"], "kind": found["kind"], "columns": found["columns"]}
    for update in query.updates():
        yield update.line


def _describe(query: dict[str, Any], is_of_several: bool = False, owned: Collection[str] = ()) -> str:
    """A line about a query; in a list of several owners with the name by which `\\watch` finds it.

    Without an owner, one of a name that is `owned` as well has its number only.
    """
    owner = f"{query['owner']}." if is_of_several and query["owner"] is not None else ""
    has_number_only = query["owner"] is None and query["name"] in owned
    name = f"{owner}{query['name']}{' (by number)' if has_number_only else ''}: " if query["name"] else ""
    return f"{query['number']:>4}  {query['state']:<10} {name}{' '.join(query['text'].split())}"


def _extent_of(found: dict[str, Any]) -> Extent:
    attributes = [Attribute(each["name"], Type(each["type"]), each.get("unit")) for each in found["attributes"]]
    return Extent(found["name"], ExtentKind(found["kind"]), Schema(tuple(attributes)), found.get("every_ticks"))
