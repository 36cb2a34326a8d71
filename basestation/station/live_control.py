"""LiveControl: a running station behind the REST interface. Commands go through the runner, results come from the journal."""

import json

from acquisition.extent import Extent, ExtentKind
from acquisition.ticks import rfc3339_of
from basestation.controller.query_lifecycle import QueryRecord
from basestation.rest.control import JsonObject, ResultPage
from basestation.rest.wire import HttpProblemError
from basestation.results.feed import UpdatesExpiredError
from basestation.results.schema import schema_of
from basestation.results.wire import columns_as_json, schema_as_json
from basestation.station.durable import KeyReusedError
from basestation.station.runner import Runner
from basestation.station.service import Station

STALLED_SECONDS = 10.0
"""Of the machine. A station that has not looked for so long makes no progress."""


class LiveControl:
    """The methods of `basestation.rest.control.StationControl`."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._journal = runner.durable.journal

    @property
    def _station(self) -> Station:
        return self._runner.durable.station

    def submit(self, text: str, key: str | None) -> JsonObject:
        try:
            return self._runner.call(lambda now_ms: self._as_json(self._runner.durable.submit(text, now_ms, key)))
        except KeyReusedError as error:
            raise HttpProblemError(422, "key-reused", str(error), error.help) from None

    def stop(self, number: int) -> JsonObject:
        return self._runner.call(lambda now_ms: self._as_json(self._runner.durable.stop(number, now_ms)))

    def queries(self) -> list[JsonObject]:
        return [self._as_json(record) for _, record in sorted(self._station.world.queries.items())]

    def query(self, number: int) -> JsonObject:
        return self._as_json(self._station.world.queries[number])

    def results(self, number: int, after: int, limit: int) -> ResultPage:
        record = self._station.world.queries[number]
        first, behind = self._journal.bounds(number)
        if after + 1 < first:
            raise UpdatesExpiredError(first)
        lines: list[str] = []
        chunks = self._journal.results(number, after, limit) if after + 1 < behind else []
        if chunks and chunks[0].first > after + 1:  # some have just been dropped
            raise UpdatesExpiredError(chunks[0].first)
        for chunk in chunks:
            lines += chunk.lines.splitlines()[max(0, after + 1 - chunk.first) :]
        lines = lines[:limit]
        schema = schema_as_json(schema_of(number, record.plan))
        return ResultPage(
            number, {"kind": schema["kind"], "columns": schema["columns"]}, tuple(lines), after + len(lines)
        )

    def motes(self) -> list[JsonObject]:
        return self._runner.call(lambda now_ms: self._describe_motes())

    def _describe_motes(self) -> list[JsonObject]:
        station = self._station
        tree, accounts = station.world.tree, station.account()
        return [
            {
                "mote": mote,
                "state": reconciler.state.name.lower(),
                "meaning": reconciler.state.value,
                "parent": tree.parent.get(mote),
                "is_silent": mote in station.failure_detector.motes,
                "readings": {extent: sites[mote] for extent, sites in accounts.items() if mote in sites},
            }
            for mote, reconciler in sorted(station.reconcilers.by_mote.items())
        ]

    def extents(self) -> list[JsonObject]:
        return [_extent_as_json(extent) for extent in self._station.world.catalog]

    def events(self, after: int, limit: int) -> list[JsonObject]:
        return [
            {"number": number, "time": rfc3339_of(at_ms, 1), "event": kind, **json.loads(body)}
            for number, at_ms, kind, body in self._journal.events(after, limit)
        ]

    def health(self) -> JsonObject:
        behind = self._runner.clock.seconds_since(self._runner.looked_ms)
        problems = []
        if not self._runner.is_committing:
            problems.append(f"nothing can be committed: {self._runner.durable.failure}")
        if not self._runner.is_linked:
            problems.append(f"the link fails: {self._runner.durable.link_failure}")
        if behind > STALLED_SECONDS:
            problems.append(f"the station has not looked for {behind:.0f} s")
        station = self._station
        return {
            "ok": not problems,
            "problems": problems,
            "time": rfc3339_of(self._runner.looked_ms, 1),
            "queries": len(station.world.live),
            "motes": len(station.reconcilers.by_mote),
            "silent": sorted(station.failure_detector.motes),
        }

    def _as_json(self, record: QueryRecord) -> JsonObject:
        tick_ms = self._station.world.catalog.tick_ms
        return {
            "number": record.number,
            "text": record.text,
            "state": record.state.name.lower(),
            "kind": record.plan.kind,
            "columns": columns_as_json(record.plan.root.columns),
            "submitted": rfc3339_of(record.submitted_at, tick_ms),
            "awaited": sorted(record.awaited),
            "lifetime_violation": record.lifetime_violation,
        }


def _extent_as_json(extent: Extent) -> JsonObject:
    found: dict[str, object] = {"name": extent.name, "kind": str(extent.kind)}
    found["attributes"] = [
        {"name": each.name, "type": str(each.type)} | ({"unit": each.unit} if each.unit else {})
        for each in extent.schema
    ]
    if extent.kind is ExtentKind.SENSED:
        found["every_ticks"] = extent.interval
    return found
